"""The robot: what it is made of, its clusters, and its coordinates. Frozen once built."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import numpy as np

from coupler.forks import cached_property, imports
from coupler.graph import Backend
from coupler.model.actuators import Actuator, actuators_of
from coupler.model.bodies import Body
from coupler.model.closed_forms import ClosedForm, remarks_of
from coupler.model.closed_forms.choice import Closing, ClosureChoice
from coupler.model.clusters import ClusterTree
from coupler.model.elements import PointElement
from coupler.model.embedding.coordinates import Embedding
from coupler.model.embedding.idle import IdleFreedom
from coupler.model.embedding.states import States, batch_of, held, shaped
from coupler.model.errors import ModelError
from coupler.model.height_fields import HeightField
from coupler.model.loops import Coupling, LoopJoint
from coupler.model.numbers import numbers
from coupler.model.parameters import GivenParameters, Layout, checked_parameters, layout_of, parameters_of
from coupler.model.pickling import packed, unpacked
from coupler.model.places import Place, placed
from coupler.model.shapes import Geometry, Plane, Shape
from coupler.model.subspaces import ClusterJoint, ClusterSubspaces
from coupler.model.text import robot_text
from coupler.model.tolerances import GIVEN
from coupler.model.tree import GROUND, Tree, TreeJoint
from coupler.model.variants import variant_of
from coupler.model.wording import counted, listed

__all__ = ["Robot"]


@dataclass(frozen=True, eq=False, repr=False)
class Robot:
    """A robot with kinematic loops.

    Its state is q, of nq entries, and v, of nv. Of a cluster whose couplings are solved, q holds the positions of the
    independent joints; of any other cluster, those of all joints, which must fit together. v holds independent
    velocities only, as do accelerations and forces. Joints come in the order in which they are described. Arrays may
    have leading dimensions: a batch of states.

    Attributes:
        name: what it is called.
        gravity: 3, acceleration of free fall in the world, m/s².
        bodies: by name.
        joints: of the spanning tree.
        loops: joints that close loops.
        couplings: relations between joint positions.
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
        precision: by how much its numbers are rounded, m or rad, if rows of its loops were dropped for that; else 0.
        locks_idle: whether idle freedoms are locked; see `RobotBuilder.build`.
        closed_forms: of loops and couplings that are closed analytically, by their names.
        closure: how each loop and coupling was to be closed; see `with_closure`.
        backend: what runs its programs; see `with_backend`.
        given: parameters that its programs take as inputs; see `with_parameters`. Other attributes describe it without
            them.
    """

    name: str
    gravity: np.ndarray
    bodies: Mapping[str, Body]
    joints: tuple[TreeJoint, ...]
    loops: tuple[LoopJoint, ...]
    couplings: tuple[Coupling, ...]
    elements: tuple[PointElement, ...]
    remarks: tuple[str, ...]
    warnings: tuple[str, ...]
    idle: tuple[IdleFreedom, ...]
    tree: Tree
    cluster_tree: ClusterTree
    states: States
    shapes: tuple[Shape, ...] = ()
    keyframes: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    actuators: tuple[Actuator, ...] = ()
    exclusions: tuple[tuple[str, str], ...] = ()
    precision: float = 0.0
    locks_idle: bool = False
    closed_forms: Mapping[str, ClosedForm] = field(default_factory=dict)
    closure: Mapping[str, Closing] = field(default_factory=dict)
    backend: Backend = "llvm"
    given: GivenParameters | None = None

    def __post_init__(self) -> None:
        if self.given is not None:  # programs are made of its base: it must not be another robot by now
            apart = [own.name for own in fields(self) if own.name not in ("given", "states")]
            if any(getattr(self, name) is not getattr(self.given.base, name) for name in apart):
                raise ModelError(f"robot {self.name!r} has parameters: change it first, and give them then")

    # Names and places

    @property
    def nq(self) -> int:
        """How many numbers make a configuration."""
        return len(self.embedding.q_index)

    @property
    def nv(self) -> int:
        """How many freedoms it has."""
        return len(self.embedding.v_index)

    @property
    def mass(self) -> Any:
        """The mass of all bodies, kg; (...,) of a robot whose parameters are a batch."""
        given = {} if self.given is None else self.given.values
        return sum(given.get(f"mass:{name}", body.mass) for name, body in self.bodies.items())

    @property
    def body_names(self) -> list[str]:
        return list(self.bodies)

    @property
    def joint_names(self) -> list[str]:
        """All joints of the spanning tree, fixed ones included, in the order in which they are described."""
        return [joint.name for joint in self.joints]

    @property
    def actuated_joints(self) -> list[str]:
        """The joints that an actuator drives."""
        return [joint.name for joint in self.joints if joint.actuated]

    @property
    def position_joints(self) -> list[str]:
        """The joints whose positions make q, in order."""
        kept = set(self.embedding.q_index.tolist())
        return [joint for joint, link in self._moving.items() if int(self.tree.q_start[link]) in kept]

    @property
    def independent_joints(self) -> list[str]:
        """The joints whose velocities, or parts of them, make v, in order."""
        return list(dict.fromkeys(self.tree.joint_of(int(entry)) for entry in self.embedding.v_index))

    @property
    def frame_names(self) -> list[str]:
        """Named frames and contact points, body by body."""
        return [name for body in self.bodies.values() for name in (*body.frames, *body.contacts)]

    @property
    def _moving(self) -> dict[str, int]:
        """The link of each joint that moves, in the order in which joints are described."""
        return {joint.name: self.tree.number[joint.name] for joint in self.joints if joint.name in self.tree.number}

    @property
    def actuator_names(self) -> list[str]:
        """All actuators, in the order in which `Simulation.step(motors=...)` takes their controls."""
        return [actuator.name for actuator in self.actuators]

    def q_slice(self, joint: str) -> slice:
        """Where the position of a joint is in q."""
        entries = self.tree.positions(self._link(joint))
        return self._slice(joint, entries, self.embedding.q_index, "position")

    def v_slice(self, joint: str) -> slice:
        """Where the velocity of an independent joint is in v; of a joint that is so in part, the independent part."""
        entries = self.tree.velocities(self._link(joint))
        return self._slice(joint, entries, self.embedding.v_index, "velocity")

    def _slice(self, joint: str, entries: np.ndarray, index: np.ndarray, what: str) -> slice:
        places = np.flatnonzero(np.isin(index, entries))
        if not places.size:
            others = self._siblings(joint)
            raise ModelError(
                f"joint {joint!r}: its {what} depends on others; independent in its cluster is {listed(others)}"
            )
        return slice(int(places[0]), int(places[-1]) + 1)

    def _siblings(self, joint: str) -> list[str]:
        """The independent joints in a joint's cluster."""
        cluster = self.cluster_tree.cluster_of[self._link(joint)]
        members = {self.tree.links[link].joint for link in self.cluster_tree.clusters[cluster].bodies}
        return [name for name in self.independent_joints if name in members]

    def _link(self, joint: str) -> int:
        if isinstance(joint, str) and joint in self.tree.number:
            return self.tree.number[joint]
        if joint in self.joint_names:
            raise ModelError(f"joint {joint!r} is fixed: it has neither position nor velocity")
        raise ModelError(f"robot {self.name!r} has no joint {joint!r}; it has {listed(self._moving)}")

    @property
    def embedding(self) -> Embedding:
        """How its coordinates determine the positions and velocities of all joints."""
        return self.states.embedding

    # Configurations

    def neutral(self) -> np.ndarray:
        """A closed configuration away from singularities, with joints at or near their neutral positions."""
        if self.given is not None:
            return self._closed_anew(self.given.base.neutral())
        return self.states.neutral[self.embedding.q_index]

    def random_state(self, rng: np.random.Generator | int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """A closed configuration q and a velocity v, the same for the same seed or state of a generator.

        Positions are away from singularities and, wherever such are found, within their limits.
        """
        try:
            rng = np.random.default_rng(rng)
        except (TypeError, ValueError):
            raise ModelError(
                f"random states need a generator or a seed, a whole number from 0 on, got {rng!r}"
            ) from None
        if self.given is not None:
            q, v = self.given.base.random_state(rng)
            return self._closed_anew(q), v
        return self.states.random(rng)[self.embedding.q_index], rng.normal(size=self.nv)

    def _closed_anew(self, q: np.ndarray, hold: Iterable[str] = ()) -> np.ndarray:
        """A configuration that is closed for the numbers that it was built with, closed for those that are given."""
        return q if all(self.embedding.explicit) else self.close(q, hold)

    def close(self, q: Any, hold: Iterable[str] = ()) -> np.ndarray:
        """The closed configuration nearest to q, of shape (..., nq), with quaternions of unit length.

        Args:
            q: where to start.
            hold: names of joints that stay where they are.

        Raises:
            ModelError: where no closed configuration is found, naming the loop.
        """
        hold = _names("hold", hold)
        p, weight = self.states.motion.normalize(self._positions(q)), np.ones(self.tree.nv)
        for joint in hold:
            weight[self.tree.velocities(self._link(joint))] = 0.0
        return self.states.closed(p, np.zeros_like(weight), weight, held(hold))[..., self.embedding.q_index]

    def integrate(self, q: Any, v: Any, dt: float = 1.0) -> np.ndarray:
        """The closed configuration after moving from q with the constant velocity v for the time dt (s).

        Independent positions are integrated exactly; the others follow.
        """
        p, v = self._state(q, v)
        self.states.check_regular(p)
        w = self.embedding.velocities(p, v) * float(numbers("dt", dt, ()))
        return self.states.moved(p, w)[..., self.embedding.q_index]

    def difference(self, q0: Any, q1: Any) -> np.ndarray:
        """The velocity that leads from q0 to q1 in a unit of time: integrate(q0, difference(q0, q1)) is q1."""
        p0, p1 = self._positions(q0), self._positions(q1)
        batch_of({"q0": p0, "q1": p1})
        return self.states.motion.difference(p0, p1)[..., self.embedding.v_index]

    def check(self, q: Any) -> None:
        """Refuses a configuration at which a loop is open, or at which the independent velocities are singular.

        Raises:
            ModelError: naming the loop and, of a batch, the state; for a singular one, what to choose instead.
        """
        self.check_closed(q)
        self.states.check_regular(self._positions(q))

    def check_closed(self, q: Any) -> None:
        """Refuses a configuration at which a loop is open, or a quaternion not of unit length.

        Raises:
            ModelError: naming the loop or joint and, of a batch, the state.
        """
        p = self._positions(q)
        self.states.check_quaternions(p, GIVEN)
        self.states.check_closed(p)

    # All joints by name

    def joint_positions(self, q: Any) -> dict[str, np.ndarray]:
        """The position of every moving joint, dependent ones included: a number, or a vector of its nq entries."""
        return self._by_joint(self._positions(q), self.tree.positions)

    def joint_velocities(self, q: Any, v: Any) -> dict[str, np.ndarray]:
        """The velocity of every moving joint, dependent ones included: a number, or a vector of its nv entries."""
        p, v = self._state(q, v)
        self.states.check_regular(p)
        return self._by_joint(self.embedding.velocities(p, v), self.tree.velocities)

    def pack_q(self, positions: Mapping[str, Any]) -> np.ndarray:
        """The closed configuration in which joints have the given positions.

        Dependent joints may be left out, and what is left out starts at neutral. Joints of a loop that are given stay
        where they are, unless all of them are given and leave it open: then the nearest closed configuration is taken.

        Args:
            positions: by joint: a number, or a vector where it has several; with leading dimensions for a batch.
        """
        number = {joint: self._link(joint) for joint in _names("positions", positions)}
        if self.given is not None:
            return self._closed_anew(self.given.base.pack_q(positions), set(positions) & set(self.independent_joints))
        return self.states.packed(positions, number)[..., self.embedding.q_index]

    def pack_v(self, velocities: Mapping[str, Any], q: Any = None) -> np.ndarray:
        """The velocity v in which independent joints have the given velocities, and the others none.

        Args:
            velocities: by joint. Dependent joints may be given beside all independent ones of their cluster.
            q: the configuration, if dependent velocities are to be checked against the independent ones.
        """
        number = {joint: self._link(joint) for joint in _names("velocities", velocities)}
        given = {joint: shaped(joint, x, self.tree.links[number[joint]].kind.nv) for joint, x in velocities.items()}
        for joint in given:
            missing = [name for name in self._siblings(joint) if name not in given]
            if missing and joint not in self._siblings(joint):
                raise ModelError(f"joint {joint!r} depends on {listed(missing)}: give the velocity of that one instead")
        w = np.zeros((*batch_of(given), self.tree.nv))
        for joint, value in given.items():
            w[..., self.tree.velocities(number[joint])] = value
        v = w[..., self.embedding.v_index]
        if q is not None:
            true = self.joint_velocities(q, v)
            for joint, value in velocities.items():
                apart = np.abs(true[joint] - np.asarray(value, dtype=float)).max()
                if not apart < GIVEN * max(1.0, np.abs(true[joint]).max()):
                    raise ModelError(f"joint {joint!r} is given a velocity that misses its true one by {apart:.3g}")
        return v

    def _by_joint(self, values: np.ndarray, entries: Callable[[int], np.ndarray]) -> dict[str, np.ndarray]:
        places = {joint: entries(link) for joint, link in self._moving.items()}
        return {joint: values[..., own[0] if len(own) == 1 else own] for joint, own in places.items()}

    # Constraints

    def explicit_constraint(self, q: Any, v: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """G and g with w = G v and ẇ = G v̇ + g, for the velocities w of all joints. [001, §II-B]

        Returns:
            G of shape (..., nw, nv) and g of shape (..., nw), in the order of `tree.links`.
        """
        p, v = self._state(q, v)
        self.states.check_regular(p)
        return self.embedding.explicit_constraint(p, v)

    def implicit_constraint(self, q: Any, v: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """K and k with K w = 0 and K ẇ = k, for the velocities w of all joints; no row follows from others.

        Returns:
            K of shape (..., rows, nw) and k of shape (..., rows), in the order of `tree.links`.
        """
        p, v = self._state(q, v)
        if not v.any():
            return self.embedding.implicit_constraint(p, np.zeros((*v.shape[:-1], self.tree.nv)))
        self.states.check_regular(p)
        return self.embedding.implicit_constraint(p, self.embedding.velocities(p, v))

    def cluster_subspaces(self, q: Any, cluster: int) -> ClusterSubspaces:
        """S, Tᵃ and Tᶜ of a cluster, by its number in `cluster_tree`, for one configuration. [001, §V]"""
        if not 0 < cluster < len(self.cluster_tree.clusters):
            raise ModelError(f"there is no cluster {cluster!r}; there are 1 to {len(self.cluster_tree.clusters) - 1}")
        p = self._positions(q)
        if p.ndim != 1:
            raise ModelError(f"q has the shape {p.shape}; subspaces are computed for one configuration at a time")
        self.states.check_regular(p)
        return ClusterJoint(self.cluster_tree, self.embedding, p, cluster).subspaces()

    def loop_errors(self, q: Any) -> dict[str, np.ndarray]:
        """How far each loop and coupling is from closed: its largest residual, in m or rad."""
        closure = self.embedding.closure
        p = self._positions(q)
        if not closure.loops:
            return {}
        phi = np.abs(closure.at(p)[0])
        errors = {constraint.name: phi[..., rows].max(axis=-1) for constraint, rows in closure.constraints()}
        parts = (*self.loops, *self.couplings)  # of which some may follow from others
        return {part.name: np.zeros(p.shape[:-1]) for part in parts if part.name not in errors} | errors

    # Variants and pictures

    def with_gravity(self, gravity: Any) -> Robot:
        """The same robot under another gravity, 3, m/s²."""
        return self._changed(("gravity",), gravity=numbers("gravity", gravity, (3,)))

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """All numbers that `with_parameters` takes, by name, as they are: {"mass:torso": 3.3, "ratio:gears": 6.0, ...}.

        There are "gravity"; "mass", "centre" and "inertia" of bodies; "stiffness", "damping", "armature" and "friction"
        of joints, and "at", where they are on their parent; "at" and "meets" of loops, and "length" of rods; of a
        coupling by a dataclass, as gears are, its fields; those of springs; "servo_stiffness" and "servo_damping" of
        servos; "friction" and "restitution" of shapes. Where two parts have the same number and name, neither is there.
        """
        if self.given is not None:
            return MappingProxyType({**self.given.base.parameters, **self.given.values})
        return self._parameters

    @cached_property
    def _parameters(self) -> Mapping[str, np.ndarray]:
        return parameters_of(self)

    def with_parameters(self, parameters: Mapping[str, Any]) -> Robot:
        """The same robot with other numbers, which its programs take as an input: nothing is compiled again for others.

            masses = np.random.uniform(2.0, 5.0, 4096)
            fleet = robot.with_parameters({"mass:torso": masses})
            coupler.forward_dynamics(fleet, q, v, tau)  # 4096 robots

        All functions and simulations of coupler take it. With leading dimensions, each state of a batch has its own.

        Args:
            parameters: by name, see `parameters`; others stay as they are. An inertia is 3 × 3, about the centre of
                mass, and stays as it is where a mass changes.

        Raises:
            ModelError: for a name that there is not, a wrong shape, or a number that cannot be; for lengths in loops
                that are closed analytically.
        """
        base = self if self.given is None else self.given.base
        merged = parameters if self.given is None else {**self.given.values, **parameters}
        values = checked_parameters(base, merged)
        if not values:
            return base
        layout = layout_of(base, values)
        variants = base.__dict__.setdefault("_variants", {})
        if layout not in variants:
            variants[layout] = variant_of(base, layout)
        return base._given(variants[layout], layout, values, layout.pack(values))

    def of_states(self, batch: tuple[int, ...], states: slice | int) -> Robot:
        """The robot with the parameters of some states of a batch, or of one; states are counted in a row."""
        if self.given is None:
            return self
        packed = np.broadcast_to(self.given.packed, (*batch, self.given.packed.shape[-1]))
        own = packed.reshape((prod(batch), packed.shape[-1]))[states]
        base, layout = self.given.base, self.given.layout
        return base._given(self.given.variant, layout, layout.unpack(own), own)

    def _given(self, variant: Robot, layout: Layout, values: Mapping[str, np.ndarray], packed: np.ndarray) -> Robot:
        given = GivenParameters(self, variant, layout, values, packed)
        return replace(self, states=variant.states.with_given(packed), given=given)

    def _changed(self, replaced: tuple[str, ...] = (), **parts: Any) -> Robot:
        """The same robot with other parts, and the same parameters but for those that these parts replace."""
        if self.given is None:
            return replace(self, **parts)
        kept = {name: value for name, value in self.given.values.items() if not name.startswith(replaced or ("/",))}
        return replace(self.given.base, **parts).with_parameters(kept)

    def with_floor(
        self, friction: float | None = None, height: float = 0.0, *, restitution: float | None = None
    ) -> Robot:
        """The same robot over a floor, a plane through z = height, which contact points and touching shapes may touch.

        Args:
            friction: the coefficient of what touches it; that of the other shape, or 1, if not given.
            height: m.
            restitution: how contacts with it rebound, 0 to 1; see `Shape`.
        """
        at = (0.0, 0.0, float(numbers("height", height, ())))
        name = self._new_name("floor")
        return self.with_shape(name, Plane(), at, meets=-1, friction=friction, restitution=restitution)

    def with_terrain(
        self, heights: Any, size: Any, at: Place = (0.0, 0.0, 0.0), turned: Any = None, *, friction: float | None = None
    ) -> Robot:
        """The same robot over ground of given heights, which contact points and touching shapes may touch.

        Args:
            heights: n × m, over a grid of which rows go along x and columns along y, m; see `HeightField`.
            size: 2, what the grid extends over along x and y, m.
            at, turned: where the middle of the grid is in the world, at height 0, and how it is turned.
            friction: the coefficient of what touches it; that of the other shape, or 1, if not given.
        """
        field = HeightField(heights, size)
        return self.with_shape(self._new_name("terrain"), field, at, turned, meets=-1, friction=friction)

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
    ) -> Robot:
        """The same robot with one more shape, such as an obstacle that stands in the world.

        Args:
            name: of the shape.
            geometry: its form.
            at, turned: where it is on its body, as for `RobotBuilder.shape`.
            body: which has it; the ground by default.
            group, meets, friction, colour, restitution: see `Shape`.

        Raises:
            ModelError: for a name that a shape has already, or a body that there is not.
        """
        if not isinstance(name, str) or name in {shape.name for shape in self.shapes if shape.name}:
            raise ModelError(f"with_shape: a name of its own is wanted, got {name!r}")
        if body != GROUND and body not in self.bodies:
            raise ModelError(f"shape {name!r}: there is no body {body!r}; there are {listed(self.bodies)}")
        place = placed(f"shape {name!r}", at, turned)
        shape = Shape(name, body, geometry, place, True, group, meets, friction, colour, restitution)
        return self._changed(shapes=(*self.shapes, shape))

    def _new_name(self, name: str) -> str:
        """A name that no shape has: the name itself, or with a number."""
        names = {shape.name for shape in self.shapes}
        return next(own for own in (name, *(f"{name}{i}" for i in range(2, 10**6))) if own not in names)

    def with_actuators(self, actuators: Iterable[Actuator]) -> Robot:
        """The same robot, driven by other actuators.

            servos = [motor.position_servo(stiffness=100.0, damping=3.0) for motor in robot.actuators]
            robot = robot.with_actuators(servos)

        Args:
            actuators: all that it then has; limits of their joints hold for them, too.

        Raises:
            ModelError: for a joint that there is not, or an actuator that cannot move.
        """
        given = tuple(actuators)
        for actuator in given:
            if not isinstance(actuator, Actuator):
                raise ModelError(f"with_actuators: an Actuator is wanted, got {actuator!r}")
        driven = {joint for actuator in given for joint in actuator.gears}
        marked = [replace(joint, actuated=joint.name in driven) for joint in self.joints]
        joints = tuple(
            joint if joint.actuated == other.actuated else other
            for joint, other in zip(self.joints, marked, strict=True)
        )
        robot = self._changed(joints=joints)
        return robot._changed(("servo_",), actuators=actuators_of(robot, given))

    def with_backend(self, backend: Backend) -> Robot:
        """The same robot, whose dynamics and simulations are run by another back end.

        Args:
            backend: "llvm", machine code; "interpreter", NumPy, one operation at a time; or "python", which calls the
                functions of every algorithm on floats, one cluster after the other, so that print and pdb work in them
                and in the functions of couplings.
        """
        if backend not in get_args(Backend):
            raise ModelError(f"backend: there is no {backend!r}; there are {listed(get_args(Backend))}")
        return self._changed(backend=backend)

    def with_closure(self, closure: ClosureChoice) -> Robot:
        """The same robot, with its loops closed in another way. [003, §III-B]

            robot.with_closure("numerical")
            robot.with_closure({"left_ankle": "analytical"})

        A loop that is closed analytically has a solution γ in closed form: q holds the positions of its independent
        joints only. Of one that is closed numerically, q holds the positions of all joints.

        Args:
            closure: for all loops and couplings, or by name: "analytical", where there is a closed form; "numerical";
                or "auto", analytical where the closed form has no dead points, at which the independent joints fail to
                determine the others. What is not named stays as it is.

        Raises:
            ModelError: for another word, or for a loop that there is not.
        """
        from coupler.model.builder import RobotBuilder  # which makes robots

        if self.given is not None:
            return self.given.base.with_closure(closure).with_parameters(self.given.values)
        b = RobotBuilder(self.name, gravity=self.gravity)
        b.attach(self)
        if isinstance(closure, Mapping):
            closure = {**self.closure, **closure}
        robot = b.build(closure=closure, precision=self.precision)
        told = remarks_of(self.closed_forms)
        kept = [remark for remark in self.remarks if remark not in told and remark not in robot.remarks]
        remarks = (*kept, *robot.remarks)
        return replace(robot, remarks=remarks, warnings=self.warnings, backend=self.backend)

    def spanning_tree(self) -> Robot:
        """The same robot with its loops open: all joints are independent. Its masses may not suffice any more."""
        from coupler.model.compose import compose  # which makes robots

        self.check_fixed("spanning_tree")
        joints = [replace(joint, independent=False) for joint in self.joints]
        tree = compose(f"{self.name}_tree", self.gravity, self.bodies, joints, (), (), self.elements, weigh=False)
        return replace(tree, shapes=self.shapes, exclusions=self.exclusions, actuators=self.actuators)

    def save(self, path: str | Path) -> Path:
        """Writes it as URDF+ (".urdf"), MJCF (".xml") or SDFormat (".sdf"); loading that gives the same dynamics.

        Raises:
            ModelError: for something that the format cannot hold. Nothing is written then.
        """
        self.check_fixed("save")
        with imports():
            from coupler.io.save import save  # a call upwards: files know robots

        return save(self, path)

    def check_fixed(self, method: str) -> None:
        """Refuses what is made of its parts, which do not know the parameters that it is given."""
        if self.given is not None:
            given = listed(self.given.values)
            raise ModelError(f"{method}: robot {self.name!r} has parameters, {given}; build it with these numbers")

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

    # Input

    def _positions(self, q: Any) -> np.ndarray:
        """The positions of all joints, where solutions give them."""
        q = numbers("q", q, (self.nq,), batch=True)
        if self.given is not None and self.embedding.closure.loops:
            q = np.broadcast_to(q, (*batch_of({"q": q, "parameters": self.given.packed}), self.nq))
        p = self.embedding.positions(q)
        self.states.check_quaternions(p)
        self.states.check_solved(p)
        return p

    def _state(self, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
        """The positions of all joints, and v, which is zero if not given."""
        p, v = self._positions(q), numbers("v", np.zeros(self.nv) if v is None else v, (self.nv,), batch=True)
        batch_of({"q": p, "v": v})
        return p, v


def _unpickled(kind: type[Robot], data: bytes) -> Robot:
    return kind(**unpacked(data))


def _names(what: str, given: Any) -> list[str]:
    """Names that a user gave as a list, or as the keys of a mapping."""
    if isinstance(given, str) or not isinstance(given, Iterable) or (what != "hold" and not isinstance(given, Mapping)):
        raise ModelError(f"{what} must go by names of joints, got {given!r}")
    return list(given)
