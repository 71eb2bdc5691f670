"""Clusters put together two by two: programs that join pieces of a robot, and take them apart again.

With the acceleration a of its base and forces f at its handles given, a piece (see pieces.py) answers with the force on
its base and the accelerations of its handles,

    F = M a + p − Σ Φᵢᵀ fᵢ,    aᵢ = Φᵢ a + Σ Ωᵢⱼ fⱼ + bᵢ,

which are the handle equations of [002, eq. 16] solved for what the neighbours of a piece need. An assembly knows where
in memory these are, and runs kernels over pieces in an order in which they can be joined.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from coupler.graph import Buffer, Field, Program, Slot, View, Window, constants, fields, symmetric
from coupler.model import Robot
from coupler.passes.cluster import Cluster
from coupler.passes.pieces import Piece, divided
from coupler.passes.sweep import Sweep
from coupler.spatial import Transform

__all__ = ["Assembly", "Steps"]

_SWAPPED = Field((6, 6), tuple(6 * j + i for i in range(6) for j in range(6)))  # a matrix seen as its transpose


class Assembly(Sweep):
    """A sweep over a robot that is divided into pieces. Bodies that carry others remember v, a and the force f on them.

    Attributes:
        pieces: all of them, in an order in which they can be put together.
        whole: the last of them, which is the robot.
    """

    def __init__(self, robot: Robot, name: str, touched: Iterable[int], **options: Any) -> None:
        """Args: a robot, a name, the links whose accelerations by forces are asked for, and what a sweep takes."""
        super().__init__(robot, name, body={"v": 6, "a": 6, "f": 6}, **options)
        self._number = {k: i for i, (_, clusters) in enumerate(self.shapes) for k in clusters}
        self.whole = divided(robot, touched)
        self.pieces = self.whole.pieces() if len(robot.cluster_tree.clusters) > 1 else []
        self._sizes = {"M": 0, "Phi": 0, "Omega": 36, "X": 0, "N": 0, "y": 0}  # the first Ω is zero
        for piece in self.pieces:
            self._make_room(piece)
        self._memory = {name: self.builder.scratch(name, max(size, 1)) for name, size in self._sizes.items()}
        self._ground = self.builder.scratch("ground", 12)
        self._gaps = self._own_gaps()
        zero = fields(Omega=self._memory["Omega"].at(0, 36), v=self._ground.at(0, 6), a=self._ground.at(6, 6))
        self.builder.loop(_rest, here=zero | fields(gravity=constants([robot.gravity])))

    def _take(self, name: str, size: int) -> int:
        self._sizes[name] += size
        return self._sizes[name] - size

    def _make_room(self, piece: Piece) -> None:
        piece.weight = self._take("M", 27)
        own = sorted({*piece.handles, *piece.hung})
        if piece.cluster:
            n = len(self.shapes[self._number[piece.cluster]][0].independent)
            piece.answer = self._take("y", n * (7 + 6 * len(self.ports(piece))))
        elif piece.at is None:  # side by side they do not feel each other
            one, two = piece.parts
            piece.ways, piece.motions = one.ways | two.ways, one.motions | two.motions
            piece.couplings = one.couplings | two.couplings | {(h, g): 0 for h in one.handles for g in two.handles}
            return
        else:
            piece.motions = dict(piece.parts[0].motions)
            piece.answer = self._take("N", 36)
        piece.ways = {h: self._take("Phi", 42) for h in own}
        piece.couplings = {pair: self._take("Omega", 36) for pair in combinations_with_replacement(own, 2)}
        moved = {*piece.open, *piece.hung} - piece.motions.keys()
        piece.motions |= {h: self._take("X", 18) for h in sorted(moved)}

    def ports(self, piece: Piece) -> dict[int, int]:
        """The bodies of a piece's cluster that are handles or carry pieces that are taken in: numbers and links."""
        wanted = {*piece.handles, *piece.hung}
        return {i: link for i, link in enumerate(self.instances[piece.cluster].links) if link in wanted}

    # Where things are

    def M(self, piece: Piece) -> Slot:
        return self._memory["M"].at(piece.weight, symmetric(6))

    def p(self, piece: Piece) -> Slot:
        return self._memory["M"].at(piece.weight + 21, 6)

    def Phi(self, piece: Piece, link: int) -> Slot:
        return self._memory["Phi"].at(piece.ways[link], (6, 6))

    def b(self, piece: Piece, link: int) -> Slot:
        return self._memory["Phi"].at(piece.ways[link] + 36, 6)

    def N(self, piece: Piece) -> Slot:
        """What is remembered of a joint between two pieces."""
        return self._memory["N"].at(piece.answer, (6, 6))

    def Omega(self, piece: Piece, one: int, other: int) -> Slot:
        """The acceleration of one link by forces on another."""
        kept = (one, other) in piece.couplings
        place = piece.couplings[(one, other) if kept else (other, one)]
        return self._memory["Omega"].at(place, symmetric(6) if one == other else (6, 6) if kept else _SWAPPED)

    def X(self, piece: Piece, link: int, name: str = "") -> dict[str, Slot]:
        """The motion of a link against the piece's base: E and r of the transform, and the velocity s."""
        at, X = piece.motions[link], self._memory["X"]
        return {f"E{name}": X.at(at, (3, 3)), f"r{name}": X.at(at + 9, 3), f"s{name}": X.at(at + 12, 6)}

    def of_link(self, name: str, link: int) -> Any:
        """v, a or f of a link."""
        ground = {"v": 0, "a": 6}
        return self.bodies([link]).fields[name] if link else self._ground.at(ground[name], 6)

    # Passes

    def steps(self) -> Steps:
        """A new pass."""
        later, self._first = not self._first, False
        return Steps(self, later)

    def window(self, number: int, clusters: Sequence[int]) -> Window:
        """As in any sweep, but each cluster has a gap of its own, so that none waits for the others."""
        own = dict(super().window(number, clusters).fields)
        if "gap" in own and self._gaps:
            buffer, place = self._gaps
            own["gap"] = buffer.at([place.get(k, 0) for k in clusters])
        return Window(own)

    def of_pieces(self, pieces: Sequence[Piece]) -> Window:
        """What the clusters of pieces see; all of them are alike."""
        first = pieces[0]
        number = self._number[first.cluster]
        n, ports = len(self.shapes[number][0].independent), [self.ports(piece) for piece in pieces]
        rows: dict[str, list[Slot]] = {"c_M": [self.M(x) for x in pieces], "c_p": [self.p(x) for x in pieces]}
        y = self._memory["y"]
        rows["c_y0"] = [y.at(piece.answer, n) for piece in pieces]
        rows["c_Y"] = [y.at(piece.answer + n, (n, 6)) for piece in pieces]
        for count, (i, link) in enumerate(ports[0].items()):
            there = [(piece, port[i]) for piece, port in zip(pieces, ports, strict=True)]
            rows[f"b{i}_Phi"] = [self.Phi(*where) for where in there]
            rows[f"b{i}_b"] = [self.b(*where) for where in there]
            rows[f"b{i}_Z"] = [y.at(piece.answer + n * (7 + 6 * count), (n, 6)) for piece in pieces]
            if link in first.taken:
                rows[f"b{i}_M"] = [self.M(piece.taken[port]) for piece, port in there]
                rows[f"b{i}_p"] = [self.p(piece.taken[port]) for piece, port in there]
            if link in first.motions:
                motions = [self.X(*where, name="o") for where in there]
                rows |= {f"b{i}_{name}": [motion[name] for motion in motions] for name in motions[0]}
            for j in ports[0]:
                if i <= j:
                    pairs = zip(pieces, ports, strict=True)
                    rows[f"c_Omega{i}_{j}"] = [self.Omega(piece, port[i], port[j]) for piece, port in pairs]
        return self.window(number, [piece.cluster for piece in pieces]) | _stacked(rows)

    # Results

    def tell(self, name: str, frames: Sequence[tuple[int, Transform]]) -> None:
        """An output, 6 rows and columns for each frame: Ω of the whole robot, seen from frames on its links."""
        size = 6 * len(frames)
        result, groups = self.result(name, size**2), dict[Any, list[tuple[int, int]]]()
        for e, (one, _) in enumerate(frames):
            for f, (other, _) in enumerate(frames):
                field = self.Omega(self.whole, one, other).field if one and other else None
                groups.setdefault(field, []).append((e, f))
        for field, pairs in groups.items():
            rows = {f"row{i}": result.at([(6 * e + i) * size + 6 * f for e, f in pairs], 6) for i in range(6)}
            if field is None:
                self.builder.loop(_unmoved, here=fields(**rows))
                continue
            slots = [self.Omega(self.whole, frames[e][0], frames[f][0]) for e, f in pairs]
            X = [constants([frames[pair[i]][1].matrix() for pair in pairs]) for i in (0, 1)]
            self.builder.loop(_seen, here=_stacked({"Omega": slots}) | fields(X1=X[0], X2=X[1], **rows))

    def _own_gaps(self) -> tuple[Buffer, dict[int, int]] | None:
        """A place for the gap of each cluster that has one, behind those of a binary tree over them."""
        judged = [k for shape, clusters in self.shapes if shape.judged for k in clusters]
        if not judged:
            return None
        gaps = self.builder.scratch("gaps", 2 * len(judged))
        self.builder.loop(_clear, here=fields(x=gaps.at(range(2 * len(judged)))))
        return gaps, {k: len(judged) + i for i, k in enumerate(judged)}

    def build(self) -> Program:
        """The program; the largest gap is found two by two."""
        if self._gaps and self.gap:
            gaps, place = self._gaps
            inner = np.arange(len(place))[:0:-1]
            pairs = fields(x=gaps.at(inner), one=gaps.at(2 * inner), two=gaps.at(2 * inner + 1))
            self.builder.loop(_larger, here=pairs)
            self.builder.loop(_copy, here=fields(x=self.gap.at(0), one=gaps.at(1)))
        return super().build()


