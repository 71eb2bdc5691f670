"""A cluster as an algorithm sees it: bodies, transforms, subspaces and memory, in the notation of the papers.

Everything is computed where it is first asked for and remembered; what is not asked for costs nothing, because a trace
keeps what leads to its results and nothing else. What a cluster knows after the first pass over it (sines and cosines,
the Jacobian G of its loops) is loaded from its memory in later ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from coupler.graph import View, jacobian, jvp, second_directional
from coupler.linear import solve
from coupler.passes.body import Body, Memory, Output
from coupler.passes.loops import Loops
from coupler.passes.shape import Shape, Solved

__all__ = ["Cluster"]

Array = Any  # nodes of a trace

_STEEP = 1e-15  # velocities of dependent joints this much slower than they are count as a gap: 1e9 times v is singular


class Cluster:
    """A cluster while a pass over it is traced; see the module's text."""

    def __init__(
        self,
        here: View,
        shape: Shape,
        remembers: bool,
        *,
        later: bool,
        moving: bool,
        loaded: bool = False,
        everybody: bool = False,
    ) -> None:
        """Args: what it sees, its shape, and whether it remembers, has been seen before, has velocities, has loads.

        And whether bodies have memory that carry nothing.
        """
        self.here, self.shape, self.remembers, self.later = here, shape, remembers, later and remembers
        self.moving, self.loaded, self.everybody = moving, loaded, everybody or loaded
        self.memory = Memory(here, "c_")
        self.outputs = [Output(self, i) for i in range(len(shape.grounded))]
        self.bodies = [Body(self, i) for i in range(len(shape.kinds))]
        own = {(a, b): Memory(here, f"p{a}_{b}_") for a, b in shape.couples}
        self.pairs = [(self.bodies[a], self.bodies[b], memory) for (a, b), memory in own.items()]
        self.output_pairs = {(a, b): Memory(here, f"q{a}_{b}_") for a, b in combinations(range(len(shape.grounded)), 2)}

    @property
    def carriers(self) -> list[Body]:
        """The bodies on which other clusters hang."""
        return [body for body in self.bodies if body.carries]

    def add(self, name: str, value: Array) -> None:
        """Adds to a total of all clusters."""
        setattr(self.here, name, getattr(self.here, name) + value)

    def rates(self, quantity: Callable[[Cluster], Array]) -> Array:
        """How fast a quantity changes that depends on where the cluster's joints are, at their velocities w."""
        starts = self.shape.starts[1:-1]

        def moved(x: Array) -> Array:
            other = Cluster(self.here, self.shape, False, later=False, moving=False)
            parts = zip(self.shape.kinds, self.q, np.split(x, starts), strict=True)
            other.q = [kind.integrate(q, own) for kind, q, own in parts]
            return quantity(other)

        return jvp(moved, np.zeros(int(self.shape.starts[-1])), self.w)

    # Coordinates

    def read(self, name: str) -> Array:
        """The cluster's part of a vector such as v or τ."""
        parts = [getattr(self.here, f"{name}{i}") for i, free in enumerate(self.shape.free) if free]
        return np.concatenate(parts)

    def write(self, name: str, value: Array) -> None:
        """Sets the cluster's part of a vector."""
        start = 0
        for i, free in enumerate(self.shape.free):
            if free:
                setattr(self.here, f"{name}{i}", value[start : start + len(free)])
                start += len(free)

    @cached_property
    def v(self) -> Array:
        """ẏ: its independent velocities."""
        return self.read("v")

    @cached_property
    def q(self) -> list[Array]:
        """The positions of all its joints."""
        stored = self.shape.stored
        return [getattr(self.here, f"q{i}") if stored[i] else self._given[i] for i in range(len(stored))]

    @cached_property
    def kept(self) -> list[Array]:
        """Of each position what is kept."""
        found: list[Array] = []
        for i, kind in enumerate(self.shape.kinds):
            loaded = self.later and not self.shape.steady[i]
            found.append(getattr(self.here, f"kept{i}") if loaded else kind.keep(self.q[i]))
        return found

    @cached_property
    def _given(self) -> dict[int, Array]:
        """Positions of dependent joints."""
        y = np.concatenate([getattr(self.here, f"q{i}") for i in self._inputs])
        found = self._solution(y)
        return {i: found[j : j + 1] for j, i in enumerate(self._outputs)}

    @cached_property
    def _inputs(self) -> list[int]:
        """Bodies whose positions solutions start from."""
        named = {i for solved in self.shape.constraints if isinstance(solved, Solved) for i in solved.inputs}
        return [i for i in sorted(named) if self.shape.stored[i]]

    @cached_property
    def _outputs(self) -> list[int]:
        return [i for i, stored in enumerate(self.shape.stored) if not stored]

    def _solution(self, y: Array) -> Array:
        """γ: dependent positions from the independent ones that they start from."""
        known = dict(zip(self._inputs, y, strict=True))
        for i, solved in enumerate(self.shape.constraints):
            assert isinstance(solved, Solved)
            found = solved.function(np.array([known[j] for j in solved.inputs]), getattr(self.here, f"n{i}"))
            known |= {solved.outputs[j]: found[j] for j in solved.dependent}
        return np.array([known[i] for i in self._outputs])

    @cached_property
    def G(self) -> Array:
        """w = G ẏ: velocities of all joints from the independent ones. [001, §II-B]"""
        n, independent = int(self.shape.starts[-1]), self.shape.independent
        rows: list[Any] = [None] * n
        for row, unit in zip(independent, np.eye(len(independent)), strict=True):
            rows[row] = unit
        for row, values in zip(self.shape.dependent, self._dependent_rows, strict=True):
            rows[row] = values
        return np.array(rows)

    @cached_property
    def _dependent_rows(self) -> Array:
        """The rows of G that belong to dependent velocities."""
        dependent, independent = self.shape.dependent, self.shape.independent
        if not len(dependent):
            return np.zeros((0, len(independent)))
        if self.later and not self.shape.linear:
            return self.memory.GD
        if not self.shape.solved:
            return -solve(self.loops.K[:, dependent], self.loops.K[:, independent])
        y = np.concatenate([self.q[i] for i in self._inputs])
        rates = jacobian(self._solution, y)
        columns = {int(self.shape.starts[i]): rates[:, j] for j, i in enumerate(self._inputs)}
        zero = np.zeros(len(dependent))
        return np.array([columns.get(int(entry), zero) for entry in independent]).T

    @cached_property
    def g(self) -> Array:
        """ẇ = G ÿ + g."""
        values: list[Any] = [0.0] * int(self.shape.starts[-1])
        for row, value in zip(self.shape.dependent, self._dependent_bias, strict=True):
            values[row] = value
        return np.array(values)

    @cached_property
    def _dependent_bias(self) -> Array:
        if self.shape.linear:
            return np.zeros(len(self.shape.dependent))
        if self.later:
            return self.memory.gD
        if not self.shape.solved:
            return solve(self.loops.K[:, self.shape.dependent], self.loops.k)
        y = np.concatenate([self.q[i] for i in self._inputs])
        speed = np.concatenate([self.w[self.bodies[i].entries] for i in self._inputs])
        return second_directional(self._solution, y, speed)

    @cached_property
    def w(self) -> Array:
        """Velocities of all its joints."""
        return self.G @ self.v

    def remember(self) -> None:
        """Stores what later passes need again."""
        if not self.remembers:
            return
        for i, steady in enumerate(self.shape.steady):
            if not steady:
                setattr(self.here, f"kept{i}", self.kept[i])
        if not self.shape.linear:
            self.memory.GD = self._dependent_rows
            if self.moving:
                self.memory.gD = self._dependent_bias

    # Loops

    @cached_property
    def loops(self) -> Loops:
        """Its constraints, where they have no solution."""
        return Loops(self)

    @cached_property
    def constraint(self) -> tuple[Array, Array]:
        """K and k of its joints, K w = 0 and K ẇ = k, before they are solved for dependent velocities."""
        if not self.shape.solved:
            return self.loops.K, self.loops.k
        dependent, independent = self.shape.dependent, self.shape.independent
        columns: list[Any] = [None] * int(self.shape.starts[-1])
        for entry, unit in zip(dependent, np.eye(len(dependent)), strict=True):
            columns[entry] = unit
        for entry, column in zip(independent, -self._dependent_rows.T, strict=True):
            columns[entry] = column
        return np.array(columns).T, self._dependent_bias

    def report_gap(self, *, moving: bool = True) -> None:
        """Tells how far its loops are from closed and from regular, and its quaternions from unit length.

        What depends on positions alone, with nothing `moving`, is right in a singular configuration, too.
        """
        if not self.shape.judged:
            return
        gap = self.here.gap
        for kind, q in zip(self.shape.kinds, self.q, strict=True):
            if kind.nq != kind.nv:
                gap = np.maximum(gap, np.abs(q[-4:] @ q[-4:] - 1.0))
                for x in q[:-4]:  # nothing else may depend on where a body floats
                    gap = np.maximum(gap, np.where(np.abs(x) < np.inf, 0.0, 1.0))
        if not self.shape.solved:
            steepness = (_STEEP * self._dependent_rows).ravel() if moving else ()
            for value in (*self.loops.residuals(), *steepness):
                gap = np.maximum(gap, np.abs(value))
        self.here.gap = gap

    # Passive forces

    @cached_property
    def armature(self) -> Array:
        """The armature of its joints, by independent velocities: Gᵀ A G."""
        A = np.concatenate([body.number_of("armature") for body in self.bodies])
        return self.G.T @ (A[:, None] * self.G)

    @cached_property
    def armature_bias(self) -> Array:
        """Gᵀ A g."""
        A = np.concatenate([body.number_of("armature") for body in self.bodies])
        return self.G.T @ (A * self.g)

    @cached_property
    def passive(self) -> Array:
        """Forces of springs and dampers at its joints, on independent velocities."""
        return self.G.T @ self.springs

    @cached_property
    def springs(self) -> Array:
        """Forces of springs and dampers at all its joints: k (rest − q) − d q̇."""
        forces = []
        for body, q in zip(self.bodies, self.q, strict=True):
            pull = -body.kind.difference(body.number_of("rest"), q) * body.number_of("stiffness")
            forces.append(pull - body.number_of("damping") * body.w)
        return np.concatenate(forces)
