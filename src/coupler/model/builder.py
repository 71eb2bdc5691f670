"""Describing a robot, part by part.

    b = RobotBuilder("leg")
    b.body("thigh", mass=2.0, centre=(0, 0, -0.1), inertia=(0.02, 0.02, 0.002))
    b.body("rotor", mass=0.1, inertia=(1e-4, 1e-4, 2e-4))
    b.joint("hip", Revolute(axis=(0, 1, 0)), "ground", "thigh", at=(0, 0, 1))
    b.joint("motor", Revolute(axis=(0, 1, 0)), "ground", "rotor", at=(0, 0.05, 1))
    b.couple("gears", ["hip", "motor"], gear(6.0), independent=["hip"])
    robot = b.build()

Parts may come in any order. Mistakes in a part are told where it is described, those between parts by `build`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.model.bodies import Body
from coupler.model.compose import compose
from coupler.model.elements import PointElement
from coupler.model.errors import ModelError
from coupler.model.joint import Joint
from coupler.model.loops import Coupling, LoopJoint, Rod
from coupler.model.numbers import numbers
from coupler.model.robot import Robot
from coupler.model.tree import GROUND, TreeJoint
from coupler.spatial import Transform

__all__ = ["RobotBuilder"]

Place = Any  # a point (three numbers, m) or a Transform


class RobotBuilder:
    """Collects the parts of a robot; `build` makes the robot.

    A place is given as `at`, a point in the body's frame or a Transform to the frame meant, and if it is a point,
    optionally `turned`, the 3 × 3 rotation matrix whose columns are the frame's axes.
    """

    def __init__(self, name: str, gravity: Any = (0.0, 0.0, -9.81)) -> None:
        self.name, self.gravity = name, numbers("gravity", gravity, (3,))
        self._bodies: dict[str, Body] = {}
        self._joints: dict[str, TreeJoint] = {}
        self._loops: dict[str, LoopJoint] = {}
        self._couplings: dict[str, Coupling] = {}
        self._elements: dict[str, PointElement] = {}
        self._places: dict[str, str] = {GROUND: "ground"}
        self._bonds: dict[str, str] = {}
        self._springs: dict[str, str] = {}

    def body(
        self,
        name: str,
        mass: float = 0.0,
        centre: Any = (0.0, 0.0, 0.0),
        inertia: Any = (0.0, 0.0, 0.0),
        *,
        ideal: bool = False,
    ) -> None:
        """A rigid body.

        Args:
            name: its name.
            mass: kg.
            centre: 3, the centre of mass in the body's frame, m.
            inertia: about the centre of mass, in the axes of the body's frame, kg m²: 3 × 3, or the three moments.
            ideal: whether the inertia may be one that no real body has; see `Body`.
        """
        moments = np.asarray(inertia)
        if moments.shape == (3,):
            inertia = np.diag(moments)
        body = Body(name, mass, centre, inertia, ideal=ideal)
        self._new_place(name, "body")
        self._bodies[name] = body

    def frame(self, name: str, body: str, at: Place = (0.0, 0.0, 0.0), turned: Any = None) -> None:
        """A named frame on a body."""
        place, known = _place(f"frame {name!r}", at, turned), self._known(body, f"frame {name!r}")
        self._new_place(name, "frame")
        self._bodies[body] = replace(known, frames={**known.frames, name: place})

    def contact(self, name: str, body: str, at: Any) -> None:
        """A named point on a body that may touch something."""
        point, known = numbers(f"contact point {name!r}", at, (3,)), self._known(body, f"contact point {name!r}")
        self._new_place(name, "contact point")
        self._bodies[body] = replace(known, contacts={**known.contacts, name: point})

    def joint(
        self,
        name: str,
        kind: Joint,
        parent: str,
        child: str,
        at: Place = (0.0, 0.0, 0.0),
        turned: Any = None,
        *,
        independent: bool = False,
        actuated: bool = False,
    ) -> None:
        """A joint by which a parent carries a child, whose frame is the joint's.

        Args:
            name: its name.
            kind: how it moves, with its passive properties and limits.
            parent: name of a body, or "ground".
            child: name of a body.
            at: where it is on the parent.
            turned: how it is turned against the parent.
            independent: whether its velocity must be one of the robot's, where loops leave a choice.
            actuated: whether an actuator drives it; such joints are independent where possible.
        """
        if not isinstance(kind, Joint):
            raise ModelError(f"joint {name!r}: its kind must be a joint such as Revolute(...), got {kind!r}")
        place = _place(f"joint {name!r}", at, turned)
        self._new_bond(name, "joint")
        self._joints[name] = TreeJoint(name, kind, parent, child, place, independent, actuated)

    def loop(
        self,
        name: str,
        kind: Joint | Rod,
        first: str,
        second: str,
        at: Place = (0.0, 0.0, 0.0),
        meets: Place = (0.0, 0.0, 0.0),
        *,
        turned: Any = None,
        meets_turned: Any = None,
    ) -> None:
        """A joint that closes a loop between two bodies: a joint's freedoms remain, and a `Rod` keeps a distance.

        Args:
            name: its name.
            kind: `Spherical()` for point to point, `Fixed()` for a weld, any other joint, or a `Rod`.
            first, second: names of bodies, or "ground".
            at: where it is on the first body.
            meets: where it is on the second body.
            turned, meets_turned: how its frame is turned against each body.
        """
        ends = _place(f"loop {name!r}", at, turned), _place(f"loop {name!r}", meets, meets_turned)
        loop = LoopJoint(name, kind, first, second, *ends)
        self._new_bond(name, "loop")
        self._loops[name] = loop

    def couple(
        self,
        name: str,
        joints: Sequence[str],
        function: Callable[[Any], Any],
        independent: Sequence[str] = (),
        solves: Sequence[str] = (),
    ) -> None:
        """A relation between the positions of joints of one freedom each.

        Args:
            name: its name.
            joints: names of all joints that it relates.
            function: γ, which gives the positions of all joints from those of the independent ones, or φ, which takes
                all positions and is zero when they fit together. See `coupler.mechanisms`.
            independent: for a γ, names of the independent joints, in the order in which it takes them.
            solves: for a γ, names of loops and couplings that it is the solution of. They are checked against it, and
                add nothing to it.
        """
        coupling = Coupling(name, tuple(joints), tuple(independent), function, tuple(solves))
        self._new_bond(name, "coupling")
        self._couplings[name] = coupling

    def spring(self, name: str, first: str, second: str, at: Any, meets: Any, **properties: float) -> None:
        """A spring, a damper or both between a point of one body and one of another; see `PointElement`.

        Args:
            name: its name.
            first, second: names of bodies, or "ground".
            at, meets: the points, 3 each, m.
            properties: stiffness (N/m), free_length (m), pretension (N), damping (N s/m).
        """
        element = PointElement(name, first, second, at, meets, **properties)
        _take_name(self._springs, name, "spring")
        self._elements[name] = element

    def build(self, *, lock_idle: bool = False) -> Robot:
        """The robot, checked as a whole.

        Args:
            lock_idle: whether idle freedoms, such as the spin of a rod between two balls, are locked.
        """
        return compose(
            self.name,
            self.gravity,
            self._bodies,
            tuple(self._joints.values()),
            tuple(self._loops.values()),
            tuple(self._couplings.values()),
            tuple(self._elements.values()),
            lock_idle=lock_idle,
        )

    def _known(self, body: str, user: str) -> Body:
        if body not in self._bodies:
            raise ModelError(f"{user}: there is no body {body!r} yet; describe it first")
        return self._bodies[body]

    def _new_place(self, name: str, kind: str) -> None:
        """Bodies, frames and contact points share their names: each is a place to ask for."""
        _take_name(self._places, name, kind)

    def _new_bond(self, name: str, kind: str) -> None:
        """Joints, loops and couplings share their names."""
        _take_name(self._bonds, name, kind)


def _take_name(taken: dict[str, str], name: str, kind: str) -> None:
    if not isinstance(name, str) or not name:
        raise ModelError(f"a {kind} needs a name, got {name!r}")
    if name in taken:
        raise ModelError(f"the name {name!r} of a {kind} is taken already, by a {taken[name]}")
    taken[name] = kind


def _place(what: str, at: Place, turned: Any) -> Transform:
    """The transform to a frame that is given by a point and a rotation, or by itself."""
    if isinstance(at, Transform):
        if turned is not None:
            raise ModelError(f"{what}: its place is a Transform already; leave out turned")
        E, r = numbers(f"{what}: its rotation", at.E, (3, 3)), numbers(f"{what}: its point", at.r, (3,))
    else:
        r = numbers(f"{what}: its point", at, (3,))
        E = np.eye(3) if turned is None else numbers(f"{what}: its rotation", turned, (3, 3)).T
    if np.abs(E @ E.T - np.eye(3)).max() > 1e-6 or np.linalg.det(E) < 0:
        raise ModelError(f"{what}: its rotation is no rotation matrix:\n{E.T}")
    return Transform(E, r)
