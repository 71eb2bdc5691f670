"""Where the handle equations of pieces are stored while a robot is assembled; see dca.py for the equations.

F = M a + p − Σ Φᵢᵀ fᵢ,    aᵢ = Φᵢ a + Σ Ωᵢⱼ fⱼ + bᵢ    [002, eq. 16]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from coupler.algorithms.pieces import Piece, divided
from coupler.model import Robot
from coupler.passes import (
    ClusterRecord,
    ClusterShape,
    ClusterWindows,
    Coordinate,
    Indexed,
    Place,
    Record,
    Schedule,
    Sweep,
    entry,
    numbered,
    provided,
    symmetric,
)
from coupler.spatial import Transform


class PieceBody(Record):
    """What a body remembers: its motion, and its part of the handle equations of its cluster as a piece."""

    v, a, f = entry(6), entry(6), entry(6)
    Phi, b = provided(), provided()  # its acceleration as a handle
    Z = provided()  # freedoms × 6: accelerations of the cluster's joints per unit force on the body
    M, p = provided(), provided()  # inertia and bias force of the piece that the body has taken in
    E_base, r_base, s_base = provided(), provided(), provided()  # transform from the base, and velocity relative to it


class PieceCluster(ClusterRecord):
    """What a cluster remembers as a piece, with joint accelerations ÿ = y₀ − Y a + Σ Z f."""

    tau, a = Coordinate(), Coordinate()
    M, p, y0, Y = provided(), provided(), provided(), provided()
    Omega = Indexed()  # of two handles, by `pair_number`


def pair_number(one: int, other: int) -> int:
    """The number of a pair of bodies of a cluster, the lower one first."""
    return other * (other + 1) // 2 + one


class Assembly(Sweep[PieceBody, PieceCluster]):
    """A sweep over a robot that is divided into pieces.

    Attributes:
        pieces: all of them, in an order in which they can be put together.
        whole: the last of them, which is the robot.
    """

    def __init__(self, robot: Robot, name: str, touched: Iterable[int], **options: Any) -> None:
        """Args: a robot, the program's name, the links that are handles of the whole robot, and options of `Sweep`."""
        super().__init__(robot, name, body=PieceBody, cluster=PieceCluster, **options)
        self.whole = divided(robot, touched)
        self.pieces = self.whole.pieces() if len(robot.cluster_tree.clusters) > 1 else []
        self._M, self._p, self._Phi, self._b, self._N = (self.store(name) for name in ("M", "p", "Phi", "b", "N"))
        self._Omega, self._X, self._y = self.store("Omega"), self.store("X"), self.store("y")
        self._ground = self.store("ground")
        self._coupled: dict[Piece, dict[tuple[int, int], Any]] = {}  # keys of Ω of two handles, in one order
        self._moved: dict[Piece, dict[int, Any]] = {}  # keys of the motions of handles
        self._Omega.add("zero", (6, 6))
        for motion in ("v", "a"):
            self._ground.add(motion, 6)
        for piece in self.pieces:
            self._make_room(piece)
        self._gaps = self._gap_store()
        schedule = Schedule(self.builder)
        schedule.call(_at_rest, np.array(robot.gravity), out=[*(self._ground.place(x) for x in "va")])
        schedule.clear(self._Omega.place("zero"))
        schedule.run()

    def _make_room(self, piece: Piece) -> None:
        if piece.at is None and not piece.cluster:  # pieces side by side are not coupled
            one, two = piece.parts
            self._coupled[piece] = self._coupled[one] | self._coupled[two]
            self._coupled[piece] |= {(h, g): "zero" for h in one.handles for g in two.handles}
            self._moved[piece] = self._moved[one] | self._moved[two]
        else:
            handles = sorted({*piece.handles, *piece.hung})
            for h in handles:
                self._Phi.add((piece, h), (6, 6))
                self._b.add((piece, h), 6)
            pairs = list(combinations_with_replacement(handles, 2))
            for one, other in pairs:
                self._Omega.add((piece, one, other), symmetric(6) if one == other else (6, 6))
            self._coupled[piece] = {(one, other): (piece, one, other) for one, other in pairs}
            self._moved[piece] = {} if piece.cluster else dict(self._moved[piece.parts[0]])
            for h in sorted({*piece.open, *piece.hung} - self._moved[piece].keys()):
                self._moved[piece][h] = piece, h
                for name, size in (("E", (3, 3)), ("r", 3), ("s", 6)):
                    self._X.add((piece, h, name), size)
        self._M.add(piece, symmetric(6))
        self._p.add(piece, 6)
        if piece.cluster:
            n = self.shapes[self.shape_of[piece.cluster]][0].freedoms
            self._y.add((piece, "y0"), n)
            self._y.add((piece, "Y"), (n, 6))
            for link in self.ports(piece).values():
                self._y.add((piece, "Z", link), (n, 6))
        elif piece.at is not None:
            self._N.add(piece, (6, 6))

    def ports(self, piece: Piece) -> dict[int, int]:
        """The bodies of a piece's cluster that are handles, or carry pieces that were taken in: numbers and links."""
        wanted = {*piece.handles, *piece.hung}
        return {i: link for i, link in enumerate(self.instances[piece.cluster].links) if link in wanted}

    # Where things are

    def M(self, piece: Piece) -> Place:
        return self._M.place(piece)

    def p(self, piece: Piece) -> Place:
        return self._p.place(piece)

    def Phi(self, piece: Piece, link: int) -> Place:
        return self._Phi.place(self._way(piece, link))

    def b(self, piece: Piece, link: int) -> Place:
        return self._b.place(self._way(piece, link))

    def _way(self, piece: Piece, link: int) -> Any:
        """The key of Φ and b; for pieces side by side, the key of the piece that has the link."""
        while (piece, link) not in self._Phi.starts:
            piece = next(part for part in piece.parts if link in part.handles)
        return piece, link

    def N(self, piece: Piece) -> Place:
        """(1 + Ω_mm M₂)⁻¹ of the handle m at which a piece's two parts are joined."""
        return self._N.place(piece)

    def Omega(self, piece: Piece, one: int, other: int) -> Place:
        """The acceleration of one link per unit force on another."""
        keys = self._coupled[piece]
        if (one, other) in keys:
            return self._Omega.place(keys[one, other])
        return self._Omega.place(keys[other, one]).transposed()

    def X(self, piece: Piece, link: int) -> list[Place]:
        """The motion of a link relative to the piece's base: E and r of the transform, and the velocity s."""
        return [self._X.place((*self._moved[piece][link], name)) for name in "Ers"]

    def of_link(self, name: str, link: int) -> Place:
        """v, a or f of a link."""
        return self.place(link, name) if link else self._ground.place(name)

    # Passes

    def visit_piece(self, schedule: Schedule, function: Callable[..., None], piece: Piece) -> None:
        """Adds a row: a function of a piece's cluster, its ports, and those ports that have taken a piece in."""
        ports = self.ports(piece)
        key = tuple((i, link in piece.taken, link in piece.open) for i, link in ports.items())
        taken = [i for i, link in ports.items() if link in piece.taken]
        self.visit(schedule, function, piece.cluster, [*ports], taken, key=key, row=piece, provide=self._provide_piece)

    def _provide_piece(self, windows: ClusterWindows, shape: ClusterShape, pieces: Sequence[Piece]) -> None:
        first, ports = pieces[0], [self.ports(piece) for piece in pieces]
        windows.cluster |= {"M": self._M.at(pieces), "p": self._p.at(pieces)}
        windows.cluster |= {name: self._y.at([(piece, name) for piece in pieces]) for name in ("y0", "Y")}
        if self._gaps is not None and shape.can_be_invalid:  # one gap each, so that no cluster waits for another
            windows.cluster["gap"] = self._gaps.at([("cluster", piece.cluster) for piece in pieces])
        for i, link in ports[0].items():
            rows = [(piece, links[i]) for piece, links in zip(pieces, ports, strict=True)]
            body = windows.bodies[i]
            body |= {"Phi": self._Phi.at(rows), "b": self._b.at(rows)}
            body["Z"] = self._y.at([(piece, "Z", port) for piece, port in rows])
            if link in first.taken:
                inner = [piece.taken[port] for piece, port in rows]
                body |= {"M": self._M.at(inner), "p": self._p.at(inner)}
            if link in self._moved[first]:
                for name in "Ers":
                    keys = [(*self._moved[piece][port], name) for piece, port in rows]
                    body[f"{name}_base"] = self._X.at(keys)
            for j in ports[0]:
                if i <= j:
                    pairs = [(piece, links[i], links[j]) for piece, links in zip(pieces, ports, strict=True)]
                    windows.cluster[numbered("Omega", pair_number(i, j))] = self._Omega.at(pairs)

    # Results

    def write_omega(self, name: str, frames: Sequence[tuple[int, Transform]]) -> None:
        """Adds the output J H⁻¹ Jᵀ, 6 rows and columns for each frame: Ω of the whole robot, seen from the frames."""
        size = 6 * len(frames)
        result, schedule = self.result(name, size**2), self.schedule()
        for e, (one, X_one) in enumerate(frames):
            for f, (other, X_other) in enumerate(frames):
                rows = [Place.of(result, (6 * e + i) * size + 6 * f, 6) for i in range(6)]
                if one and other:
                    Omega = self.Omega(self.whole, one, other)
                    schedule.call(_seen_from_frames, Omega, X_one.matrix(), X_other.matrix(), out=rows)
                else:
                    schedule.call(_unmoved, out=rows)
        schedule.run()

    def _gap_store(self) -> Any:
        """Places for gaps in a binary tree: first its inner nodes, then its leaves, the gaps of clusters."""
        checked = [k for shape, clusters in self.shapes if shape.can_be_invalid for k in clusters]
        if not checked:
            return None
        self._checked, gaps = checked, self.store("gaps")
        for i in range(1, len(checked)):
            gaps.add(i, ())
        for k in checked:
            gaps.add(("cluster", k), ())
        schedule = Schedule(self.builder)
        for key in gaps.starts:
            schedule.clear(gaps.place(key))
        schedule.run()
        return gaps

    def build(self) -> Any:
        """The program. The largest gap is found along a binary tree, in logarithmic depth."""
        if self._gaps is not None and self.gap is not None:
            n = len(self._checked)
            node = [*range(1, n), *(("cluster", k) for k in self._checked)]  # of a binary heap, from 1 on
            schedule = self.schedule()
            for i in range(n - 1, 0, -1):
                pair = [self._gaps.place(node[2 * i - 1 + j]) for j in (0, 1)]
                schedule.call(np.maximum, *pair, out=self._gaps.place(i))
            schedule.run()
            schedule = self.schedule()
            schedule.copy(self._gaps.place(node[0]), out=Place.whole(self.gap, ()))
            schedule.run()
        return super().build()


def _at_rest(gravity: Any) -> Any:
    """Velocity and acceleration of the ground: zero, and −a_g in place of gravity. [001, §VI-A]"""
    return np.zeros(6), np.concatenate([np.zeros(3), -gravity])


def _seen_from_frames(Omega: Any, X_one: Any, X_other: Any) -> Any:
    """X₁ Ω X₂ᵀ, by rows."""
    return list(X_one @ Omega @ X_other.T)


def _unmoved() -> Any:
    return [np.zeros(6)] * 6
