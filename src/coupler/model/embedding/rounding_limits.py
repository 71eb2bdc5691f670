"""What rounded numbers do to a loop: the scales of its rows, and how far they may miss.

Each frame of a loop is where its joint holds a link, and is off by what its numbers are rounded by: it is shifted by up
to some precisions, and turned by up to some more. To first order, a motion m of a frame changes the residual of a row
by T m, with the rate T of the row. Where the kept rows of a loop are closed nevertheless, its joints have moved to make
up for it, and a row d that follows from others, K_d = C K_k, misses by (T_d − C T_k) m. It can miss by no more than the
sum of this over all frames, each with the worst m.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coupler.forks import cached_property
from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraints import Loop, LoopConstraint
from coupler.model.tree import Tree
from coupler.spatial import Transform

MANY = 20.0  # singular values below this multiple of the precision may be rounding
_SMALL = 0.25  # m: loops smaller than this are less precise, since their lengths are rounded by more relative to them
_MISSES = 20.0  # by this multiple of the precision, relative to the size of a loop, rows that follow may always miss
_SHIFTS = 2.0  # by so many precisions a frame is shifted: three coordinates, each rounded by one precision at most
_TURNS = 5.0  # by so many it is turned: three angles or four numbers of a quaternion, and three of the joint's axis


def is_shift(constraint: LoopConstraint) -> np.ndarray:
    """For each row of a loop joint, whether it depends on translations, and not on rotations alone."""
    shifts = (0.3, -0.7, 0.5), (1.1, 0.4, -0.6)
    one, other = (constraint.kind.residual(Transform.translation(r)) for r in shifts)
    return np.asarray(one) != np.asarray(other)


@dataclass(frozen=True, eq=False)
class LoopSamples:
    """A loop in several configurations, whose numbers are rounded.

    Attributes:
        tree: the links of the robot.
        loop: the constraints of a cluster, m rows on n joint velocities.
        p: samples × Σ nq, the configurations, in which the loop is about closed.
        phi: samples × m, the residuals.
        K: samples × m × n.
        s: samples × n × 6, the motions of joints.
        T: samples × m × 6, the rates of loop joints; zeros for couplings.
        precision: by how much numbers are rounded, m or rad.
    """

    tree: Tree
    loop: Loop
    p: np.ndarray
    phi: np.ndarray
    K: np.ndarray
    s: np.ndarray
    T: np.ndarray
    precision: float

    @classmethod
    def of_all(cls, closure: Closure, p: np.ndarray, precision: float) -> list[LoopSamples]:
        """All loops of a robot in configurations p, samples × Σ nq."""
        phi, K, _, s, T = closure.rates(p, np.zeros(closure.tree.nv))
        s, T = s.reshape(len(p), -1, 6), T.reshape(len(p), -1, 6)
        loops = zip(closure.loops, closure.places, strict=True)
        return [
            cls(closure.tree, loop, p, phi[:, rows], K[:, entries], s[:, loop.columns], T[:, rows], precision)
            for loop, (rows, entries) in loops
        ]

    @cached_property
    def sizes(self) -> np.ndarray:
        """For each row the scale of its residual: one for rotations, the size of the loop, m, for translations.

        The size of the loop is the largest entry of K in the translational rows of the constraint. A single such row
        may point across the loop, so that all of the cluster count then. The scale of a coupling's row is its largest
        entry.

        No motion of a door moves its second hinge, whose entries of K are but rounding. There the size is how far the
        loop reaches, which is what turns rounded directions into lengths.
        """
        loop, entries = self.loop, np.abs(self.K).max(axis=(0, 2), initial=0.0)
        sizes, shifts = np.ones(loop.rows), self._shifts
        for constraint, rows in loop.parts():
            if isinstance(constraint, LoopConstraint):
                lengths = np.flatnonzero(shifts[rows]) + rows.start
                size = (entries[lengths] if len(lengths) > 1 else entries[shifts]).max(initial=0.0)
                reach = _reach(constraint, self.tree)
                sizes[lengths] = size if size > MANY * self.precision * max(reach, _SMALL) else reach
            else:
                sizes[rows] = entries[rows]
        return np.where(sizes > 0.0, sizes, 1.0)

    @cached_property
    def _shifts(self) -> np.ndarray:
        shifts = np.zeros(self.loop.rows, bool)
        for constraint, rows in self.loop.parts():
            if isinstance(constraint, LoopConstraint):
                shifts[rows] = is_shift(constraint)
        return shifts

    @cached_property
    def relative(self) -> float:
        """The precision relative to the size of the loop: the rounding of lengths counts for more in small loops."""
        parts = [rows for _, rows in self.loop.parts() if self._shifts[rows].any()]
        least = min((float(self.sizes[rows][self._shifts[rows]].max()) for rows in parts), default=np.inf)
        return self.precision * max(1.0, _SMALL / least)

    @cached_property
    def scaled(self) -> np.ndarray:
        """K in each sample, with rows divided by their scales."""
        return np.nan_to_num(self.K / self.sizes[:, None])

    @cached_property
    def still(self) -> np.ndarray:
        """For each row, whether no joint changes its residual in any sample, but for rounding."""
        return np.asarray((np.abs(self.scaled) <= MANY * self.relative).all(axis=(0, 2)))

    def misses(self) -> np.ndarray:
        """How far each row is from closed, samples × m. For rows that are still, also how far turning takes them.

        That is by how much they change if a joint turns by 1 rad, as a hinge does that is beside the axis of another.
        """
        turns = np.abs(self.s[..., :3]).max(axis=(0, 2), initial=0.0) > 0.0
        rates = np.abs(self.K[:, :, turns]).max(axis=2, initial=0.0)
        return np.maximum(np.abs(self.phi), np.where(self.still, rates, 0.0))

    def limits(self, kept: np.ndarray) -> np.ndarray:
        """By how much each row may miss where the kept rows are closed, because numbers are rounded, samples × m.

        Rows that are still miss by what frames are off, and by no more. Others may miss by some more, since errors grow
        where a loop has moved on.

        Args:
            kept: the numbers of the kept rows, which are independent.
        """
        usual = np.where(self.still, 0.0, _MISSES * self.relative * self.sizes)
        return np.maximum(self._bounds(kept), usual)

    def _bounds(self, kept: np.ndarray) -> np.ndarray:
        """The sum over all frames of what each can be off; see the module's text. Couplings have none."""
        K, T = np.nan_to_num(self.K), np.nan_to_num(self.T)
        follows = np.tile(np.eye(self.loop.rows), (len(K), 1, 1))  # each row, less those that it follows from
        follows[:, :, kept] -= K @ np.linalg.pinv(K[:, kept])
        result = np.zeros((len(K), self.loop.rows))
        for sign, points in self._frames():
            seen = np.flatnonzero(sign)
            turn, shift = np.split((follows[:, :, seen] * sign[seen]) @ T[:, seen], 2, axis=-1)
            about = turn + np.cross(shift, points[:, None])
            off = _TURNS * np.linalg.norm(about, axis=-1) + _SHIFTS * np.linalg.norm(shift, axis=-1)
            result += self.precision * off
        return result

    def _frames(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All frames of the loop: with which sign each row sees it, and where it is in each sample, samples × 3."""
        poses = [self._poses(p) for p in self.p]
        loops = [(c, rows) for c, rows in self.loop.parts() if isinstance(c, LoopConstraint)]
        for link in self.loop.links:
            sign = np.zeros(self.loop.rows)
            for constraint, rows in loops:
                away, towards = constraint.ways
                sign[rows] = float(link in towards) - float(link in away)
            yield sign, np.array([_point(of_link[link], _joint(self.tree, link)) for of_link in poses])
        for constraint, rows in loops:
            sign = np.zeros(self.loop.rows)
            sign[rows] = 1.0
            for end, frame in zip(constraint.ends, constraint.frames, strict=True):
                yield sign, np.array([_point(of_link.get(end, Transform.identity()), frame.r) for of_link in poses])

    def _poses(self, p: np.ndarray) -> dict[int | None, Transform]:
        """The transform from the output body of the cluster to each of its links, in one state."""
        poses: dict[int | None, Transform] = {}
        for i in self.loop.links:
            link = self.tree.links[i]
            carrier = poses.get(link.parent, Transform.identity())
            poses[i] = link.kind.transform(p[self.tree.positions(i)]) @ link.placement @ carrier
        return poses


def _reach(constraint: LoopConstraint, tree: Tree) -> float:
    """How far apart two joints of a loop can be, m: half of the way around it, from joint to joint."""
    way, starts = 0.0, []
    for links, frame in zip(constraint.ways, constraint.frames, strict=True):
        end = frame.r  # in the frame of the link on which it is, from the outside in
        for link in links:
            joint = _joint(tree, link)
            way += float(np.linalg.norm(end - joint))
            end = _point(tree.links[link].placement, joint)
        starts.append(end)
    return 0.5 * (way + float(np.linalg.norm(starts[0] - starts[1])))


def _joint(tree: Tree, link: int) -> np.ndarray:
    """Where a joint is on the link that it carries: at the body's frame, as the link's may be slid along the axis."""
    return tree.place[tree.links[link].name][1].r


def _point(pose: Transform, r: np.ndarray) -> np.ndarray:
    """A point of a link, seen from what the pose is relative to."""
    return pose.r + pose.E.T @ r
