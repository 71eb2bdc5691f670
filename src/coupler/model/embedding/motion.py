"""Moving the joints of a tree: integrate, difference and normalize for all joints at once, and for batches."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from coupler.forks import cached_property
from coupler.graph import Builder, Executable, Interpreter, View, fields
from coupler.graph import compile as compile_program
from coupler.model.embedding.constraint_steps import by_kind
from coupler.model.joint import Joint
from coupler.model.tree import Tree


class Motion:
    """Moves the positions p, (..., Σ nq), and velocities w, (..., Σ nv), of all joints of a tree.

    Where v is q̇, to integrate is to add. Orientations go through the functions of their joints, all joints and states
    of one form at once. These are compiled for a robot that will be moved often, and interpreted while it is built.

    Attributes:
        tree: the links.
        quaternion_links: the links whose joint positions hold a quaternion.
    """

    def __init__(self, tree: Tree, *, compiled: bool = False) -> None:
        self.tree, self._compiled = tree, compiled
        plain = [i for i, link in enumerate(tree.links) if link.kind.nq == link.kind.nv]
        self._p = tree.positions_of(plain)
        self._w = tree.velocities_of(plain)
        self.quaternion_links = [i for i, link in enumerate(tree.links) if link.kind.nq != link.kind.nv]
        self._kinds = [  # with the entries of their positions and velocities, a row for each joint
            (_Kind(kind.form(), kind), np.stack([*map(tree.positions, same)]), np.stack([*map(tree.velocities, same)]))
            for kind, same in by_kind(tree, self.quaternion_links)
        ]

    def start(self) -> np.ndarray:
        """Σ nq: where each joint starts, moved into its limits."""
        return np.concatenate([_within(link.kind, link.start) for link in self.tree.links])

    def random(self, rng: np.random.Generator, links: Sequence[int] | None = None) -> np.ndarray:
        """Random positions within limits, of all joints or of those of some links."""
        entries = np.arange(self.tree.nq) if links is None else self.tree.positions_of(links)
        p = np.empty(self.tree.nq)
        p[entries] = rng.uniform(*self._range[:, entries])
        for link in self.quaternion_links if links is None else [i for i in links if i in self.quaternion_links]:
            p[self.tree.positions(link)] = self.tree.links[link].kind.random(rng)
        return p[entries]

    @cached_property
    def _range(self) -> np.ndarray:
        """2 × Σ nq: the ranges from which positions are drawn; zeros for orientations."""
        result = np.zeros((2, self.tree.nq))
        for i, link in enumerate(self.tree.links):
            if i not in self.quaternion_links:
                result[:, self.tree.positions(i)] = link.kind.range()
        return result

    def integrate(self, p: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The positions after moving from p with the velocities w for 1 s."""
        p, w = _batch(p, w)
        q = p.copy()
        q[..., self._p] += w[..., self._w]
        for kind, of_p, of_w in self._kinds:
            q[..., of_p] = _function(kind, "integrate", self._compiled)(p[..., of_p], w[..., of_w])
        return q

    def difference(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """The velocities that lead from p to q within 1 s."""
        p, q = _batch(p, q)
        w = np.zeros((*p.shape[:-1], self.tree.nv))
        w[..., self._w] = q[..., self._p] - p[..., self._p]
        for kind, of_p, of_w in self._kinds:
            w[..., of_w] = _function(kind, "difference", self._compiled)(p[..., of_p], q[..., of_p])
        return w

    def normalize(self, p: np.ndarray) -> np.ndarray:
        """Positions with quaternions of unit length."""
        p = p.copy()
        for kind, of_p, _ in self._kinds:
            p[..., of_p] = _function(kind, "normalize", self._compiled)(p[..., of_p])
        return p


@dataclass(frozen=True)
class _Kind:
    """A kind of joint as a key: kinds of one form are equal."""

    form: Hashable
    joint: Joint = field(compare=False)


@cache
def _function(kind: _Kind, name: str, compiled: bool) -> Executable:
    """`integrate`, `difference` or `normalize` of a kind of joint, as a program over any number of states."""
    joint, builder = kind.joint, Builder(name)
    a, b, result = {"integrate": "qvq", "difference": "qqv", "normalize": "q q"}[name]
    sizes = {"q": joint.nq, "v": joint.nv}
    buffers = {"a": builder.input("a", sizes[a])} | ({"b": builder.input("b", sizes[b])} if b in sizes else {})
    buffers["result"] = builder.output("result", sizes[result])

    def kernel(position: View) -> None:
        given = [getattr(position, word) for word in ("a", "b") if word in buffers]
        position.result = getattr(joint, name)(*given)

    builder.loop(kernel, position=fields(**{word: buffer.at(0, buffer.size) for word, buffer in buffers.items()}))
    program = builder.build()
    return compile_program(program) if compiled else Interpreter(program)


def _within(kind: Joint, q: np.ndarray) -> np.ndarray:
    return np.clip(q, kind.lower, kind.upper) if kind.nq == kind.nv else q


def _batch(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays, broadcast to the same leading dimensions."""
    shape = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    return np.broadcast_to(a, (*shape, a.shape[-1])), np.broadcast_to(b, (*shape, b.shape[-1]))
