"""Couplings and locks of joints, with their names resolved, and their φ, K and k; see constraints.py."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coupler.graph import jacobian, second_directional, template
from coupler.model.errors import ModelError
from coupler.model.joint import Joint
from coupler.model.loops import Coupling
from coupler.model.tree import Tree
from coupler.model.wording import listed

Array = Any  # an ndarray of floats, or of nodes


@dataclass(frozen=True, eq=False)
class RelationConstraint:
    """A function of the positions of some joints that is zero when they fit together.

    Attributes:
        name: the name of the coupling, or of the lock.
        links: the links whose joints it couples, in the order in which the function takes their positions.
        kinds: these joints.
        rows: the number of its equations.
        kept: the equations that count; the others follow from these.
        traced_as: equal for functions that differ only in their numbers.
        function: φ, of all position entries in one vector, and of the numbers.
        numbers: the numbers of this constraint.
        recognised: whether it is a closed form that was recognised, rather than something that the user described.
    """

    name: str
    links: tuple[int, ...]
    kinds: tuple[Joint, ...]
    rows: int
    kept: tuple[int, ...]
    traced_as: Hashable
    function: Callable[[Array, Array], Array]
    numbers: np.ndarray
    recognised: bool = False

    @classmethod
    def of(cls, coupling: Coupling, tree: Tree, *, recognised: bool = False) -> RelationConstraint:
        what = f"coupling {coupling.name!r}"
        for joint in coupling.joints:
            if joint not in tree.number:
                raise ModelError(f"{what}: there is no joint {joint!r} that moves; there are {listed(tree.number)}")
            if (nv := tree.links[tree.number[joint]].kind.nv) != 1 and joint not in coupling.independent:
                raise ModelError(f"{what}: joint {joint!r} has {nv} freedoms; only joints of one can depend on others")
        sizes = tuple(tree.links[tree.number[joint]].kind.nq for joint in coupling.joints)
        for joint, size, taken in zip(coupling.joints, sizes, coupling.sizes, strict=True):
            if size != taken:
                raise ModelError(f"{what}: the position of joint {joint!r} has {size} entries, where it takes {taken}")
        try:
            traced = template(coupling.residual, sum(sizes), tree.parameters or ())
        except Exception as error:  # whatever a user's function raises
            raise ModelError(
                f"{what}: its function fails for {len(coupling.joints)} positions that are not known yet: {error!r}; "
                "it must be written with NumPy's functions and operators, without branches on positions"
            ) from error
        if len(traced.shape) != 1 or not traced.shape[0]:
            raise ModelError(f"{what}: its function must give a vector of equations, got the shape {traced.shape}")
        links = tuple(tree.number[joint] for joint in coupling.joints)
        kinds, rows = tuple(tree.links[link].kind for link in links), traced.shape[0]
        form = traced.text, traced, traced.numbers
        return cls(coupling.name, links, kinds, rows, tuple(range(rows)), *form, recognised)

    @classmethod
    def lock(cls, name: str, tree: Tree, link: int, position: np.ndarray, direction: np.ndarray) -> RelationConstraint:
        """Holds a joint at a position in one direction of its velocities: direction · difference(position, q) = 0."""
        kind = tree.links[link].kind
        numbers = np.concatenate([position, direction])
        return cls(name, (link,), (kind,), 1, (0,), "lock", partial(_lock_residual, kind), numbers)

    @property
    def is_lock(self) -> bool:
        """Whether it locks a joint; see `lock`."""
        return self.traced_as == "lock"

    @property
    def form(self) -> Hashable:
        return self.traced_as, self.kept, *(kind.form() for kind in self.kinds)

    @property
    def connection(self) -> Hashable:
        return self.links

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """The numbers that go into tables, by name."""
        return {"numbers": self.numbers}

    def within(self, number: Mapping[Any, int]) -> RelationConstraint:
        """A copy whose links go by their numbers in a cluster; `number` maps links to these."""
        return replace(self, links=tuple(number[link] for link in self.links))

    def residual(self, numbers: Array, q: Sequence[Array]) -> Array:
        """φ, all rows, for its numbers and positions of its joints."""
        return self.function(np.concatenate(q), numbers)

    def rate(self, numbers: Array, p: Sequence[Array], x: Array) -> Array:
        """∂φ/∂x, kept rows × Σ nv, for positions integrate(p, x)."""
        return jacobian(lambda step: self._moved(numbers, p, x + step), np.zeros(len(x)))

    def bias(self, numbers: Array, q: Sequence[Array], w: Array) -> Array:
        """k = −φ̈, kept rows, for joint velocities w that do not change."""
        return -second_directional(lambda step: self._moved(numbers, q, step), np.zeros(len(w)), w)

    def _moved(self, numbers: Array, p: Sequence[Array], step: Array) -> Array:
        """The kept rows of φ for positions integrate(p, step)."""
        steps = np.split(step, np.cumsum([kind.nv for kind in self.kinds])[:-1])
        q = [kind.integrate(at, part) for kind, at, part in zip(self.kinds, p, steps, strict=True)]
        return self.residual(numbers, q)[list(self.kept)]


def _lock_residual(kind: Joint, q: Array, numbers: Array) -> Array:
    """How far a joint has moved from a position in a direction; the numbers are the position and the direction."""
    return np.array([numbers[kind.nq :] @ kind.difference(numbers[: kind.nq], q)])
