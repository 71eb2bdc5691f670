"""Variations of a robot: with other numbers, shapes or actuators, or with loops closed differently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np

from coupler.forks import cached_property
from coupler.graph import Backend
from coupler.model.actuators import Actuator
from coupler.model.closed_forms import tells_of_closure
from coupler.model.closed_forms.choice import ClosureChoice
from coupler.model.errors import ModelError, warn
from coupler.model.grounds import floor_shape, terrain_shape
from coupler.model.names import named
from coupler.model.numbers import numbers
from coupler.model.parameter_layout import GivenParameters, ParameterLayout, layout_of
from coupler.model.parameters import LENGTHS, checked_parameters, parameters_of
from coupler.model.places import Place, placed
from coupler.model.robot_actuators import actuators_of
from coupler.model.robot_states import RobotStates
from coupler.model.shapes import Geometry, Shape
from coupler.model.tree import GROUND
from coupler.model.variants import variant_of
from coupler.model.wording import clipped, listed

if TYPE_CHECKING:
    from coupler.model.robot import Robot


@dataclass(frozen=True, eq=False, repr=False)
class RobotChanges(RobotStates):
    """The methods `with_...`, which return a changed copy; see `Robot`."""

    @property
    def _robot(self) -> Robot:
        """Itself, typed: `Robot` is the only class of robots."""
        return cast("Robot", self)

    def with_gravity(self, gravity: Any) -> Robot:
        """This robot under another gravity, 3, m/s², in the world's axes."""
        return self._changed(("gravity",), gravity=numbers("gravity", gravity, (3,)))

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """All numbers that `with_parameters` takes, with their values: {"mass:torso": 3.3, "ratio:gears": 6.0, ...}.

        Names are QUANTITY:PART, and "gravity". The quantities are

        - of bodies: "mass", "centre", "inertia";
        - of joints: "stiffness", "damping", "armature", "friction"; "at", the joint's place on its parent, and
          "turned", a rotation vector along the parent's axes by which the joint is turned from how it was built;
        - of loops: "at", "meets", "turned", "meets_turned", and "length" of rods;
        - of couplings whose function is a dataclass, as gears are: its fields, such as "ratio";
        - of springs: "stiffness", "free_length", "pretension", "damping", "first_point", "second_point";
        - of servos: "servo_stiffness", "servo_damping";
        - of shapes: "friction", "restitution", "torsion", "rolling"; of contact pairs the same but for restitution, as
          "friction:pad on box".

        Two parts of the same name may have the same quantity; that name is then left out.
        """
        if self.given is not None:
            return MappingProxyType({**self.given.base.parameters, **self.given.values})
        return self._parameters

    @cached_property
    def _parameters(self) -> Mapping[str, np.ndarray]:
        return parameters_of(self._robot)

    def with_parameters(self, parameters: Mapping[str, Any]) -> Robot:
        """This robot with other numbers, which its programs take as inputs: other values compile nothing again.

            masses = np.random.uniform(2.0, 5.0, 4096)
            fleet = robot.with_parameters({"mass:torso": masses})
            coupler.forward_dynamics(fleet, q, v, tau)  # 4096 robots

        Every function and simulation of coupler takes such a robot. Values with leading dimensions give each state of a
        batch its own.

        Args:
            parameters: by name, as `parameters` lists them; all others keep their values. An inertia, 3 × 3, is about
                the centre of mass, and does not change with the mass.

        Raises:
            ModelError: for an unknown name, a wrong shape or an impossible number, and for lengths in loops that are
                closed analytically.
        """
        base = self._robot if self.given is None else self.given.base
        merged = parameters if self.given is None else {**self.given.values, **parameters}
        values = checked_parameters(base, merged)
        if not values:
            return base
        layout = layout_of(base, values)
        variants = base.__dict__.setdefault("_variants", {})
        if layout not in variants:
            variants[layout] = variant_of(base, layout)
            lengths = [name for name in values if name.startswith(LENGTHS)]
            if base.precision and lengths:
                warn(
                    f"robot {base.name!r}: rows of its loops were dropped, because its numbers are rounded; whether "
                    f"they still follow from the others is not checked for other values of {listed(lengths)}. A robot "
                    "with exact numbers has no such rows"
                )
        return base._given(variants[layout], layout, layout.pack(values), values)

    def of_states(self, batch: tuple[int, ...], states: slice | int | np.ndarray) -> Robot:
        """The robot with the given parameters of some states of a batch, numbered as if the batch were flat."""
        if self.given is None:
            return self._robot
        packed = np.broadcast_to(self.given.packed, (*batch, self.given.packed.shape[-1]))
        of_states = packed.reshape((prod(batch), packed.shape[-1]))[states]
        return self.given.base._given(self.given.variant, self.given.layout, of_states)

    def _given(
        self,
        variant: Robot,
        layout: ParameterLayout,
        packed: np.ndarray,
        by_name: Mapping[str, np.ndarray] | None = None,
    ) -> Robot:
        given = GivenParameters(self._robot, variant, layout, packed, by_name)
        return replace(self._robot, states=variant.states.with_given(packed), given=given)

    def _changed(self, replaced: tuple[str, ...] = (), **parts: Any) -> Robot:
        """A copy with other parts; given parameters are kept, unless their names start with `replaced`."""
        if self.given is None:
            return replace(self._robot, **parts)
        kept = {name: value for name, value in self.given.values.items() if not name.startswith(replaced or ("/",))}
        return replace(self.given.base, **parts).with_parameters(kept)

    def with_floor(
        self, friction: float | None = None, height: float = 0.0, *, restitution: float | None = None
    ) -> Robot:
        """This robot over a floor, the plane z = height, for contact points and shapes to touch.

        Args:
            friction: coefficient of sliding friction; if None, the other shape's counts, or else 1.
            height: m.
            restitution: how contacts with it rebound, 0 to 1; see `Shape`.
        """
        return self._with_shape(floor_shape(self._new_name("floor"), friction, height, restitution))

    def with_terrain(
        self, heights: Any, size: Any, at: Place = (0.0, 0.0, 0.0), turned: Any = None, *, friction: float | None = None
    ) -> Robot:
        """This robot over uneven ground, for contact points and shapes to touch.

        Args:
            heights: n × m, heights over a grid, m; rows run along x and columns along y; see `HeightField`.
            size: 2, the extent of the grid along x and y, m.
            at, turned: pose in the world of the middle of the grid at height 0.
            friction: coefficient of sliding friction; if None, the other shape's counts, or else 1.
        """
        return self._with_shape(terrain_shape(self._new_name("terrain"), heights, size, at, turned, friction))

    def with_shape(
        self,
        name: str,
        geometry: Geometry,
        at: Place = (0.0, 0.0, 0.0),
        turned: Any = None,
        *,
        body: str = GROUND,
        group: int = 1,
        meets: int = 1,
        friction: float | None = None,
        colour: Any = None,
        restitution: float | None = None,
        torsion: float | None = None,
        rolling: float | None = None,
    ) -> Robot:
        """This robot with one more shape, such as an obstacle in the world.

        Args:
            name: the shape's name, which no other shape may have.
            geometry: its geometry.
            at, turned: where it is on its body, as for `RobotBuilder.shape`.
            body: the body that it belongs to; the ground by default.
            group, meets, friction, colour, restitution, torsion, rolling: see `Shape`.

        Raises:
            ModelError: for a name that is in use, or an unknown body.
        """
        if named("with_shape: the shape", name) in {shape.name for shape in self.shapes}:
            raise ModelError(f"with_shape: there is a shape {name!r} already; choose another name")
        if not isinstance(body, str) or (body != GROUND and body not in self.bodies):
            bodies = listed([GROUND, *self.bodies], like=body)
            raise ModelError(f"shape {name!r}: there is no body {clipped(body)}; there are {bodies}")
        place = placed(f"shape {name!r}", at, turned)
        laws = friction, colour, 0, restitution, torsion, rolling
        return self._with_shape(Shape(name, body, geometry, place, True, group, meets, *laws))

    def _with_shape(self, shape: Shape) -> Robot:
        return self._changed(shapes=(*self.shapes, shape))

    def _new_name(self, name: str) -> str:
        """The name, with a number if a shape has it already."""
        names = {shape.name for shape in self.shapes}
        return name if name not in names else next(new for i in count(2) if (new := f"{name}{i}") not in names)

    def with_actuators(self, actuators: Iterable[Actuator]) -> Robot:
        """This robot with other actuators in place of its own.

            servos = [motor.position_servo(stiffness=100.0, damping=3.0) for motor in robot.actuators]
            robot = robot.with_actuators(servos)

        Args:
            actuators: all actuators of the new robot; the effort and velocity limits of joints hold for them as well.

        Raises:
            ModelError: for an unknown joint, or an actuator that loops keep from moving.
        """
        given = tuple(actuators) if isinstance(actuators, Iterable) else (actuators,)
        for actuator in given:
            if not isinstance(actuator, Actuator):
                raise ModelError(f"with_actuators takes a list of Actuator, got {clipped(actuator)}")
        driven = {joint for actuator in given for joint in actuator.gears}
        marked = [replace(joint, actuated=joint.name in driven) for joint in self.joints]
        joints = tuple(
            joint if joint.actuated == other.actuated else other
            for joint, other in zip(self.joints, marked, strict=True)
        )
        robot = self._changed(joints=joints)
        return robot._changed(("servo_",), actuators=actuators_of(robot, given))

    def with_backend(self, backend: Backend) -> Robot:
        """This robot, with its dynamics and simulations run by another back end.

        Args:
            backend: "llvm" for machine code; "interpreter" for NumPy, one operation at a time; or "python", which calls
                the functions of each algorithm on floats, cluster by cluster, so that print and pdb work in them and in
                the functions of couplings.
        """
        if not isinstance(backend, str) or backend not in get_args(Backend):
            raise ModelError(f"backend must be one of {listed(get_args(Backend))}, got {clipped(backend)}")
        return self._changed(backend=backend)

    def with_closure(self, closure: ClosureChoice) -> Robot:
        """This robot with its loops closed analytically or numerically. [003, §III-B]

            robot.with_closure("numerical")
            robot.with_closure({"left_ankle": "analytical"})

        A loop that is closed analytically has a solution γ in closed form, and q holds its independent joints only. Of
        a loop that is closed numerically, q holds all joints. The independent joints remain the same.

        Args:
            closure: one word for all loops and couplings, or words by name: "analytical", where there is a closed form;
                "numerical"; or "auto", which is analytical where the closed form has no dead points, at which the
                independent joints fail to determine the others. Loops that are not named stay as they are.

        Raises:
            ModelError: for another word, or an unknown loop.
        """
        from coupler.model.builder import RobotBuilder  # which makes robots

        if self.given is not None:
            return self.given.base.with_closure(closure).with_parameters(self.given.values)
        b = RobotBuilder(self.name, gravity=self.gravity)
        b.attach(self._robot)
        b._keep = True
        if isinstance(closure, Mapping):
            closure = {**self.closure, **closure}
        robot = b.build(closure=closure, precision=self.precision)
        kept = [remark for remark in self.remarks if not (tells_of_closure(remark) or remark in robot.remarks)]
        remarks = (*kept, *robot.remarks)
        return replace(robot, remarks=remarks, warnings=self.warnings, backend=self.backend)

    def spanning_tree(self) -> Robot:
        """This robot with its loops opened: all joints are independent, even those that move no mass."""
        from coupler.model.compose import compose  # which makes robots

        self.check_fixed("spanning_tree")
        joints = [replace(joint, independent=False) for joint in self.joints]
        tree = compose(f"{self.name}_tree", self.gravity, self.bodies, joints, (), (), self.elements, weigh=False)
        touching = {"shapes": self.shapes, "exclusions": self.exclusions, "contact_pairs": self.contact_pairs}
        return replace(tree, **touching, actuators=self.actuators, backend=self.backend)
