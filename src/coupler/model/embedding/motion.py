"""Moving the joints of a tree: what integrate and difference are for all of them at once, and for batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from coupler.graph import Builder, Interpreter, View, fields
from coupler.model.embedding.scene import by_kind
from coupler.model.joint import Joint
from coupler.model.tree import Tree

__all__ = ["Motion"]


class Motion:
    """Spanning positions p, of shape (..., Σ nq), and velocities w, of shape (..., Σ nv), of a tree.

    Where v is q̇, integrating is adding. Orientations go through the joints' own functions, run over batches.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        plain = [i for i, link in enumerate(tree.links) if link.kind.nq == link.kind.nv]
        self._p = tree.positions_of(plain)
        self._w = tree.velocities_of(plain)
        self.turning = [i for i, link in enumerate(tree.links) if link.kind.nq != link.kind.nv]
        self._integrate = self._program("integrate", _integrate, "pwq")
        self._difference = self._program("difference", _difference, "pqw")
        self._normalize = self._program("normalize", _normalize, "pq")

    def start(self) -> np.ndarray:
        """The position from which each joint starts, or the nearest within its limits."""
        return np.concatenate([_within(link.kind, link.start) for link in self.tree.links])

    def random(self, rng: np.random.Generator, links: Sequence[int] | None = None) -> np.ndarray:
        """Random positions of joints within their limits, of all of them or of those that carry some links."""
        links = range(len(self.tree.links)) if links is None else links
        entries = self.tree.positions_of(links)
        p = np.empty(self.tree.nq)
        p[entries] = rng.uniform(*self._range[:, entries])
        for link in (link for link in links if link in self.turning):
            p[self.tree.positions(link)] = self.tree.links[link].kind.random(rng)
        return p[entries]

    @cached_property
    def _range(self) -> np.ndarray:
        """The ranges of all positions, lower and upper; nothing of orientations."""
        result = np.zeros((2, self.tree.nq))
        for i, link in enumerate(self.tree.links):
            if i not in self.turning:
                result[:, self.tree.positions(i)] = link.kind.range()
        return result

    def integrate(self, p: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The positions after moving from p with the velocities w for a unit of time."""
        p, w = _batch(p, w)
        q = p.copy()
        q[..., self._p] += w[..., self._w]
        return self._turn(q, self._integrate, p, w, self.tree.positions)

    def difference(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """The velocities that lead from p to q in a unit of time."""
        p, q = _batch(p, q)
        w = np.zeros((*p.shape[:-1], self.tree.nv))
        w[..., self._w] = q[..., self._p] - p[..., self._p]
        return self._turn(w, self._difference, p, q, self.tree.velocities)

    def normalize(self, p: np.ndarray) -> np.ndarray:
        """Positions with quaternions of unit length."""
        return self._turn(p.copy(), self._normalize, p, None, self.tree.positions)

    def _turn(self, result: np.ndarray, run: Any, a: np.ndarray, b: Any, entries: Any) -> np.ndarray:
        """Fills in what belongs to joints with orientations."""
        if self.turning:
            own = np.concatenate([entries(i) for i in self.turning])
            result[..., own] = run(a)[..., own] if b is None else run(a, b)[..., own]
        return result

    def _program(self, name: str, kernel: Callable[[Joint], Callable[[View], None]], order: str) -> Any:
        """A program over joints with orientations, from the first vectors of the order to its last."""
        if not self.turning:
            return None
        builder, tree = Builder(name), self.tree
        sizes = {"p": tree.nq, "q": tree.nq, "w": tree.nv}
        *inputs, output = order
        buffers = {x: builder.input(x, sizes[x]) for x in inputs} | {output: builder.output(output, sizes[output])}
        builder.loop(_zero, joint=fields(x=buffers[output].at(range(sizes[output]))))
        for kind, links in by_kind(tree, self.turning):
            starts = {"p": (tree.q_start[links], kind.nq), "q": (tree.q_start[links], kind.nq)}
            starts["w"] = tree.v_start[links], kind.nv
            builder.loop(kernel(kind), joint=fields(**{x: buffers[x].at(*starts[x]) for x in order}))
        return Interpreter(builder.build())


def _zero(joint: View) -> None:
    joint.x = np.array(0.0)


def _integrate(kind: Joint) -> Callable[[View], None]:
    def integrate(joint: View) -> None:
        joint.q = kind.integrate(joint.p, joint.w)

    return integrate


def _difference(kind: Joint) -> Callable[[View], None]:
    def difference(joint: View) -> None:
        joint.w = kind.difference(joint.p, joint.q)

    return difference


def _normalize(kind: Joint) -> Callable[[View], None]:
    def normalize(joint: View) -> None:
        joint.q = kind.normalize(joint.p)

    return normalize


def _within(kind: Joint, q: np.ndarray) -> np.ndarray:
    return np.clip(q, kind.lower, kind.upper) if kind.nq == kind.nv else q


def _batch(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both with the same leading dimensions."""
    shape = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    return np.broadcast_to(a, (*shape, a.shape[-1])), np.broadcast_to(b, (*shape, b.shape[-1]))
