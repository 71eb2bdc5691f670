"""The parts of a robot, named and moved onto a body of another robot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coupler.model.actuators import Actuator
from coupler.model.bodies import Body
from coupler.model.elements import PointElement
from coupler.model.errors import ModelError
from coupler.model.joints import Free
from coupler.model.loops import Coupling, LoopJoint
from coupler.model.names import Taken, take
from coupler.model.robot import Robot
from coupler.model.shapes import Shape
from coupler.model.tree import GROUND, TreeJoint
from coupler.spatial import Transform


class Attached:
    """All parts of a robot, named, with those on its ground moved to another body.

    Attributes:
        bodies, joints, loops, couplings, springs, actuators, frames, contacts, keyframes: by name.
        shapes, exclusions, contact_pairs, warnings: those of the robot, as lists.
    """

    def __init__(self, robot: Robot, prefix: str, to: str, place: Transform) -> None:
        """Args: the robot, the prefix of its names, and the body that carries it, with the place on that body."""
        self._robot, self._prefix, self._to, self._place = robot, prefix, to, place
        self.bodies = {prefix + name: self._body(body) for name, body in robot.bodies.items()}
        self.frames, self.contacts = dict[str, tuple[str, Transform]](), dict[str, tuple[str, np.ndarray]]()
        for body in robot.bodies.values():
            self.frames |= {prefix + name: (prefix + body.name, at) for name, at in body.frames.items()}
            self.contacts |= {prefix + name: (prefix + body.name, at) for name, at in body.contacts.items()}
        self.joints = {prefix + joint.name: self._joint(joint) for joint in robot.joints}
        self.loops = {prefix + loop.name: self._loop(loop) for loop in robot.loops}
        self.couplings = {prefix + coupling.name: self._coupling(coupling) for coupling in robot.couplings}
        self.springs = {prefix + spring.name: self._spring(spring) for spring in robot.elements}
        self.actuators = {prefix + actuator.name: self._actuator(actuator) for actuator in robot.actuators}
        self.shapes = [self._shape(shape) for shape in robot.shapes]
        self.keyframes = {prefix + name: self._keyframe(*state) for name, state in robot.keyframes.items()}
        self.exclusions = dict[tuple[str, str], None]()
        for pair in robot.exclusions:
            one, other = sorted(map(self._name, pair))
            self.exclusions[one, other] = None
        self.contact_pairs = [
            replace(pair, first=prefix + pair.first, second=prefix + pair.second) for pair in robot.contact_pairs
        ]
        self.warnings = [f"{prefix}: {text}" if prefix else text for text in robot.warnings]

    def taken(self, places: Taken, bonds: Taken, elements: Taken) -> tuple[Taken, Taken, Taken]:
        """The names in use once these parts are added: of places, of bonds between bodies, and of springs.

        Raises:
            ModelError: for a name that is in use already.
        """
        places, bonds, elements = dict(places), dict(bonds), dict(elements)
        robot = f"robot {self._robot.name!r}"
        try:
            for name in (*self.bodies, *self.frames, *self.contacts):
                take(places, name, robot)
            for name in (*self.joints, *self.loops, *self.couplings):
                take(bonds, name, robot)
            for name in self.springs:
                take(elements, name, robot)
        except ModelError as error:
            raise ModelError(f"{error}: attach it with {'another' if self._prefix else 'a'} prefix") from None
        return places, bonds, elements

    def _name(self, body: str) -> str:
        return self._to if body == GROUND else self._prefix + body

    def _on(self, body: str, at: Transform) -> Transform:
        """A place on a body; a place on the robot's ground becomes one on the body that carries it."""
        return at @ self._place if body == GROUND else at

    def _body(self, body: Body) -> Body:
        return replace(body, name=self._prefix + body.name, frames={}, contacts={})

    def _joint(self, joint: TreeJoint) -> TreeJoint:
        bodies = {end: self._name(getattr(joint, end)) for end in ("parent", "child")}
        named = replace(joint, name=self._prefix + joint.name, **bodies)
        if self._floats(joint):
            return replace(named, start=self._moved(named.kind.neutral() if named.start is None else named.start))
        return replace(named, placement=self._on(joint.parent, joint.placement))

    def _floats(self, joint: TreeJoint) -> bool:
        """Whether a joint's position is a pose in the world, both before and after the robot is attached."""
        plain = not (joint.placement.E - np.eye(3)).any() and not joint.placement.r.any() and joint.meets is None
        return joint.parent == GROUND == self._to and isinstance(joint.kind, Free) and plain

    def _moved(self, q: np.ndarray) -> np.ndarray:
        """The position of a floating joint after its robot has been moved."""
        return Free.position_of(Free().placed(q) @ self._place)

    def _loop(self, loop: LoopJoint) -> LoopJoint:
        return replace(
            loop,
            name=self._prefix + loop.name,
            predecessor=self._name(loop.predecessor),
            successor=self._name(loop.successor),
            predecessor_frame=self._on(loop.predecessor, loop.predecessor_frame),
            successor_frame=self._on(loop.successor, loop.successor_frame),
        )

    def _coupling(self, coupling: Coupling) -> Coupling:
        names = {
            which: tuple(self._prefix + name for name in getattr(coupling, which))
            for which in ("joints", "independent", "solves")
        }
        return replace(coupling, name=self._prefix + coupling.name, **names)

    def _spring(self, spring: PointElement) -> PointElement:
        points = {
            end: self._on(body, Transform.translation(point)).r
            for end, body, point in (
                ("first_point", spring.first, spring.first_point),
                ("second_point", spring.second, spring.second_point),
            )
        }
        bodies = {"first": self._name(spring.first), "second": self._name(spring.second)}
        return replace(spring, name=self._prefix + spring.name, **bodies, **points)

    def _actuator(self, actuator: Actuator) -> Actuator:
        gears = {self._prefix + joint: gear for joint, gear in actuator.gears.items()}
        along = actuator.along and actuator.along.moved(self._name, self._on)
        return replace(actuator, name=self._prefix + actuator.name, gears=gears, along=along)

    def _shape(self, shape: Shape) -> Shape:
        name = self._prefix + shape.name if shape.name else ""
        return replace(shape, name=name, body=self._name(shape.body), at=self._on(shape.body, shape.at))

    def _keyframe(self, q: np.ndarray, v: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
        robot, joints = self._robot, {joint.name: joint for joint in self._robot.joints}
        positions = dict(robot.joint_positions(q))
        positions |= {name: self._moved(p) for name, p in positions.items() if self._floats(joints[name])}
        velocities = {joint: np.squeeze(v[robot.v_slice(joint)]) for joint in robot.independent_joints}
        return tuple({self._prefix + name: x for name, x in by_joint.items()} for by_joint in (positions, velocities))  # type: ignore[return-value]
