"""Struts: linear actuators, springs and dampers whose two parts slide in each other, between points of two bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.mechanisms.checks import pointing_axes, require
from coupler.model import ModelError, Prismatic, Revolute, RobotBuilder, Spherical, Universal
from coupler.model.numbers import numbers
from coupler.model.wording import listed
from coupler.spatial import Transform

ASKEW = 1e-9  # relative to a strut's length: how far its ends may be apart along the axis of its pins
_SHORTEST = 1e-9  # m: shorter struts have no direction
X, Y, Z = np.eye(3)


@dataclass(frozen=True)
class Spring:
    """A spring with the tension T = k (L − L₀) + T₀ + c L̇; see `PointElement`. [004, eq. 35]

    Attributes:
        stiffness: k, N/m.
        free_length: L₀, m.
        pretension: T₀, N, the tension wound into an extension spring.
        damping: c, N s/m.
    """

    stiffness: float = 0.0
    free_length: float = 0.0
    pretension: float = 0.0
    damping: float = 0.0


class StrutBuilder(RobotBuilder):
    """A builder that adds struts to what was described so far, and closes the loops that they form.

        b = StrutBuilder("lid")
        b.body("lid", mass=4.0, centre=(0.3, 0, 0), inertia=(0.02, 0.12, 0.14))
        b.joint("hinge", Revolute(axis=(0, -1, 0)), "ground", "lid")
        b.strut("lift", "ground", "lid", at=(0.1, 0, -0.3), meets=(0.4, 0, 0), axis=(0, 1, 0), actuated=True)

    The direction of a strut follows from where joints start, so that the joints of its two bodies must come first.
    """

    def pose(self, body: str) -> Transform:
        """The transform from the world to a body, as described so far, with each joint at its start.

        Raises:
            ModelError: for a body that no joint carries yet.
        """
        below, on = Transform.identity(), body
        carriers = {joint.child: joint for joint in self._joints.values()}
        for _ in range(len(carriers) + 1):
            if on == "ground":
                return below
            if on not in carriers:
                raise ModelError(
                    f"body {body!r}: no joint carries {on!r} yet, so that it has no place; there are joints of "
                    f"{listed(carriers)}"
                )
            joint = carriers[on]
            if joint.meets is not None:
                below = below @ joint.meets.inverse()
            below, on = below @ joint.kind.transform(joint.start) @ joint.placement, joint.parent
        raise ModelError(f"body {body!r}: the joints below it go round in a circle")

    def strut(
        self,
        name: str,
        first: str,
        second: str,
        at: Any = (0.0, 0.0, 0.0),
        meets: Any = (0.0, 0.0, 0.0),
        *,
        axis: Any = None,
        spring: Spring | None = None,
        masses: Any = (0.0, 0.0),
        actuated: bool = False,
    ) -> None:
        """Adds two parts that slide in each other, between points of two bodies. [004, §4.3]

        Its parts are the bodies NAME1, which hangs on the first body by a joint NAME1, and NAME2, which slides in NAME1
        by a joint NAME2. A loop NAME connects it to the second body. The position of NAME2 is the strut's length.

        Args:
            name: its name, and that of its actuator.
            first, second: names of bodies that joints carry already, or "ground".
            at: 3, the point on the first body, m.
            meets: 3, the point on the second body, m.
            axis: 3, the direction of both pins along the axes of the first body. If None, the strut has a universal
                joint on the first body and a ball on the second.
            spring: the spring between its ends.
            masses: masses of its two parts, kg: slender bars, each half as long as the strut in the assembled pose.
            actuated: whether a motor drives it.
        """
        what = f"strut {name!r}"
        if not isinstance(spring, Spring | None):
            raise ModelError(f"{what}: its spring must be a Spring, got {spring!r}")
        foot, tip = numbers(f"{what}: its first point", at, (3,)), numbers(f"{what}: its second point", meets, (3,))
        weights = numbers(f"{what}: its masses", masses, (2,), least=0.0)
        base, goal = self.pose(first), self.pose(second)
        between = base.E @ (goal.r + goal.E.T @ tip - base.r) - foot  # in the axes of the first body
        length = float(np.linalg.norm(between))
        require(length > _SHORTEST, f"{what}: both its ends are at one point in the assembled pose")
        if axis is None:
            across = pointing_axes(between, X)[0]
        else:
            across = _unit(f"{what}: its axis", axis)
            askew = abs(float(between @ across))
            require(
                askew <= ASKEW * length,
                f"{what}: its ends are {askew:.4g} m apart along the axis of its pins, which they cannot bridge; move "
                "one of them, or leave out the axis for a strut with a universal joint and a ball",
            )
        along = between - (between @ across) * across
        along = along / np.linalg.norm(along)
        turned = np.column_stack([across, np.cross(along, across), along])  # from the strut's axes to the first body's
        bodies = [f"{name}{part}" for part in (1, 2)]
        for body, mass, middle in zip(bodies, weights, (0.25, -0.25), strict=True):
            thin = mass * (0.5 * length) ** 2 / 12.0
            self.body(body, mass, (0.0, 0.0, middle * length if mass else 0.0), (thin, thin, 0.0))
        hinge = Universal(first=X, second=Y) if axis is None else Revolute(axis=X)
        self.joint(bodies[0], hinge, first, bodies[0], foot, turned)
        self.joint(bodies[1], Prismatic(axis=Z), bodies[0], bodies[1], start=[length])
        pin = Spherical() if axis is None else Revolute(axis=X)
        self.loop(name, pin, bodies[1], second, meets=tip, meets_turned=goal.E @ base.E.T @ turned)
        if spring is not None:
            self.spring(name, *bodies, **vars(spring))  # from the foot of one part to the end of the other
        if actuated:
            self.actuator(name, bodies[1])


def _unit(what: str, axis: Any) -> np.ndarray:
    direction = numbers(what, axis, (3,))
    size = float(np.linalg.norm(direction))
    require(size > 0.0, f"{what} has no direction")
    return direction / size
