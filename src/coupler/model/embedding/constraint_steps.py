"""The constraints of a robot as steps of a program: φ, K and k of all of them, joint by joint and cluster by cluster.

Poses of links are relative to the output body of their cluster, whose axes are used throughout. A joint's s holds its
motion vectors in these axes, one for each entry of its velocity; V and A are a link's motion, see `carried`. K has a
column for each joint velocity of a cluster.

There is one small kernel for each kind of joint and of constraint, looped over tables: a ring of a thousand bodies
takes no longer to compile than one of three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from coupler.graph import Buffer, Builder, Constants, Slot, Window, constants, fields
from coupler.grouping import grouped
from coupler.model.embedding import kernels
from coupler.model.embedding.constraints import Loop, LoopConstraint, RelationConstraint
from coupler.model.joint import Joint
from coupler.model.tree import Tree

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class _Place:
    """A constraint, and where its numbers are in the buffers."""

    constraint: Any
    ends: tuple[int, ...]  # of a loop joint: the rows of its two links among poses
    phi: int  # where its rows start among all rows
    f: int  # where its kept rows start among all kept rows
    columns: dict[int, int]  # for each entry of w of its cluster, where its part of that column starts in K


class ConstraintSteps:
    """The steps that evaluate constraints, written into a program.

    Attributes:
        b: the builder of the program.
        x: in a chart, the steps of joints from p: positions are q = integrate(p, x); else None.
        f: the kept rows of φ.
        K: the columns of all clusters.
        clusters: each loop, where its kept rows start in f, and where its columns start in K.
        row: the row of each link among poses.
    """

    def __init__(
        self,
        b: Builder,
        tree: Tree,
        loops: Sequence[Loop],
        p: Buffer,
        x: Buffer | None,
        q: Buffer,
        phi: Buffer,
        K: Buffer | None = None,
        s: Buffer | None = None,
        T: Buffer | None = None,
    ) -> None:
        self.b, self.x, self._tree, self._p, self._q, self._phi = b, x, tree, p, q, phi
        self._links = [link for loop in loops for link in loop.links]
        self.row = {link: i + 1 for i, link in enumerate(self._links)}  # row 0 is the output body
        self._cluster = {link: loop.cluster for loop in loops for link in loop.links}
        self._pose = b.records("pose", len(self._links) + 1, E=(3, 3), r=3)
        self.clusters: list[tuple[Loop, int, int]] = []
        self._places: list[_Place] = []
        kept, entries = self._lay_out(loops)
        self.f = b.scratch("f", kept)
        self._s = s or b.scratch("s", 6 * tree.nv)
        self._T = T or b.scratch("T", 6 * kept)
        self.K = K or b.scratch("K", entries)
        b.loop(kernels.root, pose=self._pose[0])

    def _lay_out(self, loops: Sequence[Loop]) -> tuple[int, int]:
        """Lays out all constraints in the buffers; returns the sizes of f and K."""
        phi = f = K = 0
        for loop in loops:
            self.clusters.append((loop, f, K))
            starts = K + loop.kept * np.arange(len(loop.columns))
            for constraint in loop.constraints:
                columns = dict(zip(loop.columns.tolist(), starts.tolist(), strict=True))
                held = constraint.ends if isinstance(constraint, LoopConstraint) else ()
                ends = tuple(self._row_of(link, loop.cluster) for link in held)
                self._places.append(_Place(constraint, ends, phi, f, columns))
                phi, f, starts = phi + constraint.rows, f + len(constraint.kept), starts + len(constraint.kept)
            K += loop.kept * len(loop.columns)
        return f, K

    def _row_of(self, link: int | None, cluster: int) -> int:
        """The row of a link's pose; for a link outside of the cluster, the row of the output body's."""
        return self.row[link] if link is not None and self._cluster.get(link) == cluster else 0

    def place(self) -> None:
        """Computes the poses of all links, and the motions s of their joints."""

        def windows(links: list[int], rows: list[int], parents: list[int]) -> dict[str, Any]:
            E, r = ([getattr(self._tree.links[i].placement, part) for i in links] for part in ("E", "r"))
            model = fields(E=constants(E), r=constants(r))
            return {"pose": self._pose[rows], "parent": self._pose[parents], "model": model}

        self._over_links(lambda kind: kernels.placing(kind, self.x is not None), windows)

    def measure(self) -> None:
        """Computes the residuals of all constraints, the rates T of loop joints, and the columns of relations."""
        for places, constraint in self._by_form(LoopConstraint):
            T = self._T.at([6 * place.f for place in places], (len(constraint.kept), 6))
            self.b.loop(
                kernels.loop_measure(constraint), loop=self._residuals(places) | fields(T=T), **self._ends(places)
            )
        for places, constraint in self._by_form(RelationConstraint):
            relation, joints = self._residuals(places) | _constants_of(places), self._joints(places)
            entries = [self._tree.velocities_of(place.constraint.links).tolist() for place in places]
            starts = [[place.columns[i] for i in chosen] for place, chosen in zip(places, entries, strict=True)]
            columns = [fields(K=self.K.at(start, len(constraint.kept))) for start in np.transpose(starts)]
            kernel = kernels.relation_measure(constraint, self.x is not None)
            self.b.loop(kernel, relation=relation, joints=joints, columns=columns)

    def columns(self) -> None:
        """Computes the columns of loop joints, with zeros for joints that a constraint does not couple."""
        self.coupled_columns()
        uncoupled: dict[int, list[int]] = {}
        for place in self._places:
            entries = set(self._tree.velocities_of(place.constraint.links).tolist())
            columns = uncoupled.setdefault(len(place.constraint.kept), [])
            columns.extend(place.columns[i] for i in place.columns.keys() - entries)
        for rows, places in uncoupled.items():
            self.b.loop(kernels.clear, column=fields(K=self.K.at(places, rows)))

    def coupled_columns(self) -> None:
        """Computes the columns of loop joints for joints that they couple; all other numbers there stay zero."""
        coupled: dict[int, list[tuple[int, int, int, float]]] = {}
        for place in self._places:
            constraint, rows = place.constraint, len(place.constraint.kept)
            if isinstance(constraint, LoopConstraint):
                for links, sign in zip(reversed(constraint.ways), (1.0, -1.0), strict=True):
                    entries = self._tree.velocities_of(links).tolist()
                    coupled.setdefault(rows, []).extend((6 * place.f, 6 * i, place.columns[i], sign) for i in entries)
        for rows, columns in coupled.items():
            T, s, K, sign = map(list, zip(*columns, strict=True))
            column = fields(T=self._T.at(T, (rows, 6)), s=self._s.at(s, 6), K=self.K.at(K, rows), sign=constants(sign))
            self.b.loop(kernels.column_of_loop, column=column)

    def bias(self, w: Buffer, k: Buffer) -> None:
        """Computes the motions of all links and the biases k of the kept rows."""
        motion = self._motion = self.b.records("motion", len(self._links) + 1, V=6, A=6)

        def rate(links: Sequence[int]) -> Window:
            return fields(w=w.at(self._tree.v_start[links], self._tree.links[links[0]].kind.nv))

        def windows(links: list[int], rows: list[int], parents: list[int]) -> dict[str, Any]:
            return {"pose": self._pose[rows], "motion": motion[rows], "parent": motion[parents], "rate": rate(links)}

        self.b.loop(kernels.rest, motion=motion[0])
        self._over_links(kernels.moving, windows)
        for places, constraint in self._by_form(LoopConstraint):
            loop = fields(k=k.at([place.f for place in places], len(constraint.kept)))
            start, goal = (motion[list(rows)] for rows in zip(*(place.ends for place in places), strict=True))
            self.b.loop(kernels.loop_bias(constraint), loop=loop, **self._ends(places), start=start, goal=goal)
        for places, constraint in self._by_form(RelationConstraint):
            relation = fields(k=k.at([place.f for place in places], len(constraint.kept))) | _constants_of(places)
            rates = [rate(links) for links in _links_of_joints(places)]
            self.b.loop(kernels.relation_bias(constraint), relation=relation, joints=self._joints(places), rates=rates)

    def scratch(self) -> dict[str, Buffer]:
        """The buffers of a program, by the names that another program of the same constraints calls them."""
        return {"pose": self._pose.buffer, "f": self.f, "s": self._s, "T": self._T, "K": self.K}

    def poses(self, links: Sequence[int]) -> Window:
        """Poses of links, E and r, from their output bodies."""
        return self._pose[[self.row[link] for link in links]]

    def link_motions(self, links: Sequence[int]) -> Window:
        """V and A of links, once `bias` has been written."""
        return self._motion[[self.row[link] for link in links]]

    def motions(self, links: Sequence[int]) -> Slot:
        """Motions of joints that are of one kind, each nv × 6."""
        return self._s.at(6 * self._tree.v_start[list(links)], (self._tree.links[links[0]].kind.nv, 6))

    def advance(self, links: Iterable[int]) -> None:
        """Computes positions integrate(p, x) of joints that nothing constrains."""
        for kind, same_kind in by_kind(self._tree, links):
            self.b.loop(kernels.advancing(kind), joint=self._joint(same_kind))

    def _joint(self, links: Sequence[int]) -> Window:
        """The window of joints of one kind: positions p, motions s and, in a chart, x and q."""
        kind, positions = self._tree.links[links[0]].kind, self._tree.q_start[links]
        velocities = self._tree.v_start[links]
        window = fields(p=self._p.at(positions, kind.nq), s=self._s.at(6 * velocities, (kind.nv, 6)))
        if self.x is None:
            return window
        return window | fields(x=self.x.at(velocities, kind.nv), q=self._q.at(positions, kind.nq))

    def _over_links(self, kernel: Callable[[Joint], Callable[..., None]], windows: Callable[..., Any]) -> None:
        """Runs a kernel over all links, parents first; `windows` takes links, their rows and their parents' rows."""
        groups = by_kind(self._tree, self._links)
        turn = {link: i for i, (_, links) in enumerate(groups) for link in links}
        with self.b.interleave([turn[link] for link in self._links]):
            for kind, links in groups:
                rows = [self.row[link] for link in links]
                parents = [self._row_of(self._tree.links[link].parent, self._cluster[link]) for link in links]
                self.b.loop(kernel(kind), joint=self._joint(links), **windows(links, rows, parents))

    def _by_form(self, kind: type[Item]) -> Iterator[tuple[list[_Place], Item]]:
        """The constraints of each form, and the first of them."""
        of_kind = [place for place in self._places if isinstance(place.constraint, kind)]
        for places in grouped(of_kind, lambda place: place.constraint.form).values():
            yield places, places[0].constraint

    def _residuals(self, places: list[_Place]) -> Window:
        phi = self._phi.at([place.phi for place in places], places[0].constraint.rows)
        return fields(phi=phi, f=self.f.at([place.f for place in places], len(places[0].constraint.kept)))

    def _joints(self, places: list[_Place]) -> list[Window]:
        """The windows of the joints of relations of one form."""
        return [self._joint(links) for links in _links_of_joints(places)]

    def _ends(self, places: list[_Place]) -> dict[str, Any]:
        first, second = (self._pose[list(rows)] for rows in zip(*(place.ends for place in places), strict=True))
        return {"first": first, "second": second, "model": _constants_of(places)}


def _links_of_joints(places: list[_Place]) -> list[list[int]]:
    """For each joint of relations of one form, its links in these relations."""
    return [list(links) for links in zip(*(place.constraint.links for place in places), strict=True)]


def _constants_of(places: list[_Place]) -> Window:
    return Window(constant_fields([place.constraint.constants for place in places]))


def constant_fields(rows: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Constants]:
    """Numbers by name as fields with one row for each mapping; without negative zeros."""
    return {name: constants(np.stack([numbers[name] for numbers in rows]) + 0.0) for name in rows[0]}


def by_kind(tree: Tree, links: Iterable[int]) -> list[tuple[Joint, list[int]]]:
    """The links whose joints have one form, for each form, with the joint of the first."""
    groups = grouped(links, lambda link: tree.links[link].kind.form())
    return [(tree.links[same_kind[0]].kind, same_kind) for same_kind in groups.values()]
