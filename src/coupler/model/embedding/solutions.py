"""Solutions γ: which loops they solve, in which order they are evaluated, and whether they close their loops."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coupler.forks import cached_property
from coupler.graph import Array, Builder, Program, Template, View, fields, jacobian, symbols, template
from coupler.grouping import grouped
from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraint_steps import constant_fields
from coupler.model.embedding.constraints import Constraint, Loop
from coupler.model.embedding.kernels import copy
from coupler.model.errors import ModelError
from coupler.model.loops import Coupling
from coupler.model.tolerances import CLOSED
from coupler.model.tree import Tree
from coupler.model.wording import listed

_TRIES = 300  # random positions that are tried until a solution exists
_SAMPLES = 20  # random positions at which a solution is compared with the constraints it solves


@dataclass(frozen=True, eq=False)
class Solution:
    """A coupling γ, which determines the positions of dependent joints from those of independent ones.

    Attributes:
        name: the coupling's name.
        function: γ, with its numbers extracted.
        inputs: the links of the independent joints.
        outputs: the links of all joints, in the order in which γ returns their positions.
        sizes: the number of position entries of each of these.
        linear: whether its rates are the same everywhere.
        level: solutions of lower levels are evaluated first.
    """

    name: str
    function: Template
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    sizes: tuple[int, ...]
    linear: bool
    level: int = 0

    @property
    def dependent(self) -> tuple[int, ...]:
        return tuple(link for link in self.outputs if link not in self.inputs)

    @property
    def form(self) -> Hashable:
        return self.function.text

    @property
    def connection(self) -> Hashable:
        return self.inputs, self.outputs

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """The numbers that go into tables, by name."""
        return {"numbers": self.function.numbers}

    def within(self, number: Mapping[Any, int]) -> Solution:
        """A copy whose links go by their numbers in a cluster; `number` maps links to these."""
        inputs, outputs = (tuple(number[link] for link in links) for links in (self.inputs, self.outputs))
        return replace(self, inputs=inputs, outputs=outputs)

    def positions(self, numbers: Any, known: Mapping[int, Any]) -> dict[int, Any]:
        """Positions of the dependent joints, by link, for the solution's numbers and known positions of the others."""
        given = self.function(np.concatenate([known[link] for link in self.inputs]), numbers)
        starts = np.cumsum([0, *self.sizes])
        places = zip(self.outputs, starts[:-1], starts[1:], strict=True)
        return {link: given[start:end] for link, start, end in places if link not in self.inputs}


