"""The steps of the programs of programs.py: constraints evaluated and closed, all links and clusters in turn."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from coupler.graph import Buffer, Builder, Window, constants, fields, symmetric
from coupler.model.embedding import kernels
from coupler.model.embedding.constraints import Constraint, Loop, LoopConstraint, RelationConstraint
from coupler.model.joint import Joint
from coupler.model.tree import Tree

__all__ = ["Scene", "Solver", "by_kind", "grouped"]

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class _Bound:
    """A constraint with its places in buffers.

    Attributes:
        constraint: what it is.
        kept: which of its rows are used.
        phi, f: where its rows start among all, and its kept rows among those.
        columns: for each entry of w of its cluster, where its part of that column starts in K.
    """

    constraint: Constraint
    kept: tuple[int, ...]
    phi: int
    f: int
    columns: dict[int, int]


@dataclass(frozen=True, eq=False)
class _Place:
    """The constraints of a cluster with their places: where its kept rows start, how many there are, where K starts."""

    loop: Loop
    f: int
    rows: int
    K: int
    bound: list[_Bound]


class Scene:
    """The steps that evaluate constraints, written into a program."""

    def __init__(
        self,
        b: Builder,
        tree: Tree,
        loops: Sequence[Loop],
        kept: np.ndarray,
        p: Buffer,
        x: Buffer | None,
        q: Buffer,
        phi: Buffer,
        K: Buffer | None = None,
        s: Buffer | None = None,
        T: Buffer | None = None,
    ) -> None:
        self.b, self.tree, self.loops, self.p, self.x, self.q, self.phi = b, tree, loops, p, x, q, phi
        self.links = [link for loop in loops for link in loop.links]
        self.row = {link: i + 1 for i, link in enumerate(self.links)}  # among poses, where row 0 is the output body
        self.cluster = {link: loop.cluster for loop in loops for link in loop.links}
        self.pose = b.records("pose", len(self.links) + 1, E=(3, 3), r=3)
        self.places = _laid_out(loops, kept)
        self.bound = [c for place in self.places for c in place.bound]
        self.f = b.scratch("f", int(kept.sum()))
        self.s = s or b.scratch("s", 6 * tree.nv)
        self.T = T or b.scratch("T", 6 * int(kept.sum()))
        self.K = K or b.scratch("K", sum(len(c.kept) * len(c.columns) for c in self.bound))
        b.loop(kernels.root, pose=self.pose[0])

    def place(self) -> None:
        """Poses of all links against their output bodies, and motions s of their joints."""

        def windows(links: list[int], own: list[int], parents: list[int]) -> dict[str, Any]:
            E, r = ([getattr(self.tree.links[i].placement, part) for i in links] for part in ("E", "r"))
            model = fields(E=constants(E), r=constants(r))
            return {"pose": self.pose[own], "parent": self.pose[parents], "model": model}

        self._over_links(lambda kind: kernels.place(kind, self.x is not None), windows)

    def measure(self) -> None:
        """Residuals of all constraints, the rates T of loop joints, and the columns of relations."""
        for alike, kind in self._loop_joints():
            T = self.T.at([6 * c.f for c in alike], (len(alike[0].kept), 6))
            kernel = kernels.measure_loop(kind, alike[0].kept)
            self.b.loop(kernel, loop=self._residuals(alike) | fields(T=T), **self._ends(alike))
        for alike, relation, kinds in self._relations():
            here = self._residuals(alike) | self._arguments(alike, kinds)
            entries = [self.tree.velocities_of(c.constraint.links) for c in alike]
            starts = np.array([[c.columns[i] for i in own.tolist()] for c, own in zip(alike, entries, strict=True)])
            for name, start in zip(kernels.columns_of_relation(kinds), starts.T, strict=True):
                here |= fields(**{name: self.K.at(start, len(alike[0].kept))})
            self.b.loop(kernels.measure_relation(relation, kinds, alike[0].kept, self.x is not None), here=here)

    def columns(self) -> None:
        """The columns of loop joints; those of joints that a constraint does not couple are zero."""
        coupled: dict[int, list[tuple[int, int, int, float]]] = {}
        uncoupled: dict[int, list[int]] = {}
        for c in self.bound:
            entries = [i for link in c.constraint.links for i in self.tree.velocities(link).tolist()]
            uncoupled.setdefault(len(c.kept), []).extend(c.columns[i] for i in c.columns.keys() - set(entries))
            if isinstance(c.constraint, LoopConstraint):
                for links, sign in ((c.constraint.to_second, 1.0), (c.constraint.to_first, -1.0)):
                    found = [i for link in links for i in self.tree.velocities(link).tolist()]
                    coupled.setdefault(len(c.kept), []).extend((6 * c.f, 6 * i, c.columns[i], sign) for i in found)
        for rows, found in coupled.items():
            T, s, K, sign = map(list, zip(*found, strict=True))
            here = fields(T=self.T.at(T, (rows, 6)), s=self.s.at(s, 6), K=self.K.at(K, rows), sign=constants(sign))
            self.b.loop(kernels.column_of_loop, here=here)
        for rows, places in uncoupled.items():
            self.b.loop(kernels.clear, here=fields(K=self.K.at(places, rows)))

    def bias(self, w: Buffer, k: Buffer) -> None:
        """Velocities and accelerations of all links, and the biases k that they give."""
        motion = self.b.records("motion", len(self.links) + 1, V=6, A=6)
        start = self.tree.v_start

        def windows(links: list[int], own: list[int], parents: list[int]) -> dict[str, Any]:
            rate = fields(w=w.at(start[links], self.tree.links[links[0]].kind.nv))
            return {"pose": self.pose[own], "motion": motion[own], "parent": motion[parents], "rate": rate}

        self.b.loop(kernels.rest, motion=motion[0])
        self._over_links(kernels.move, windows)
        for alike, kind in self._loop_joints():
            loop = fields(k=k.at([c.phi for c in alike], alike[0].constraint.rows))
            first, second = self._rows_of_ends(alike)
            moving: dict[str, Any] = {"start": motion[first], "goal": motion[second]}
            self.b.loop(kernels.bias_of_loop(kind), loop=loop, **self._ends(alike), **moving)
        for alike, relation, kinds in self._relations():
            here = fields(k=k.at([c.phi for c in alike], relation.rows)) | self._arguments(alike, kinds)
            for j, kind in enumerate(kinds):
                here |= fields(**{f"w{j}": w.at(start[[c.constraint.links[j] for c in alike]], kind.nv)})
            self.b.loop(kernels.bias_of_relation(relation, kinds), here=here)

    def joint(self, links: Sequence[int]) -> Window:
        """The window of joints of one kind: positions p, in a chart also x and q, and motions s."""
        kind, positions, velocities = self._kind(links), self.tree.q_start[links], self.tree.v_start[links]
        window = fields(p=self.p.at(positions, kind.nq), s=self.s.at(6 * velocities, (kind.nv, 6)))
        if self.x is None:
            return window
        return window | fields(x=self.x.at(velocities, kind.nv), q=self.q.at(positions, kind.nq))

    def _kind(self, links: Sequence[int]) -> Joint:
        return self.tree.links[links[0]].kind

    def _over_links(self, kernel: Callable[[Joint], Callable[..., None]], windows: Callable[..., Any]) -> None:
        """Runs a kernel over all links, parents first; windows are given their links, rows and parents' rows."""
        groups = by_kind(self.tree, self.links)
        turn = {link: i for i, (_, links) in enumerate(groups) for link in links}
        with self.b.interleave([turn[link] for link in self.links]):
            for kind, links in groups:
                parents = [(self.tree.links[link].parent, self.cluster[link]) for link in links]
                above = [self.row[i] if self.cluster.get(i) == cluster else 0 for i, cluster in parents]
                own = [self.row[link] for link in links]
                self.b.loop(kernel(kind), joint=self.joint(links), **windows(links, own, above))

    def _loop_joints(self) -> Iterator[tuple[list[_Bound], Any]]:
        """Loop joints that look alike, and their kind."""
        loops = [c for c in self.bound if isinstance(c.constraint, LoopConstraint)]
        for alike in grouped(loops, lambda c: (c.constraint.form, c.kept)):
            yield alike, alike[0].constraint.kind  # type: ignore[union-attr]

    def _relations(self) -> Iterator[tuple[list[_Bound], RelationConstraint, list[Joint]]]:
        """Relations that look alike, the first of them, and the kinds of their joints."""
        relations = [c for c in self.bound if isinstance(c.constraint, RelationConstraint)]
        kinds = {id(c): [self.tree.links[link].kind for link in c.constraint.links] for c in relations}
        for alike in grouped(relations, lambda c: (c.constraint.form, c.kept, *(kind.form() for kind in kinds[id(c)]))):
            yield alike, alike[0].constraint, kinds[id(alike[0])]  # type: ignore[misc]

    def _residuals(self, alike: list[_Bound]) -> Window:
        phi = self.phi.at([c.phi for c in alike], alike[0].constraint.rows)
        return fields(phi=phi, f=self.f.at([c.f for c in alike], len(alike[0].kept)))

    def _arguments(self, alike: list[_Bound], kinds: list[Joint]) -> Window:
        """Numbers of relations, and positions of their joints, numbered."""
        window = fields(numbers=constants([c.constraint.numbers for c in alike]))  # type: ignore[union-attr]
        for j in range(len(kinds)):
            for name, slot in self.joint([c.constraint.links[j] for c in alike]).fields.items():
                if name in ("p", "x"):
                    window |= fields(**{f"{name}{j}": slot})
        return window

    def _rows_of_ends(self, alike: list[_Bound]) -> tuple[list[int], list[int]]:
        """The rows of the links that loop joints hold; an end outside of the cluster is the output body."""
        ends: tuple[list[int], list[int]] = [], []
        for c in alike:
            inside = self.cluster[c.constraint.links[0]]
            for rows, link in zip(ends, (c.constraint.first, c.constraint.second), strict=True):  # type: ignore[union-attr]
                rows.append(self.row[link] if self.cluster.get(link) == inside else 0)
        return ends

    def _ends(self, alike: list[_Bound]) -> dict[str, Any]:
        first, second = self._rows_of_ends(alike)
        frames: dict[str, Any] = {}
        for number, end in (("1", "first_frame"), ("2", "second_frame")):
            for part in ("E", "r"):
                values = [getattr(getattr(c.constraint, end), part) for c in alike]
                frames[part + number] = constants(np.array(values) + 0.0)
        return {"first": self.pose[first], "second": self.pose[second], "model": fields(**frames)}