class Steps:
    """A pass over pieces: rows of loops, joined into one loop in the order in which they are added."""

    def __init__(self, assembly: Assembly, later: bool) -> None:
        self._assembly, self._later = assembly, later
        self._groups: dict[Hashable, tuple[int, Callable[[], Any], Callable[..., Window], list[Any]]] = {}
        self._order: list[int] = []

    def add(self, kernel: Callable[[View], None], **slots: Slot) -> None:
        """One row of a kernel, which sees fields by these names."""
        key = kernel, *((name, slot.buffer, slot.offset, slot.field) for name, slot in slots.items())
        self._add(key, lambda: kernel, _rows, slots)

    def add_cluster(self, function: Callable[..., None], piece: Piece) -> None:
        """One row of a function of a piece's cluster, of its ports, and of those that carry what is taken in."""
        assembly, ports = self._assembly, self._assembly.ports(piece)
        number = assembly._number[piece.cluster]
        taken = [i for i, link in ports.items() if link in piece.taken]
        key = function, number, *((i, link in piece.taken, link in piece.open) for i, link in ports.items())

        def traced(cluster: Cluster) -> None:
            function(cluster, [cluster.bodies[i] for i in ports], [cluster.bodies[i] for i in taken])

        traced.__name__ = function.__name__
        self._add(
            key, lambda: assembly._kernel(traced, assembly.shapes[number][0], self._later), assembly.of_pieces, piece
        )

    def _add(self, key: Hashable, kernel: Callable[[], Any], window: Callable[..., Window], row: Any) -> None:
        group = self._groups.setdefault(key, (len(self._groups), kernel, window, []))
        group[3].append(row)
        self._order.append(group[0])

    def run(self) -> None:
        if self._order:
            with self._assembly.builder.interleave(self._order):
                for _, kernel, window, rows in self._groups.values():
                    self._assembly.builder.loop(kernel(), here=window(rows))


def _rows(rows: Sequence[dict[str, Slot]]) -> Window:
    return _stacked({name: [row[name] for row in rows] for name in rows[0]})


def _stacked(rows: dict[str, list[Slot]]) -> Window:
    """Fields from those of single rows."""
    found = {}
    for name, (first, *_) in rows.items():
        found[name] = Slot(first.buffer, np.concatenate([slot.bases for slot in rows[name]]), first.offset, first.field)
    return fields(**found)


def _rest(here: View) -> None:
    """The ground does not move, but falls upwards. [001, §VI-A]"""
    here.Omega, here.v, here.a = np.zeros(36), np.zeros(6), np.concatenate([np.zeros(3), -here.gravity])


def _seen(here: View) -> None:
    """X₁ Ω X₂ᵀ."""
    seen = here.X1 @ here.Omega @ here.X2.T
    for i in range(6):
        setattr(here, f"row{i}", seen[i])


def _unmoved(here: View) -> None:
    for i in range(6):
        setattr(here, f"row{i}", np.zeros(6))


def _clear(here: View) -> None:
    here.x = np.array(0.0)


def _larger(here: View) -> None:
    here.x = np.maximum(here.one, here.two)


def _copy(here: View) -> None:
    here.x = here.one
