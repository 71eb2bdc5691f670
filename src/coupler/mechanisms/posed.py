"""Describing a mechanism as it stands: points and axes in the world, in a pose in which all its loops are closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.mechanisms.struts import StrutBuilder
from coupler.model import Cylinder, Joint, LoopKind, ModelError, Prismatic
from coupler.model.axes import plane_across
from coupler.model.numbers import numbers
from coupler.model.wording import listed
from coupler.spatial import RigidInertia, Transform

Bar = tuple[Any, Any]  # where it begins and where it ends, m


@dataclass(frozen=True)
class Bars:
    """What the links of a mechanism are made of: round bars.

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
    """Describes a mechanism by where its joints are in one pose, rather than by frames on its bodies.

        b = PosedBuilder("lever")
        b.link("lever", Revolute(axis=(0, 1, 0)), "ground", at=(0, 0, 0), bars=[((0, 0, 0), (0.3, 0, 0))])
        b.link("cylinder", Revolute(axis=(0, 1, 0)), "ground", at=(0.1, 0, -0.2))
        b.link("piston", Prismatic(axis=(1, 0, 2)), "cylinder", at=(0.2, 0, 0), actuated=True)
        b.close("pin", Revolute(axis=(0, 1, 0)), "piston", "lever", at=(0.2, 0, 0))

    The frame of each body is parallel to the world's in that pose, with its origin on the body's joint. All methods of
    `StrutBuilder` can be used besides.

    Attributes:
        bars: what its links are made of.
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
        """A body, and the joint of the same name that carries it.

        Args:
            kind: how it moves, with axes in the world in this pose.
            parent: the body that carries it, or "ground".
            at: 3, where the joint is in this pose, m.
            bars: what it is made of: round bars, each from a point to another, m.
            weighs: mass in kg, centre in this pose in m, and inertia about it in kg m², 3 × 3 or three moments; that of
                its bars if not given.
            position: nq entries, of the joint in this pose; neutral if not given.
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
        """A cylinder on a hinge, and a piston in it, which a motor drives; each is half as long as both together.

        Args:
            names: of the cylinder and of the piston.
            hinge: how the cylinder moves.
            parent: the body that carries it, or "ground".
            start, end: 3, where the cylinder begins and the piston ends, m.
            length: the position of the piston in this pose, m.
        """
        middle, (cylinder, piston) = 0.5 * (start + end), names
        self.link(cylinder, hinge, parent, start, bars=[(start, middle)])
        along = Prismatic(axis=end - start)
        self.link(piston, along, cylinder, end, bars=[(middle, end)], position=[length], actuated=True)

    def _draw(self, body: str, begin: np.ndarray, end: np.ndarray) -> None:
        """What a bar looks like; it touches nothing."""
        z = (end - begin) / np.linalg.norm(end - begin)
        turned = np.column_stack([*plane_across(z), z])
        bar = Cylinder(self.bars.radius, float(np.linalg.norm(end - begin)))
        self.shape(body, bar, 0.5 * (begin + end), turned, group=0, meets=0)

    def close(self, name: str, kind: LoopKind, first: str, second: str, at: Any, other: Any = None) -> None:
        """A joint that closes a loop.

        Args:
            kind: as for `RobotBuilder.loop`, with axes in the world in this pose.
            first, second: the bodies that it holds together.
            at: 3, where it is in this pose, m.
            other: 3, where the end of a rod is on the second body, m.
        """
        what = f"loop {name!r}"
        points = [numbers(f"{what}: its place", point, (3,)) for point in (at, at if other is None else other)]
        places = [point - self._origin(what, body) for point, body in zip(points, (first, second), strict=True)]
        self.loop(name, kind, first, second, *places)

    def point(self, name: str, body: str, at: Any) -> None:
        """A named frame on a body, at a point in the world in this pose."""
        self.frame(name, body, numbers(f"frame {name!r}", at, (3,)) - self._origin(f"frame {name!r}", body))

    def _origin(self, what: str, body: str) -> np.ndarray:
        if body not in self._origins:
            raise ModelError(f"{what}: there is no body {body!r} yet; there are {listed(self._origins)}")
        return self._origins[body]

    def _weight_of(self, what: str, bars: Sequence[Bar]) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass, centre and inertia of bars; nothing where there is none."""
        total = RigidInertia(0.0, np.zeros(3), np.zeros((3, 3)))
        for ends in bars:
            start, end = (numbers(f"{what}: the end of a bar", point, (3,)) for point in ends)
            length = float(np.linalg.norm(end - start))
            if length == 0.0:
                raise ModelError(f"{what}: both ends of a bar are at {start} m")
            mass, along = self.bars.density * np.pi * self.bars.radius**2 * length, (end - start) / length
            thin, thick = mass * length**2 / 12.0, mass * self.bars.radius**2 / 4.0
            own = (thin + thick) * np.eye(3) + (thick - thin) * np.outer(along, along)
            total = total + RigidInertia.from_centre(mass, 0.5 * (start + end), own)
        if not total.m:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        centre = total.h / total.m
        shift = centre @ centre * np.eye(3) - np.outer(centre, centre)
        return float(total.m), centre, total.I - total.m * shift
