"""The robot: what it is made of, its clusters, and its coordinates. Frozen once built."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from coupler.forks import imports
from coupler.model.errors import ModelError
from coupler.model.pickling import packed, unpacked
from coupler.model.robot_changes import RobotChanges
from coupler.model.text import robot_text
from coupler.model.wording import clipped, counted


@dataclass(frozen=True, eq=False, repr=False)
class Robot(RobotChanges):
    """A robot: bodies, joints and loops, and the coordinates of its state. It never changes once built.

        robot = coupler.load("robot.urdf")      # or coupler.robots.load("mini_cheetah"), or see `RobotBuilder`
        print(robot)                            # its clusters, loops and freedoms
        q, v = robot.random_state(0)            # (nq,) and (nv,): a state with closed loops
        q = robot.pack_q({"hip": 0.3})          # by name; other joints follow, or are neutral
        tau = coupler.inverse_dynamics(robot, q, v, np.zeros(robot.nv))
        tau[robot.v_slice("hip")]               # what of it belongs to one joint
        moon = robot.with_gravity((0, 0, -1.62))    # another robot, which shares all that is the same

    A state is q, (nq,), and v, (nv,):

    - q holds positions, rad or m, of the joints in `position_joints`, in the order in which joints are described. Of
      loops and couplings that are solved by a function γ, only independent joints are in it; of other loops all joints
      are, and they must fit together, as `close` makes them.
    - v holds velocities, rad/s or m/s, of `independent_joints`. Accelerations, rad/s² or m/s², and forces, N m or N,
      have the same entries.
    - A free joint has the entries x, y, z and a quaternion w, x, y, z in q, and in v its angular and then its linear
      velocity, in the body's own frame.

    Arrays may have leading dimensions, which make a batch of states: q of shape (1000, nq) and v of (1000, nv) are a
    thousand. Units are SI; spatial vectors are angular first.

    Attributes:
        name: what it is called.
        gravity: 3, acceleration of free fall in the world, m/s².
        bodies: by name; each has its mass, kg, centre, m, and inertia, kg m², in its own frame.
        joints: those of the spanning tree, by which bodies carry each other; each has its kind, and its place, m.
        loops: joints that close loops.
        couplings: relations between joint positions: gears, belts, differentials.
        elements: springs and dampers between points.
        remarks: what is worth knowing: rows of loops that follow from others, where meshes were found.
        warnings: what is suspicious: a singular zero position, a keyframe that cannot be, parts of a file that are not
            modelled.
        idle: motions of single bodies in loops that leave all others at rest.
        tree: its moving links, in the form that algorithms use.
        cluster_tree: which links make clusters.
        states: its configurations and how they are closed.
        shapes: what its bodies look like and touch with.
        keyframes: states (q, v) that have a name.
        actuators: what drives it, in the order in which it is described; see `Actuator`. Each joint that is marked as
            actuated and that none of them acts on has a motor of its own name, with the joint's limits.
        exclusions: pairs of bodies, of which one may be "ground", that do not touch each other.
        contact_pairs: pairs of shapes that may touch whatever else is said, with their own friction.
        precision: by how much its numbers are rounded, m or rad, if rows of its loops were dropped for that; else 0.
        locks_idle: whether idle freedoms are locked; see `RobotBuilder.build`.
        closed_forms: of loops and couplings that are closed analytically, by their names.
        closure: how each loop and coupling was to be closed; see `with_closure`.
        backend: what runs its programs; see `with_backend`.
        given: parameters that its programs take as inputs; see `with_parameters`. Other attributes describe it without
            them.
    """

    def save(self, path: str | Path) -> Path:
        """Writes it as URDF+ (".urdf"), MJCF (".xml") or SDFormat (".sdf"); loading that gives the same dynamics.

        Raises:
            ModelError: for something that the format cannot hold. Nothing is written then.
        """
        self.check_fixed("save")
        with imports():
            from coupler.io.save import save  # a call upwards: files know robots

        return save(self, path)

    def draw(self, path: str | Path | None = None) -> Path:
        """Writes a picture of its connectivity graph and its cluster tree as an SVG file, named after it by default."""
        plain = re.sub(r"[^\w.-]+", "_", self.name)
        path = Path(f"{plain}.svg" if path is None else path)
        path.write_text(self._repr_svg_(), encoding="utf-8")
        return path

    def _repr_svg_(self) -> str:
        """The picture, as notebooks ask for it."""
        with imports():
            from coupler.view.robot_graph import robot_picture  # a call upwards: pictures know robots

        return robot_picture(self)

    def __str__(self) -> str:
        return robot_text(self)

    def __repr__(self) -> str:
        return f"<Robot {self.name!r}: {counted(len(self.bodies), 'body', 'bodies')}, {counted(self.nv, 'freedom')}>"

    # Copies

    def __copy__(self) -> Robot:
        return self  # nothing about it ever changes, and what is compiled for it serves both

    def __deepcopy__(self, memo: Any) -> Robot:
        return self

    def __reduce__(self) -> Any:
        """Pickles what it is made of; programs are compiled again, or read from disk, where they are needed."""
        if self.given is not None:
            return Robot.with_parameters, (self.given.base, dict(self.given.values))
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        return _unpickled, (type(self), packed(self.name, parts))


def check_robot(robot: Any) -> None:
    """Refuses what is no robot, such as the name of one, or a builder."""
    if not isinstance(robot, Robot):
        raise ModelError(
            "robot must be a Robot, as coupler.load(), coupler.robots.load() or the build() of a builder return it, "
            f"got {clipped(robot)}"
        )


def _unpickled(kind: type[Robot], data: bytes) -> Robot:
    return kind(**unpacked(data))
