"""Describing robots and scenes, part by part."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from coupler.model.attaching import Attached
from coupler.model.bonds import Bonds
from coupler.model.closed_forms.choice import ClosureChoice
from coupler.model.compose import compose
from coupler.model.errors import ModelError
from coupler.model.grounds import floor_shape, terrain_shape
from coupler.model.joints import Free
from coupler.model.names import take
from coupler.model.numbers import numbers
from coupler.model.places import Place, placed
from coupler.model.robot import Robot, check_robot
from coupler.model.shapes import Geometry
from coupler.model.solids import solid_of
from coupler.model.tree import GROUND, TreeJoint
from coupler.model.wording import counted, listed


class RobotBuilder(Bonds):
    """Describes a robot, or a scene of robots and objects, part by part; `build` returns it as a `Robot`.

        b = RobotBuilder("leg")
        b.body("thigh", mass=2.0, centre=(0, 0, -0.1), inertia=(0.02, 0.02, 0.002))
        b.body("rotor", mass=0.1, inertia=(1e-4, 2e-4, 1e-4))
        b.joint("hip", Revolute(axis=(0, 1, 0)), "ground", "thigh", at=(0, 0, 1), actuated=True)
        b.joint("motor", Revolute(axis=(0, 1, 0)), "ground", "rotor", at=(0, 0.05, 1))
        b.couple("gears", ["hip", "motor"], gear(6.0), independent=["hip"])   # from coupler.mechanisms
        robot = b.build()                                                     # nv is 1: the motor turns with the hip

    Each body hangs on exactly one joint, and these joints form a tree that starts at "ground". Further connections
    close loops: `loop` adds a joint between two bodies of the tree, `couple` a function that relates joint positions.
    Parts may be described in any order, and each name may be used only once. A mistake within one part raises an error
    where the part is described; a mistake between parts raises one in `build`.

    Units are SI: m, kg, kg m², rad. A place on a body is given by `at`, either a point in the body's frame (3, m) or a
    Transform from the body's frame to the frame meant. With a point, `turned` may give the orientation as a 3 × 3
    rotation matrix whose columns are the frame's axes. A child's frame is at its joint unless `meets` places it
    elsewhere.
    """

    def __repr__(self) -> str:
        counts = counted(len(self._bodies), "body", "bodies"), counted(len(self._joints), "joint")
        return f"<RobotBuilder {self.name!r}: {', '.join(counts)}>"

    def attach(
        self, robot: Robot, prefix: str = "", to: str = GROUND, at: Place = (0.0, 0.0, 0.0), turned: Any = None
    ) -> None:
        """Adds all parts of another robot: a gripper to an arm, say, or one of several robots to a scene.

            b = RobotBuilder("cell")
            b.attach(arm)
            b.attach(gripper, prefix="gripper/", to="wrist", at=(0, 0, 0.05))
            b.object("box", Box((0.05, 0.05, 0.05)), mass=0.2, at=(0.4, 0, 0.025))

        Whatever the robot had on its ground, floors included, moves to the body `to`. A floating base starts at the
        given place, but its position remains one in the world. The robot's own gravity is ignored.

        Args:
            robot: the robot to add; it is not changed.
            prefix: put before each of its names.
            to: the body that takes the place of the robot's ground, or "ground".
            at, turned: where the frame of the robot's ground is on that body.

        Raises:
            ModelError: for a name that is already in use; nothing is added then.
        """
        check_robot(robot)
        robot.check_fixed("attach")
        if not isinstance(prefix, str):
            raise ModelError(f"attach: its prefix must be text, got {prefix!r}")
        attached = Attached(robot, prefix, to, placed(f"robot {robot.name!r}", at, turned))
        taken = attached.taken(self._places, self._bonds, self._elements)
        lost = sorted({*self._keyframes} & {*attached.keyframes})
        if lost:
            raise ModelError(f"there is a keyframe {lost[0]!r} already; choose another prefix")
        lost = sorted({*self._actuators} & {*attached.actuators})
        if lost:
            raise ModelError(f"there is an actuator {lost[0]!r} already; choose another prefix")
        self._places, self._bonds, self._elements = taken
        self._bodies |= attached.bodies
        self._joints |= attached.joints
        self._loops |= attached.loops
        self._couplings |= attached.couplings
        self._springs |= attached.springs
        self._actuators |= attached.actuators
        self._frames |= attached.frames
        self._contacts |= attached.contacts
        self._shapes += attached.shapes
        self._keyframes |= attached.keyframes
        self._exclusions.update(attached.exclusions)
        self._contact_pairs += attached.contact_pairs
        self._warnings += attached.warnings
        self._precision = max(self._precision, robot.precision)
        self._lock_idle |= robot.locks_idle
        self._closure |= {prefix + name: closing for name, closing in robot.closure.items()}

    def object(
        self,
        name: str,
        geometry: Geometry,
        at: Place = (0.0, 0.0, 0.0),
        turned: Any = None,
        *,
        mass: float | None = None,
        density: float = 1000.0,
        friction: float | None = None,
        colour: Any = None,
        restitution: float | None = None,
    ) -> None:
        """Adds a free body of uniform density: a box to grasp, a ball to kick.

        Args:
            name: the name of the body, of its shape and of the free joint on which it floats.
            geometry: its shape, in the body's frame; the mass and inertia of a mesh are those of its convex hull.
            at, turned: its initial pose in the world.
            mass: kg; if not given, it follows from the density.
            density: kg/m³.
            friction: coefficient of sliding friction; if None, the other shape's counts, or else 1.
            colour: red, green, blue and opacity, from 0 to 1 each.
            restitution: how its contacts rebound, 0 to 1; see `Shape`.
        """
        place = placed(f"object {name!r}", at, turned)
        weight, centre, inertia = solid_of(f"object {name!r}", geometry, mass, density)
        for taken in (self._places, self._bonds):  # before anything is added
            take(dict(taken), name, "an object")
        self.body(name, weight, centre, inertia)
        self.joint(name, Free(), GROUND, name, start=Free.position_of(place))
        self.shape(name, geometry, name=name, friction=friction, colour=colour, restitution=restitution)

    def floor(self, friction: float | None = None, height: float = 0.0, *, restitution: float | None = None) -> None:
        """Adds the plane z = height as a floor for contact points and shapes; see `Robot.with_floor`."""
        self._shapes.append(floor_shape("floor", friction, height, restitution))

    def terrain(
        self, heights: Any, size: Any, at: Place = (0.0, 0.0, 0.0), turned: Any = None, *, friction: float | None = None
    ) -> None:
        """Adds uneven ground, given by its heights over a grid; see `HeightField` and `Robot.with_terrain`."""
        self._shapes.append(terrain_shape("terrain", heights, size, at, turned, friction))

    def build(
        self,
        *,
        lock_idle: bool = False,
        largest: int | None = None,
        precision: float = 0.0,
        closure: ClosureChoice | None = None,
    ) -> Robot:
        """Checks the description as a whole and returns the robot.

        Args:
            lock_idle: whether to lock idle freedoms, such as the spin of a rod between two ball joints. Locking goes on
                until no idle freedom is left.
            largest: upper bound on equations × joint velocities of the loops in one cluster, for descriptions that
                are not trusted; unlimited if None.
            precision: m or rad, how coarsely lengths, angles and directions are rounded. Rows of loops that follow from
                others up to this rounding are dropped, with a warning.
            closure: how to close loops, as for `Robot.with_closure`. If None, loops of attached robots are closed as
                they were there, and all others by "auto".

        Raises:
            ModelError: for parts that do not fit together, naming them and what to change.
        """
        for shape in self._shapes:
            if shape.body not in self._bodies and shape.body != GROUND:
                known = listed([GROUND, *self._bodies], like=shape.body)
                raise ModelError(f"shape {shape.name!r}: there is no body {shape.body!r}; there are {known}")
        for body in (body for pair in self._exclusions for body in pair):
            if body not in self._bodies and body != GROUND:
                known = listed([GROUND, *self._bodies], like=body)
                raise ModelError(f"an exclusion: there is no body {body!r}; there are {known}")
        shapes = Counter(shape.name for shape in self._shapes)
        for name in (name for pair in self._contact_pairs for name in (pair.first, pair.second)):
            if shapes[name] != 1:
                raise ModelError(
                    f"a contact pair: there are {shapes[name]} shapes called {name!r}, not one; "
                    "b.shape(..., name=...) names the two that are meant"
                )
        lock_idle = lock_idle or self._lock_idle
        robot = compose(
            self.name,
            self.gravity,
            self._equipped(),
            self._marked(),
            tuple(self._loops.values()),
            tuple(self._couplings.values()),
            tuple(self._springs.values()),
            actuators=tuple(self._actuators.values()),
            lock_idle=lock_idle,
            largest=largest,
            precision=max(self._precision, float(numbers("precision", precision, (), least=0.0))),
            closure=self._closure if closure is None else closure,
            keep=self._keep,
        )
        keyframes, lost = self._keyframes_of(robot)
        return replace(
            robot,
            shapes=tuple(self._shapes),
            exclusions=tuple(sorted(self._exclusions)),
            contact_pairs=tuple(self._contact_pairs),
            locks_idle=lock_idle,
            keyframes=MappingProxyType(keyframes),
            remarks=(*self._remarks, *robot.remarks),
            warnings=(*self._warnings, *robot.warnings, *lost),
        )

    def _marked(self) -> tuple[TreeJoint, ...]:
        """The joints, with those that an actuator drives marked as actuated."""
        driven = {joint for actuator in self._actuators.values() for joint in actuator.gears}
        return tuple(
            replace(joint, actuated=joint.actuated or (joint.name in driven and joint.kind.nv > 0))
            for joint in self._joints.values()
        )

    def _keyframes_of(self, robot: Robot) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], list[str]]:
        """The named states, closed; and a warning for each that cannot be closed nearby."""
        keyframes, lost = {}, []
        for name, (positions, velocities) in self._keyframes.items():
            try:
                q = robot.pack_q(positions)
                given = {joint: v for joint, v in velocities.items() if joint in robot.independent_joints}
                v = robot.pack_v(given)
                if q.ndim != 1 or v.ndim != 1:
                    raise ModelError("give one number, or one for each entry of the joint's position or velocity")
                keyframes[name] = q, v
            except ModelError as error:
                lost.append(f"keyframe {name!r} is left out: {error}")
        return keyframes, lost
