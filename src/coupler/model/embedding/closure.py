"""The constraints of a robot in numbers: residuals and Jacobians of all clusters, and closing them from far away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from coupler.blas import one_thread
from coupler.forks import cached_property
from coupler.graph import Builder, Executable, Program, compile, fields
from coupler.grouping import grouped
from coupler.model.embedding.constraint_steps import ConstraintSteps
from coupler.model.embedding.constraints import Constraint, Loop
from coupler.model.embedding.kernels import clear
from coupler.model.embedding.motion import Motion
from coupler.model.tolerances import CLOSED_BY_NEWTON, RANK, STRIDE, TINY
from coupler.model.tree import Tree

_ROUNDS = 200  # steps of `assemble`, at most; fewer for clusters so large that these would take many seconds
# Damping of steps that close a loop, relative to the square of the largest singular value of K: its initial value, the
# factors by which it falls after a step that closes the loop further and grows after one that does not, the smallest
# growth, which restores damping that has vanished, and the value at which a cluster is given up.
_DAMPED, _LESS, _MORE, _LEAST, _STUCK = 1e-3, 0.1, 10.0, 1e-9, 1e6
# The cost allowed to all rounds of a state, in products of singular value decompositions (about 0.3 s), and the number
# of rounds that are made in any case.
_WORK, _FEWEST = 1_000_000_000, 10


class _Group(NamedTuple):
    """C clusters whose K have the same shape, so that NumPy treats them as one stack."""

    loops: np.ndarray  # C, their numbers among the loops
    rows: np.ndarray  # C × m, where their residuals are in φ and k
    columns: np.ndarray  # C × n, where their joint velocities are in w
    entries: np.ndarray  # C × m × n, where their K is in the vector of all entries


class Closure:
    """The loops of a robot.

    Attributes:
        tree: the links.
        motion: how their joints move.
        loops: the constraints, cluster by cluster.
        places: for each loop, where its residuals are in φ, and its K, rows × columns, in the vector of all entries.
        groups: these places, stacked by the shape of K.
        size: the number of residuals.
        origin: the closure without given parameters, whose programs it shares; see `States.with_given`.
    """

    origin: Closure | None = None

    def __init__(self, tree: Tree, loops: Sequence[Loop]) -> None:
        self.tree, self.motion, self.loops = tree, Motion(tree), tuple(loops)
        self.size = sum(loop.rows for loop in loops)
        self.places: list[tuple[np.ndarray, np.ndarray]] = []
        row = entry = 0
        for loop in loops:
            m, n = loop.rows, len(loop.columns)
            self.places.append((row + np.arange(m), entry + np.arange(m * n).reshape(n, m).T))
            row, entry = row + m, entry + m * n
        pairs = zip(loops, self.places, strict=True)
        self.groups = [_Group(*alike) for alike in stacked([(rows, loop.columns, K) for loop, (rows, K) in pairs])]

    def constraints(self) -> Iterator[tuple[Constraint, slice]]:
        """Yields all constraints, each with its rows in φ."""
        start = 0
        for loop in self.loops:
            yield from loop.parts(start)
            start += loop.rows

    @cached_property
    def rates(self) -> Executable:
        """(p, w) → φ, K, k, s, T: see `rates_program`."""
        return compile(rates_program(self.tree, self.loops)) if self.origin is None else self.origin.rates

    def at(self, p: np.ndarray, w: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """φ, K and k (as vectors of all entries) at positions p and velocities w."""
        w = np.zeros(self.tree.nv) if w is None else w
        phi, K, k, _, _ = self.rates(p, w, *self.tree.inputs_of(self.rates))
        return phi, K, k

    def of_states(self, batch: tuple[int, ...], chosen: np.ndarray) -> Closure:
        """The closure of some states of a batch, which may have parameters of their own."""
        given = self.tree.given
        if given is None or given.ndim == 1 or not batch:
            return self
        other = copy(self)
        other.origin = self if self.origin is None else self.origin
        other.tree = replace(self.tree, given=np.broadcast_to(given, (*batch, given.shape[-1]))[chosen])
        return other

    def gaps(self, phi: np.ndarray) -> np.ndarray:
        """The largest residual of each loop, (..., loops); infinite where one is NaN."""
        result = np.empty((*phi.shape[:-1], len(self.loops)))
        for group in self.groups:
            result[..., group.loops] = np.abs(phi[..., group.rows]).max(axis=-1, initial=0.0)
        return np.where(np.isnan(result), np.inf, result)

    @one_thread()
    def assemble(self, p: np.ndarray, weight: np.ndarray | None = None, rank: float = RANK) -> np.ndarray:
        """Closed configurations near p, (..., Σ nq), or the ones closest to closed that were found.

        This is the method of Levenberg and Marquardt with all rows of φ, redundant ones included. It is slower than
        Newton's method and converges from further away. Each cluster of each state is treated on its own.

        Args:
            p: where to start.
            weight: for each entry of w, how willingly it moves; ones if None.
            rank: singular values below this part of the largest are ignored.
        """
        weight = np.ones(self.tree.nv) if weight is None else weight
        damping = np.full((*p.shape[:-1], len(self.loops)), _DAMPED)
        costs = np.array([K.size * min(K.shape) for _, K in self.places])
        budget = max(_WORK, _FEWEST * int(costs.sum())) * damping[..., 0].size
        phi, K, _ = self.at(p)
        for _ in range(_ROUNDS):
            gap = self.gaps(phi)
            active = (gap > CLOSED_BY_NEWTON) & (damping < _STUCK)
            budget -= int((active * costs).sum())
            if not active.any() or budget < 0:
                break
            tried = self.motion.integrate(p, self._damped_steps(active, phi, K, damping, weight, rank))
            new_phi, new_K, _ = self.at(tried)
            better = active & (self.gaps(new_phi) < gap)
            damping = np.where(better, _LESS * damping, _MORE * damping + _LEAST)
            chosen = np.concatenate([better, np.zeros((*better.shape[:-1], 1), bool)], axis=-1)
            p = np.where(chosen[..., self.loop_of_position], tried, p)
            phi = np.where(better[..., self._loop_of_row], new_phi, phi)
            K = np.where(better[..., self._loop_of_entry], new_K, K)
        return p

    def _damped_steps(
        self, active: np.ndarray, phi: np.ndarray, K: np.ndarray, damping: np.ndarray, weight: np.ndarray, rank: float
    ) -> np.ndarray:
        """−W½ (K W½)⁺ φ of each active cluster, with damped singular values and without those that are zero.

        The step is zero where φ or K is NaN.
        """
        step = np.zeros((*phi.shape[:-1], self.tree.nv))
        for group in self.groups:
            computed = active[..., group.loops] & np.isfinite(phi[..., group.rows]).all(axis=-1)
            computed &= np.isfinite(K[..., group.entries]).all(axis=(-2, -1))
            if not computed.any():
                continue
            root = np.sqrt(np.broadcast_to(weight, step.shape)[..., group.columns][computed])
            U, sigma, Vt = np.linalg.svd(K[..., group.entries][computed] * root[:, None, :], full_matrices=False)
            largest = sigma.max(axis=-1, keepdims=True, initial=TINY)
            used = sigma > rank * largest
            mu = damping[..., group.loops][computed][:, None] * largest**2
            scaled = np.where(used, sigma, 0.0) / np.where(used, sigma**2 + mu, 1.0)
            along = np.einsum("sji,sj->si", U, phi[..., group.rows][computed])
            wanted = -root * np.einsum("sij,si->sj", Vt, scaled * along)
            longest = np.abs(wanted).max(axis=-1, keepdims=True, initial=STRIDE)
            steps = np.zeros((*computed.shape, wanted.shape[-1]))
            steps[computed] = wanted * (STRIDE / longest)
            step[..., group.columns] = steps
        return step

    @cached_property
    def loop_of_position(self) -> np.ndarray:
        """For each entry of p the number of its loop; for entries of no loop, the number of loops."""
        owner = np.full(self.tree.nq, len(self.loops))
        for i, loop in enumerate(self.loops):
            for link in loop.links:
                owner[self.tree.positions(link)] = i
        return owner

    @cached_property
    def _loop_of_row(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.loops)), [len(rows) for rows, _ in self.places])

    @cached_property
    def _loop_of_entry(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.loops)), [K.size for _, K in self.places])


def stacked(parts: Sequence[Sequence[np.ndarray]]) -> list[tuple[np.ndarray, ...]]:
    """For each group of parts whose arrays have the same shapes, the numbers of the parts and their arrays, stacked."""
    groups = grouped(range(len(parts)), lambda i: tuple(array.shape for array in parts[i])).values()
    return [(np.array(group), *map(np.stack, zip(*(parts[i] for i in group), strict=True))) for group in groups]


def rates_program(tree: Tree, loops: Sequence[Loop]) -> Program:
    """(p, w) → φ, K, k, s, T of all constraints.

    These are the residuals, the entries of ∂φ/∂w cluster by cluster and column by column, the biases −K̇ w, and their
    ingredients: the motions of joints (6 for each entry of w) and the rates of loop joints (6 for each row).
    """
    b = Builder("rates", tree.parameters)
    p, w = b.input("p", tree.nq), b.input("w", tree.nv)
    rows = sum(loop.rows for loop in loops)
    phi, K = b.output("phi", rows), b.output("K", sum(loop.rows * len(loop.columns) for loop in loops))
    k, s, T = b.output("k", rows), b.output("s", 6 * w.size), b.output("T", 6 * rows)
    b.loop(clear, column=fields(K=s.at(range(s.size), 1)))  # joints that nothing constrains keep zeros
    b.loop(clear, column=fields(K=T.at(range(T.size), 1)))  # and so do relations
    constraints = ConstraintSteps(b, tree, loops, p, None, p, phi, K, s, T)
    constraints.place()
    constraints.measure()
    constraints.columns()
    constraints.bias(w, k)
    return b.build()
