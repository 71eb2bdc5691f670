"""Between the coordinates of a robot and the positions and velocities of all its joints.

A robot's q holds some of the positions p of all joints, and v some of their velocities w:

    p = γ(q),        w = G v,        ẇ = G v̇ + g,        K w = 0,        K ẇ = k.        [001, §II-B]

In a cluster with a solution γ, q holds the independent positions, and γ gives the rest. In any other cluster q holds
the positions of all joints, which must fit together. With K = [K_I K_D], w_D = −K_D⁻¹ K_I w_I and g_D = K_D⁻¹ k, so
that K G = 0 and K g = k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coupler.forks import cached_property
from coupler.graph import Executable, compile
from coupler.model.embedding.choice import Choice, qualities
from coupler.model.embedding.closure import Closure, stacked
from coupler.model.embedding.solutions import Solution, spread_program
from coupler.model.tree import Tree


class _Stack(NamedTuple):
    """C clusters with r dependent and i independent velocities each."""

    loops: np.ndarray  # C, their numbers
    rows: np.ndarray  # C × r, in φ and k
    dependent: np.ndarray  # C × r, in w
    independent: np.ndarray  # C × i, in w
    KD: np.ndarray  # C × r × r, among the entries of K
    KI: np.ndarray  # C × r × i, among the entries of K


class Embedding:
    """How the coordinates of a robot are embedded in those of its joints.

    Attributes:
        closure: the constraints.
        choices: for each loop, which rows count and which columns are independent.
        explicit: for each loop, whether it has a solution γ.
        solutions: the solutions, in an order in which they can be evaluated.
        q_index: the entries of p that make q.
        v_index: the entries of w that make v.
        q_place, v_place: for each entry of p its place in q, and of w its place in v; -1 if it has none.
        unsolved_links: the links in loops without a solution; at dead points, v does not determine their velocities.
            Loops whose rows are all redundant, such as the second hinge of a door, hold nothing, and do not count.
        unsolved_entries: the entries of w of these links, in their order.
        origin: the embedding without given parameters, whose programs it shares; see `States.with_given`.
    """

    origin: Embedding | None = None

    def __init__(
        self,
        closure: Closure,
        choices: Sequence[Choice],
        explicit: Sequence[bool],
        solutions: Sequence[Solution],
        order: Sequence[int],
    ) -> None:
        """Args: see the attributes, and the order of links in q and v."""
        self.closure, self.choices, self.explicit = closure, tuple(choices), tuple(explicit)
        self.solutions = tuple(solutions)
        tree, loops = closure.tree, closure.loops
        dependent = [loop.columns[choice.dependent] for loop, choice in zip(loops, choices, strict=True)]
        self.v_index = _all_but(dependent, [tree.velocities(link) for link in order])
        solved = [tree.positions(link) for solution in self.solutions for link in solution.dependent]
        self.q_index = _all_but(solved, [tree.positions(link) for link in order])
        self.q_place, self.v_place = np.full(tree.nq, -1), np.full(tree.nv, -1)
        self.q_place[self.q_index] = np.arange(len(self.q_index))
        self.v_place[self.v_index] = np.arange(len(self.v_index))
        self.stacks = tuple(self._stacks())
        found = zip(loops, self.choices, self.explicit, strict=True)
        unsolved = [loop for loop, choice, solved in found if not solved and len(choice.rows)]
        self.unsolved_links = tuple(link for loop in unsolved for link in loop.links)
        self.unsolved_entries = tree.velocities_of(self.unsolved_links)

    @property
    def tree(self) -> Tree:
        return self.closure.tree

    def _stacks(self) -> list[_Stack]:
        parts = []
        for loop, (rows, K), choice in zip(self.closure.loops, self.closure.places, self.choices, strict=True):
            kept, dependent, independent = choice.rows, choice.dependent, choice.independent
            columns = loop.columns[dependent], loop.columns[independent]
            parts.append((rows[kept], *columns, K[np.ix_(kept, dependent)], K[np.ix_(kept, independent)]))
        return [stack for stack in map(_Stack._make, stacked(parts)) if stack.dependent.size]

    @cached_property
    def _spread(self) -> Executable | None:
        if self.origin is not None or not self.solutions:
            return None if self.origin is None else self.origin._spread
        return compile(spread_program(self.tree, self.q_index, self.solutions))

    def positions(self, q: np.ndarray) -> np.ndarray:
        """p = γ(q)."""
        if self._spread is not None:
            return self._spread(q, *self.tree.inputs_of(self._spread))
        p = np.empty_like(q)
        p[..., self.q_index] = q
        return p

    def velocities(self, p: np.ndarray, v: np.ndarray, unsolved: np.ndarray | None = None) -> np.ndarray:
        """w = G v.

        Args:
            p: (..., Σ nq).
            v: (..., nv).
            unsolved: velocities of `unsolved_entries`, for dead points, where they do not follow from v.
        """
        shape = np.broadcast_shapes(p.shape[:-1], v.shape[:-1])
        w = np.zeros((*shape, self.tree.nv))
        w[..., self.v_index] = v
        if self.stacks:
            _, K, _ = self.closure.at(p)
            for stack in self.stacks if unsolved is None else self._solved_stacks:
                driven = np.einsum("...ij,...j->...i", K[..., stack.KI], w[..., stack.independent])
                w[..., stack.dependent] = -_solve(K, stack, driven)
        if unsolved is not None:
            w[..., self.unsolved_entries] = unsolved
        return w

    @cached_property
    def _solved_stacks(self) -> list[_Stack]:
        """For each stack, its clusters that have a solution γ."""
        solved = np.array(self.explicit, bool)
        stacks = (_Stack._make(array[solved[stack.loops]] for array in stack) for stack in self.stacks)
        return [stack for stack in stacks if len(stack.loops)]

    def explicit_constraint(self, p: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """G, (..., Σ nv, nv), and g, (..., Σ nv)."""
        w = self.velocities(p, v)
        G = np.zeros((*w.shape, len(self.v_index)))
        g = np.zeros_like(w)
        G[..., self.v_index, np.arange(len(self.v_index))] = 1.0
        if self.stacks:
            _, K, k = self.closure.at(p, w)
            for stack in self.stacks:
                at = self.v_place[stack.independent]
                solved = -np.linalg.solve(K[..., stack.KD], K[..., stack.KI])
                G[..., stack.dependent[:, :, None], at[:, None, :]] = solved
                g[..., stack.dependent] = _solve(K, stack, k[..., stack.rows])
        return G, g

    def implicit_constraint(self, p: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """K, (..., rows, Σ nv), and k, (..., rows), without rows that follow from others."""
        if not self.stacks:
            return np.zeros((*w.shape[:-1], 0, w.shape[-1])), np.zeros((*w.shape[:-1], 0))
        _, entries, k = self.closure.at(p, w)
        kept = np.zeros(self.closure.size, bool)
        K = np.zeros((*entries.shape[:-1], len(kept), w.shape[-1]))
        for loop, (rows, places), choice in zip(self.closure.loops, self.closure.places, self.choices, strict=True):
            kept[rows[choice.rows]] = True
            K[..., rows[:, None], loop.columns] = entries[..., places]
        return K[..., kept, :], k[..., kept]

    def of_cluster(self, p: np.ndarray, number: int, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """K and G of one cluster at positions p of one state, for its independent velocities and its entries of w."""
        for loop, (_, entries), choice in zip(self.closure.loops, self.closure.places, self.choices, strict=True):
            if loop.cluster == number and len(choice.dependent):
                K, G = self.closure.at(p)[1][entries[choice.rows]], np.zeros((len(columns), len(choice.independent)))
                G[choice.dependent] = -np.linalg.solve(K[:, choice.dependent], K[:, choice.independent])
                G[choice.independent] = np.eye(len(choice.independent))
                return K, G
        return np.zeros((0, len(columns))), np.eye(len(columns))

    def quality(self, p: np.ndarray) -> np.ndarray:
        """How far the coordinates of each loop are from singular, (..., loops); 0 where they are singular.

        This is the smallest singular value of K_D over the largest of K.
        """
        result = np.ones((*p.shape[:-1], len(self.closure.loops)))
        if self.stacks:
            _, K, _ = self.closure.at(p)
            for stack in self.stacks:
                KD = K[..., stack.KD]
                result[..., stack.loops] = qualities(KD, np.concatenate([KD, K[..., stack.KI]], axis=-1))
        return result


def _all_but(left_out: Sequence[np.ndarray], entries: Sequence[np.ndarray]) -> np.ndarray:
    """The entries in their order, without those that are left out, as a read-only array."""
    nothing = np.zeros(0, int)
    everything = np.concatenate([nothing, *entries])
    kept = everything[~np.isin(everything, np.concatenate([nothing, *left_out]))]
    kept.setflags(write=False)
    return kept


def _solve(K: np.ndarray, stack: _Stack, right: np.ndarray) -> np.ndarray:
    return np.linalg.solve(K[..., stack.KD], right[..., None])[..., 0]
