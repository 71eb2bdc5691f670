"""The robot: what it is made of, its clusters, and its coordinates. Frozen once built."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from coupler.forks import imports
from coupler.model.errors import ModelError
from coupler.model.outputs import check_target, written_whole
from coupler.model.pickling import packed, unpacked
from coupler.model.robot_changes import RobotChanges
from coupler.model.text import robot_text
from coupler.model.wording import clipped, counted, plain_name


@dataclass(frozen=True, eq=False, repr=False)
class Robot(RobotChanges):
    """A robot: bodies, joints and loops, and the coordinates of its state. It never changes once built.

        robot = coupler.load("robot.urdf")      # or coupler.robots.load("mini_cheetah"), or see `RobotBuilder`
        print(robot)                            # its clusters, loops and freedoms
        q, v = robot.random_state(0)            # (nq,) and (nv,): a state with closed loops
        q = robot.pack_q({"hip": 0.3})          # by name; the other joints follow, or stay neutral
        tau = coupler.inverse_dynamics(robot, q, v, np.zeros(robot.nv))
        tau[robot.v_slice("hip")]               # the entries of one joint
        moon = robot.with_gravity((0, 0, -1.62))    # a second robot, which shares everything that is the same

    A state is q, (nq,), and v, (nv,):

    - q holds the positions, rad or m, of the joints in `position_joints`, in the order of their description. Where a
      function γ solves loops and couplings, q holds their independent joints only. Of all other loops it holds every
      joint; these positions must fit together, and `close` makes them.
    - v holds the velocities, rad/s or m/s, of `independent_joints`. Accelerations, rad/s² or m/s², and joint forces,
      N m or N, have the same entries.
    - A free joint has the entries x, y, z and a quaternion w, x, y, z in q. In v it has its angular and then its linear
      velocity, both in the body's own frame.

    Leading dimensions make a batch of states: q of shape (1000, nq) and v of shape (1000, nv) are a thousand states.
    Units are SI; in spatial vectors the angular part comes first.

    Attributes:
        name: the robot's name.
        gravity: 3, the acceleration of free fall in the world's axes, m/s².
        bodies: by name, each with its mass, kg, centre of mass, m, and inertia, kg m², in its own frame.
        joints: the joints of the spanning tree, on which bodies carry each other.
        loops: the joints that close loops.
        couplings: relations between joint positions: gears, belts, differentials.
        elements: springs and dampers between points.
        remarks: worth knowing: rows of loops that follow from others, how loops are closed, where meshes were found.
        warnings: suspicious: a singular zero position, a keyframe that cannot be closed, parts of a file that are
            ignored.
        idle: motions of bodies in loops that leave all other bodies at rest.
        tree: the moving links, in the form that algorithms use.
        cluster_tree: the clusters that links are grouped into.
        states: the configurations, and how they are closed.
        shapes: the shapes with which bodies are drawn and touch.
        keyframes: named states (q, v).
        actuators: motors, servos and dampers, in the order of description; see `Actuator`. A joint that is marked as
            actuated, and on which none of these acts, has a motor of its own name with the joint's limits.
        exclusions: pairs of bodies that never touch; one of them may be "ground".
        contact_pairs: pairs of shapes that may touch whatever their groups are, with their own friction.
        precision: m or rad, the rounding of its numbers for which rows of loops were dropped; 0 if none were.
        locks_idle: whether idle freedoms are locked; see `RobotBuilder.build`.
        closed_forms: by name, the closed forms of loops and couplings that are closed analytically.
        closure: by name, how each loop and coupling was asked to be closed; see `with_closure`.
        backend: the back end that runs its programs; see `with_backend`.
        given: the parameters that its programs take as inputs; see `with_parameters`. All other attributes describe the
            robot without them.
    """

    def save(self, path: str | Path) -> Path:
        """Writes the robot as URDF+ (".urdf"), MJCF (".xml") or SDFormat (".sdf"), by the suffix of the path.

        A robot loaded from the file has the same dynamics.

        Raises:
            ModelError: for a part that the format cannot express; nothing is written then.
        """
        self.check_fixed("save")
        with imports():
            from coupler.io.save import save  # a call upwards: files know robots

        return save(self, path)

    def draw(self, path: str | Path | None = None) -> Path:
        """Draws its connectivity graph and cluster tree as an SVG file, by default NAME.svg, and returns the path.

        Raises:
            ModelError: for a path with another suffix, or one that cannot be written to.
        """
        path = check_target(f"{plain_name(self.name)}.svg" if path is None else path)
        if path.suffix.lower() != ".svg":
            raise ModelError(f"{path}: robots are drawn as SVG; name it {path.with_suffix('.svg').name!r}")
        with written_whole(path) as file:
            file.write(self._repr_svg_().encode())
        return path

    def _repr_svg_(self) -> str:
        """The picture of `draw`, for notebooks."""
        with imports():
            from coupler.view.robot_graph import robot_picture  # a call upwards: pictures know robots

        return robot_picture(self)

    def __str__(self) -> str:
        return robot_text(self)

    def __repr__(self) -> str:
        return f"<Robot {self.name!r}: {counted(len(self.bodies), 'body', 'bodies')}, {counted(self.nv, 'freedom')}>"

    # Copies

    def __copy__(self) -> Robot:
        return self  # it never changes, and the programs compiled for it serve both

    def __deepcopy__(self, memo: Any) -> Robot:
        return self

    def __reduce__(self) -> Any:
        """Pickles its parts; the receiver compiles programs again, or reads them from disk, when it needs them."""
        if self.given is not None:
            return Robot.with_parameters, (self.given.base, dict(self.given.values))
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        return _unpickled, (type(self), packed(self.name, parts))


def check_robot(robot: Any) -> None:
    """Raises a ModelError for anything but a robot, such as the name of one, or a builder."""
    if not isinstance(robot, Robot):
        raise ModelError(
            "robot must be a Robot, as coupler.load(), coupler.robots.load() or the build() of a builder return it, "
            f"got {clipped(robot)}"
        )


def _unpickled(kind: type[Robot], data: bytes) -> Robot:
    return kind(**unpacked(data))
