"""Describing a mechanism in one pose in which its loops are closed, by points and axes in the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.mechanisms.checks import pointing_axes
from coupler.mechanisms.struts import StrutBuilder
from coupler.model import Cylinder, Joint, LoopKind, ModelError, Prismatic, Revolute, Spherical
from coupler.model.axes import plane_across
from coupler.model.numbers import numbers
from coupler.model.wording import listed
from coupler.spatial import RigidInertia, Transform

Bar = tuple[Any, Any]  # where it begins and where it ends, m


@dataclass(frozen=True)
class Bars:
    """The round bars of which the links of a mechanism are made.

    Attributes:
        radius: m.
        density: kg/m³; that of aluminium by default.
    """

    radius: float = 0.01
    density: float = 2700.0

    def __post_init__(self) -> None:
        for quantity in ("radius", "density"):
            numbers(f"bars: their {quantity}", getattr(self, quantity), (), least=0.0)


ALUMINIUM = Bars()


class PosedBuilder(StrutBuilder):
    """Describes a mechanism by where its joints are in one pose, instead of by frames on its bodies.

        b = PosedBuilder("lever")
        b.link("lever", Revolute(axis=(0, 1, 0)), "ground", at=(0, 0, 0), bars=[((0, 0, 0), (0.3, 0, 0))])
        b.link("cylinder", Revolute(axis=(0, 1, 0)), "ground", at=(0.1, 0, -0.2))
        b.link("piston", Prismatic(axis=(1, 0, 2)), "cylinder", at=(0.2, 0, 0), actuated=True)
        b.close("pin", Revolute(axis=(0, 1, 0)), "piston", "lever", at=(0.2, 0, 0))

    In that pose the frame of each body is parallel to the world's, with its origin at the body's joint. The methods of
    `StrutBuilder` and `RobotBuilder` work as well.

    Attributes:
        bars: the bars that links are made of.
    """

    def __init__(self, name: str = "mechanism", bars: Bars = ALUMINIUM, gravity: Any = (0.0, 0.0, -9.81)) -> None:
        super().__init__(name, gravity)
        self.bars = bars
        self._origins: dict[str, np.ndarray] = {"ground": np.zeros(3)}

    def link(
        self,
        name: str,
        kind: Joint,
        parent: str,
        at: Any,
        *,
        bars: Sequence[Bar] = (),
        weighs: tuple[float, Any, Any] | None = None,
        position: Any = None,
        independent: bool = False,
        actuated: bool = False,
    ) -> None:
        """Adds a body, and the joint of the same name on which it hangs.

        Args:
            name: the name of both.
            kind: how the joint moves, with axes along the world's in this pose.
            parent: the body that carries it, or "ground".
            at: 3, where the joint is in this pose, m.
            bars: the round bars that the body is made of, each from one point to another, m.
            weighs: mass, kg, centre of mass in this pose, m, and inertia about it, kg m², 3 × 3 or three moments; those
                of its bars if None.
            position: (nq,), the joint's position in this pose; neutral if None.
            independent, actuated: as for `RobotBuilder.joint`.
        """
        what = f"link {name!r}"
        origin = numbers(f"{what}: its place", at, (3,))
        start = kind.neutral() if position is None else numbers(f"{what}: its position", position, (kind.nq,))
        X, carrier = kind.transform(start), self._origin(what, parent)
        if weighs is None:
            mass, centre, inertia = self._weight_of(what, bars)
        else:
            mass, centre, inertia = weighs
        self.body(name, mass, np.asarray(centre, float) - origin if mass else np.zeros(3), inertia)
        self._origins[name] = origin
        place = Transform(X.E.T, origin - X.E @ X.r - carrier)  # before the joint moves: the frame it then moves from
        self.joint(name, kind, parent, name, place, independent=independent, actuated=actuated, start=start)
        for begin, end in bars if self.bars.radius else ():
            self._draw(name, np.asarray(begin, float) - origin, np.asarray(end, float) - origin)

    def linear_actuator(
        self, names: tuple[str, str], hinge: Joint, parent: str, start: np.ndarray, end: np.ndarray, length: float
    ) -> None:
        """Adds a cylinder on a hinge and a piston in it, which a motor drives; each is half as long as both together.

        Args:
            names: names of the cylinder and of the piston.
            hinge: the joint on which the cylinder hangs.
            parent: the body that carries it, or "ground".
            start, end: 3, where the cylinder begins and the piston ends, m.
            length: the position of the piston in this pose, m.
        """
        middle, (cylinder, piston) = 0.5 * (start + end), names
        self.link(cylinder, hinge, parent, start, bars=[(start, middle)])
        along = Prismatic(axis=end - start)
        self.link(piston, along, cylinder, end, bars=[(middle, end)], position=[length], actuated=True)

    def pointing_actuator(
        self,
        names: tuple[str, str, str, str],
        start: np.ndarray,
        end: np.ndarray,
        platform: str,
        prefer: np.ndarray,
        offset: float = 0.0,
    ) -> None:
        """Adds a linear actuator from a universal joint on the ground to a ball on a platform: a leg UPS.

        Args:
            names: names of the joints swing, cylinder and piston, and of the ball.
            start, end: 3, where the leg begins and ends, m.
            platform: the body that it ends on.
            prefer: 3, the axis that the first axis of the universal joint is closest to.
            offset: how far its second axis is from the first, along the leg, m.
        """
        (swing, cylinder, piston, ball), length = names, float(np.linalg.norm(end - start))
        first, second = pointing_axes(end - start, prefer)
        hinge = start + offset * ((end - start) / length) if offset else start
        self.link(swing, Revolute(axis=first), "ground", start, bars=[(start, hinge)] if offset else ())
        self.linear_actuator((cylinder, piston), Revolute(axis=second), swing, hinge, end, length)
        self.close(ball, Spherical(), piston, platform, end)

    def pointing_rod(
        self,
        names: tuple[str, str, str],
        parent: str,
        start: np.ndarray,
        end: np.ndarray,
        platform: str,
        prefer: np.ndarray,
        count: int = 1,
    ) -> None:
        """Adds a rod from a universal joint on a body to a ball on a platform.

        Args:
            names: names of the joints swing and rod, and of the ball.
            parent: the body that carries it.
            start, end: 3, where the rod begins and ends, m.
            platform: the body that it ends on.
            prefer: 3, the axis that the first axis of the universal joint is closest to.
            count: the number of parallel rods that it stands for.
        """
        (swing, rod, ball), (first, second) = names, pointing_axes(end - start, prefer)
        self.link(swing, Revolute(axis=first), parent, start)
        self.link(rod, Revolute(axis=second), swing, start, bars=[(start, end)] * count)
        self.close(ball, Spherical(), rod, platform, end)

    def _draw(self, body: str, begin: np.ndarray, end: np.ndarray) -> None:
        """Adds the shape of a bar, which touches nothing."""
        z = (end - begin) / np.linalg.norm(end - begin)
        turned = np.column_stack([*plane_across(z), z])
        bar = Cylinder(self.bars.radius, float(np.linalg.norm(end - begin)))
        self.shape(body, bar, 0.5 * (begin + end), turned, group=0, meets=0)

    def close(self, name: str, kind: LoopKind, first: str, second: str, at: Any, other: Any = None) -> None:
        """Adds a joint that closes a loop.

        Args:
            name: the loop's name.
            kind: as for `RobotBuilder.loop`, with axes along the world's in this pose.
            first, second: the bodies that it connects.
            at: 3, where it is in this pose, m.
            other: 3, where a `Rod` ends on the second body, m.
        """
        what = f"loop {name!r}"
        points = [numbers(f"{what}: its place", point, (3,)) for point in (at, at if other is None else other)]
        places = [point - self._origin(what, body) for point, body in zip(points, (first, second), strict=True)]
        self.loop(name, kind, first, second, *places)

    def point(self, name: str, body: str, at: Any) -> None:
        """Adds a named frame to a body, at a point of the world in this pose."""
        self.frame(name, body, numbers(f"frame {name!r}", at, (3,)) - self._origin(f"frame {name!r}", body))

    def _origin(self, what: str, body: str) -> np.ndarray:
        if body not in self._origins:
            raise ModelError(f"{what}: there is no body {body!r} yet; there are {listed(self._origins)}")
        return self._origins[body]

    def _weight_of(self, what: str, bars: Sequence[Bar]) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass, centre and inertia of bars; zeros if there are none."""
        total = RigidInertia(0.0, np.zeros(3), np.zeros((3, 3)))
        for ends in bars:
            start, end = (numbers(f"{what}: the end of a bar", point, (3,)) for point in ends)
            length = float(np.linalg.norm(end - start))
            if length == 0.0:
                raise ModelError(f"{what}: both ends of a bar are at {start} m")
            mass, along = self.bars.density * np.pi * self.bars.radius**2 * length, (end - start) / length
            thin, thick = mass * length**2 / 12.0, mass * self.bars.radius**2 / 4.0
            inertia = (thin + thick) * np.eye(3) + (thick - thin) * np.outer(along, along)
            total = total + RigidInertia.from_centre(mass, 0.5 * (start + end), inertia)
        if not total.m:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        centre = total.h / total.m
        shift = centre @ centre * np.eye(3) - np.outer(centre, centre)
        return float(total.m), centre, total.I - total.m * shift