class Solver:
    """The steps of a round of Newton's method, cluster by cluster."""

    def __init__(self, scene: Scene, start: Buffer, weight: Buffer) -> None:
        b, self.b = scene.b, scene.b
        assert scene.x is not None
        self.verdict, steps = b.scratch("verdict", 4), b.scratch("steps", weight.size)
        b.loop(kernels.start, here=self.here())
        self.clusters: list[Window] = []
        self.columns: list[dict[str, Any]] = []
        for places in grouped([place for place in scene.places if place.rows], lambda place: place.rows):
            rows = places[0].rows
            records = b.records(f"cluster{rows}", len(places), N=symmetric(rows), right=rows, force=rows, longest=())
            f = [place.f for place in places]
            self.clusters.append(records[:] | fields(f=scene.f.at(f, rows)))
            numbers = np.repeat(np.arange(len(places)), [len(place.loop.columns) for place in places])
            entries = np.concatenate([place.loop.columns for place in places])
            K = np.concatenate([place.K + rows * np.arange(len(place.loop.columns)) for place in places])
            column = fields(K=scene.K.at(K, rows), weight=weight.at(entries), step=steps.at(entries))
            column |= fields(x=scene.x.at(entries), start=start.at(entries))
            self.columns.append({"cluster": records[numbers], "column": column})
            b.loop(kernels.begin, cluster=self.clusters[-1])

    def step(self) -> None:
        """Moves x towards closed loops."""
        for cluster, columns in zip(self.clusters, self.columns, strict=True):
            self.b.loop(kernels.begin, cluster=cluster)
            here = self.here(columns["cluster"].fields["N"].rows)
            self.b.loop(kernels.accumulate, here=here, **columns)
            self.b.loop(kernels.solve, cluster=cluster)
            self.b.loop(kernels.step_of, here=here, **columns)
            self.b.loop(kernels.add_step, **columns)

    def here(self, rows: int = 1) -> Window:
        """The window of the verdict, seen from that many rows."""
        places = {name: self.verdict.at([i] * rows) for i, name in enumerate(("worst", "longest", "round", "pull"))}
        return fields(**places)

    def measure(self) -> None:
        """Finds the largest residual, and the longest step of the round."""
        self.b.loop(kernels.begin_round, here=self.here())
        for cluster in self.clusters:
            self.b.loop(kernels.note_worst, here=self.here(cluster.fields["N"].rows), cluster=cluster)


def _laid_out(loops: Sequence[Loop], kept: np.ndarray) -> list[_Place]:
    places: list[_Place] = []
    phi = f = K = 0
    for loop in loops:
        place = _Place(loop, f, int(kept[phi : phi + loop.rows].sum()), K, [])
        for constraint in loop.constraints:
            used = np.flatnonzero(kept[phi : phi + constraint.rows]).tolist()
            starts = K + (f - place.f) + place.rows * np.arange(len(loop.columns))
            columns = dict(zip(loop.columns.tolist(), starts.tolist(), strict=True))
            place.bound.append(_Bound(constraint, tuple(used), phi, f, columns))
            phi, f = phi + constraint.rows, f + len(used)
        K += place.rows * len(loop.columns)
        places.append(place)
    return places


def by_kind(tree: Tree, links: Iterable[int]) -> list[tuple[Joint, list[int]]]:
    """Links whose joints look alike."""
    groups = grouped(links, lambda link: tree.links[link].kind.form())
    return [(tree.links[alike[0]].kind, alike) for alike in groups]


def grouped(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())