class Solutions:
    """The solutions γ of a robot's loops.

    Attributes:
        closure: the loops.
        couplings: by name.
        solved: the names of constraints that a coupling solves, each with that coupling's name.
        of_loop: for each loop, the solutions that determine all its dependent positions; None if there are none.
    """

    def __init__(self, closure: Closure, couplings: Mapping[str, Coupling]) -> None:
        self.closure, self.tree, self.couplings = closure, closure.tree, couplings
        self._known_linear: dict[str, bool] = {}
        self.solved = self._solved([constraint for constraint, _ in closure.constraints()])
        self.of_loop = [self._solutions(loop) for loop in closure.loops]

    @cached_property
    def in_order(self) -> list[Solution]:
        """All solutions, in an order in which they can be evaluated."""
        return sorted((x for solutions in self.of_loop for x in solutions or ()), key=lambda x: x.level)

    def _solved(self, constraints: Sequence[Constraint]) -> dict[str, str]:
        """The names of constraints that couplings solve, each with the coupling's name."""
        links = {constraint.name: set(constraint.links) for constraint in constraints}
        solved: dict[str, str] = {}
        for coupling in self.couplings.values():
            for name in coupling.solves:
                if name not in links or name == coupling.name:
                    raise ModelError(
                        f"coupling {coupling.name!r} solves {name!r}, which is neither a loop nor another coupling"
                    )
                if name in solved:
                    raise ModelError(f"couplings {solved[name]!r} and {coupling.name!r} both solve {name!r}")
                missing = links[name] - links[coupling.name]
                if missing:
                    joints = listed(self.tree.links[link].joint for link in sorted(missing))
                    raise ModelError(f"coupling {coupling.name!r} solves {name!r} but gives no position for {joints}")
                solved[name] = coupling.name
        for name, by in solved.items():
            if by in solved:
                raise ModelError(f"coupling {by!r} solves {name!r} and is itself solved, by {solved[by]!r}; drop one")
        return solved

    def _solutions(self, loop: Loop) -> list[Solution] | None:
        """The solutions of a loop; None unless each dependent joint has exactly one, and none depends on itself."""
        solutions: list[Solution] = []
        for constraint in loop.constraints:
            if constraint.name in self.solved:
                continue
            coupling = self.couplings.get(constraint.name)
            if coupling is None or not coupling.solved:
                return None
            inputs = tuple(self.tree.number[joint] for joint in coupling.independent)
            outputs = tuple(self.tree.number[joint] for joint in coupling.joints)
            size = len(coupling.entries(coupling.independent))
            function = template(coupling.function, size)
            linear = size == len(inputs) and self._is_linear(function, size)
            solutions.append(Solution(coupling.name, function, inputs, outputs, coupling.sizes, linear))
        source = {link: i for i, solution in enumerate(solutions) for link in solution.dependent}
        if len(source) < sum(len(solution.dependent) for solution in solutions):
            return None
        levels = [0] * len(solutions)
        for _ in range(len(solutions) + 1):
            new = [max((levels[source[x]] + 1 for x in s.inputs if x in source), default=0) for s in solutions]
            if new == levels:
                return [replace(solution, level=level) for solution, level in zip(solutions, levels, strict=True)]
            levels = new
        return None

    def _is_linear(self, function: Template, size: int) -> bool:
        """Whether the rates of a solution are constant; computed once for all that differ only in numbers."""
        if function.text not in self._known_linear:
            rates = jacobian(lambda y: function(y, function.numbers), symbols("x", size))
            self._known_linear[function.text] = not isinstance(rates, Array)
        return self._known_linear[function.text]

    @property
    def linear(self) -> list[bool]:
        """For each loop, whether its solutions are linear: they then exist, and are regular, everywhere."""
        return [solved is not None and all(solution.linear for solution in solved) for solved in self.of_loop]

    def usable(self, loop: Loop) -> np.ndarray:
        """For each row of a loop, whether it may be kept: rows that a coupling solves follow from it."""
        return np.array([c.name not in self.solved for c in loop.constraints for _ in range(c.rows)])

    def start(self) -> np.ndarray:
        """Start positions of joints; in clusters without a solution there, random positions that have one."""
        p, rng, motion = self.closure.motion.start(), np.random.default_rng(0), self.closure.motion
        broken = np.zeros(0, int)
        for _ in range(_TRIES):
            spread = self.spread(p)
            broken = self.closure.loop_of_position[~np.isfinite(spread)]
            if not broken.size:
                return spread
            links = self.closure.loops[broken[0]].links
            p[self.tree.positions_of(links)] = motion.random(rng, links)
        names = listed(c.name for i in set(broken.tolist()) for c in self.closure.loops[i].constraints)
        raise ModelError(f"coupling {names}: its function gives no finite positions wherever it was tried")

    def spread(self, p: np.ndarray) -> np.ndarray:
        """Positions of one state or several, with the dependent ones replaced by those of the solutions."""
        p = p.copy()
        for state in np.atleast_2d(p):
            for solution in self.in_order:
                known = {link: state[self.tree.positions(link)] for link in solution.inputs}
                with np.errstate(all="ignore"):
                    given = solution.positions(solution.function.numbers, known)
                for link, position in given.items():
                    state[self.tree.positions(link)] = position
        return p

    def check(self, start: np.ndarray) -> None:
        """Raises a ModelError for a γ that leaves a φ that it solves different from zero somewhere."""
        if not self.solved:
            return
        rng = np.random.default_rng(0)
        samples = np.stack([start, *(self.closure.motion.random(rng) for _ in range(_SAMPLES))])
        for name in dict.fromkeys(self.solved.values()):
            coupling = self.couplings[name]
            joints, independent = self._entries(coupling.joints), self._entries(coupling.independent)
            for p in samples:
                with np.errstate(all="ignore"):
                    p[joints] = coupling.function(p[independent])
        phi = self.closure.at(samples)[0]
        for constraint, rows in self.closure.constraints():
            if constraint.name in self.solved:
                self._compare(constraint, self.solved[constraint.name], samples, phi[:, rows])

    def _entries(self, joints: Sequence[str]) -> list[int]:
        return self.tree.positions_of(self.tree.number[joint] for joint in joints).tolist()

    def _compare(self, constraint: Constraint, name: str, samples: np.ndarray, phi: np.ndarray) -> None:
        joints = self.couplings[name].joints
        gap = np.where(np.isfinite(phi).all(axis=1), np.abs(phi).max(axis=1), 0.0)
        worst = int(np.argmax(gap))
        if gap[worst] > CLOSED:
            at = [(joint, samples[worst, self._entries([joint])]) for joint in joints]
            positions = ", ".join(f"{joint} = {', '.join(f'{x:.4g}' for x in position)}" for joint, position in at)
            raise ModelError(
                f"coupling {name!r} contradicts {constraint.name!r}, which it is said to solve: at {positions} it "
                f"leaves a gap of {gap[worst]:.3g} (m or rad)"
            )


def spread_program(tree: Tree, q_index: np.ndarray, solutions: Sequence[Solution]) -> Program:
    """q → p: positions of all joints, the dependent ones by the solutions, which are evaluated in the given order."""
    b = Builder("spread", tree.parameters)
    q, p = b.input("q", len(q_index)), b.output("p", tree.nq)
    b.loop(copy, entry=fields(source=q.at(range(q.size)), target=p.at(q_index)))
    numbered = [(x.within({link: j for j, link in enumerate(x.outputs)}), x) for x in solutions]
    for same in grouped(numbered, lambda pair: (pair[0].level, pair[0].form, pair[0].inputs, pair[0].sizes)).values():
        links = np.transpose([solution.outputs for _, solution in same])
        sizes = same[0][1].sizes
        positions = {f"p{j}": p.at(tree.q_start[row], sizes[j]) for j, row in enumerate(links)}
        numbers = constant_fields([solution.constants for _, solution in same])
        b.loop(_spread(same[0][0]), joints=fields(**numbers, **positions))
    return b.build()


def _spread(solution: Solution) -> Callable[[View], None]:
    """A kernel that evaluates a solution whose links are numbered in the order of its outputs."""

    def spread(joints: View) -> None:
        known = {j: getattr(joints, f"p{j}") for j in solution.inputs}
        for j, position in solution.positions(joints.numbers, known).items():
            setattr(joints, f"p{j}", position)

    return spread
