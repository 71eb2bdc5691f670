"""Robots whose numbers are nodes: parameters that programs take as inputs instead of constants in tables.

Everything that follows from a number by arithmetic (the inertia of a link that is welded from several bodies, the
placement of joints on it, the damping in a step) follows from a node in the same way. Decisions that depend on numbers
(which rows of loops count, which joints are independent) stay as they were when the robot was built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from coupler.graph import Node, Parameters, array, may_differ, template
from coupler.model.actuators import Actuator
from coupler.model.bodies import Body
from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraints import Constraint, LoopConstraint, RelationConstraint
from coupler.model.embedding.coordinates import Embedding
from coupler.model.embedding.solutions import Solution
from coupler.model.embedding.states import States
from coupler.model.errors import ModelError
from coupler.model.links import gathered
from coupler.model.loops import Coupling
from coupler.model.parameter_layout import ParameterLayout
from coupler.model.parameters import LENGTHS, OF_BODIES, OF_JOINTS, OF_PAIRS, OF_SERVOS, OF_SHAPES, OF_SPRINGS
from coupler.model.tree import Link, Tree
from coupler.model.wording import listed
from coupler.rotation import matrix_from_quaternion, quaternion_exp
from coupler.spatial import Transform

if TYPE_CHECKING:
    from coupler.model.robot import Robot

_SAME = 1e-13  # m: points closer than this coincide
Part = TypeVar("Part")


def variant_of(robot: Robot, layout: ParameterLayout) -> Robot:
    """The robot in which the inputs of a layout are nodes, one after the other, of `tree.parameters`.

    Raises:
        ModelError: for a length in a loop that is closed analytically: its solution holds for the original lengths.
    """
    parameters = Parameters(layout.size)
    nodes = {name: array(value)[()] for name, value in layout.unpack(parameters.nodes).items() if may_differ(value)}
    return _Variant(robot, parameters, nodes, layout.pack(robot.parameters)).robot()


class _Variant:
    """Makes the parts of a robot with nodes in place of some numbers."""

    def __init__(self, robot: Robot, parameters: Parameters, nodes: Mapping[str, Any], usual: np.ndarray) -> None:
        """Args: the robot, the inputs, the nodes by parameter name, and the values of the inputs in the robot."""
        self.base, self.parameters, self.nodes, self.usual = robot, parameters, nodes, usual
        self.by_owner: dict[str, dict[str, Any]] = {}  # by owner
        for name, value in nodes.items():
            quantity, _, owner = name.partition(":")
            self.by_owner.setdefault(owner, {})[quantity] = value

    def robot(self) -> Robot:
        base = self.base
        self._check_lengths()
        bodies = {name: self._with(body, name, OF_BODIES) for name, body in base.bodies.items()}
        tree = replace(base.tree, links=tuple(self._links(bodies)), parameters=self.parameters, given=self.usual)
        tree = replace(tree, all_rows=any(name.startswith(LENGTHS) for name in self.nodes))
        couplings = {c.name: self._coupling(c) for c in base.couplings}
        springs = tuple(self._with(spring, spring.name, OF_SPRINGS) for spring in base.elements)
        shapes = tuple(self._with(shape, shape.name, OF_SHAPES) if shape.name else shape for shape in base.shapes)
        return replace(
            base,
            gravity=self.nodes.get("gravity", base.gravity),
            bodies=MappingProxyType(bodies),
            couplings=tuple(couplings.values()),
            elements=springs,
            actuators=tuple(self._actuator(actuator) for actuator in base.actuators),
            shapes=shapes,
            contact_pairs=tuple(self._with(pair, pair.name, OF_PAIRS) for pair in base.contact_pairs),
            tree=tree,
            states=self._states(tree, couplings),
        )

    def _check_lengths(self) -> None:
        """Raises a ModelError for lengths in loops whose solution holds for the original ones only."""
        base, tree = self.base, self.base.tree
        solved = dict.fromkeys(base.closed_forms, "is closed analytically")
        for coupling in base.couplings:
            solved |= dict.fromkeys(coupling.solves, f"is solved by coupling {coupling.name!r}")
        for coupling in base.couplings:
            if coupling.solves and self._own_numbers(coupling):
                raise ModelError(
                    f"coupling {coupling.name!r} solves {listed(coupling.solves)} for their original lengths only, so "
                    "its numbers cannot be parameters"
                )
        for constraint, _ in base.embedding.closure.constraints():
            if constraint.name in solved:
                joints = [tree.links[link].joint for link in constraint.links]
                for owner in (constraint.name, *joints):
                    lengths = [f"{x}{owner}" for x in LENGTHS if f"{x}{owner}" in self.nodes]
                    if lengths:
                        raise ModelError(
                            f"parameter {lengths[0]!r}: loop {constraint.name!r} {solved[constraint.name]}, for the "
                            'lengths that the robot was built with; use robot.with_closure("numerical")'
                        )

    # Links

    def _links(self, bodies: Mapping[str, Body]) -> list[Link]:
        base, links = self.base, list(self.base.tree.links)
        for link in {base.tree.place[name][0] for name, body in bodies.items() if body is not base.bodies[name]}:
            links[link] = replace(links[link], inertia=gathered(links[link].bodies, bodies, base.tree.place))
        for joint in base.joints:
            number, given = base.tree.number.get(joint.name), self.by_owner.get(joint.name, {})
            if number is None:
                continue
            link = links[number]
            values = {name: np.atleast_1d(given[name]) for name in OF_JOINTS if name in given}
            if values:
                link = replace(link, kind=link.kind.with_values(**values))
            on_link, at = base.tree.place[joint.parent][1], joint.placement.r
            if "turned" in given:
                link = replace(link, placement=_turned(link.placement, on_link, at, given["turned"]))
            if "at" in given:
                link = replace(link, placement=_moved(link.placement, on_link, given["at"] - at))
            links[number] = link
        return links

    # Loops

    def _states(self, tree: Tree, couplings: Mapping[str, Coupling]) -> States:
        old = self.base.embedding
        loops = [
            replace(loop, constraints=tuple(self._constraint(c, tree, couplings) for c in loop.constraints))
            for loop in old.closure.loops
        ]
        solutions = [self._solution(solution, couplings) for solution in old.solutions]
        order = tree.links_of(self.base.joint_names)
        embedding = Embedding(Closure(tree, loops), old.choices, old.explicit, solutions, order)
        return States(embedding, self.base.states.neutral)

    def _constraint(self, constraint: Constraint, tree: Tree, couplings: Mapping[str, Coupling]) -> Constraint:
        given = self.by_owner.get(constraint.name, {})
        if isinstance(constraint, LoopConstraint) and given:
            loop = next(loop for loop in self.base.loops if loop.name == constraint.name)
            frames = list(constraint.frames)
            sides = (
                ("at", "turned", loop.predecessor, loop.predecessor_frame),
                ("meets", "meets_turned", loop.successor, loop.successor_frame),
            )
            for i, (at, turned, body, frame) in enumerate(sides):
                on_link = tree.place[body][1]
                if turned in given:
                    frames[i] = _turned(frames[i], on_link, frame.r, given[turned])
                if at in given:
                    frames[i] = _moved(frames[i], on_link, given[at] - frame.r)
            kind = _changed(constraint.kind, {x: given[x] for x in constraint.kind.lengths() if x in given})
            return replace(constraint, kind=kind, frames=tuple(frames))
        if isinstance(constraint, RelationConstraint) and self._is_varied(couplings.get(constraint.name)):
            return replace(RelationConstraint.of(couplings[constraint.name], tree), kept=constraint.kept)
        return constraint

    def _solution(self, solution: Solution, couplings: Mapping[str, Coupling]) -> Solution:
        coupling = couplings.get(solution.name)
        if coupling is None or not self._is_varied(coupling):
            return solution
        size = len(coupling.entries(coupling.independent))
        return replace(solution, function=template(coupling.function, size, self.parameters))

    def _is_varied(self, coupling: Coupling | None) -> bool:
        return coupling is not None and bool(self._own_numbers(coupling))

    def _own_numbers(self, coupling: Coupling) -> dict[str, Any]:
        """The nodes among the numbers of a coupling's function."""
        known = getattr(coupling.function, "__dataclass_fields__", {})
        return {name: x for name, x in self.by_owner.get(coupling.name, {}).items() if name in known}

    def _coupling(self, coupling: Coupling) -> Coupling:
        given = self._own_numbers(coupling)
        if not given:
            return coupling
        function: Any = coupling.function
        try:
            varied = replace(function, **given)  # so that what follows from its numbers follows from nodes
            traced = template(_changed(coupling, {"function": varied}).residual, sum(coupling.sizes), self.parameters)
        except Exception as error:  # whatever a user's function does with what is no number
            raise ModelError(
                f"coupling {coupling.name!r}: its function does not take {listed(given)} as an input of a program: "
                f"{error}"
            ) from None
        used = {id(node) for node in traced.numbers if isinstance(node, Node)}
        for name, nodes in given.items():
            if not any(id(node) in used for node in np.ravel(np.asarray(nodes, dtype=object))):
                raise ModelError(f"coupling {coupling.name!r}: its function, when called, does not depend on {name!r}")
        return _changed(coupling, {"function": varied})

    # Other parts

    def _actuator(self, actuator: Actuator) -> Actuator:
        given = self.by_owner.get(actuator.name, {}) if actuator.servo else {}
        return _changed(actuator, {quantity: given[name] for name, quantity in OF_SERVOS if name in given})

    def _with(self, part: Part, name: str, quantities: Sequence[str]) -> Part:
        given = self.by_owner.get(name, {})
        return _changed(part, {x: given[x] for x in quantities if x in given})


def _changed(part: Part, values: Mapping[str, Any]) -> Part:
    """A copy of a part with other values, which are nodes and so are not checked; the part itself if there are none."""
    if not values:
        return part
    other = copy(part)
    for name, value in values.items():
        object.__setattr__(other, name, value)
    return other


def _moved(frame: Transform, on_link: Transform, shift: Any) -> Transform:
    """A frame on a link, shifted along the axes of a body that is placed on that link."""
    return Transform(frame.E, frame.r + on_link.E.T @ shift)


def _turned(frame: Transform, on_link: Transform, at: np.ndarray, turn: Any) -> Transform:
    """A frame on a link, rotated about a point of a body on that link, by a rotation vector along the body's axes."""
    R = matrix_from_quaternion(quaternion_exp(on_link.E.T @ turn))
    point = on_link.r + on_link.E.T @ at
    slid = frame.r - point  # along the joint's axis: see slides.py
    far = np.abs(slid).max() > _SAME
    return Transform(frame.E @ R.T, point + R @ slid if far else frame.r)
