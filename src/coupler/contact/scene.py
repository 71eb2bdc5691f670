"""What a compiled step takes into account, and the layout of its state and results in vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.laws import gap_seen
from coupler.contact.pairs import Pair
from coupler.contact.rows import ContactRows
from coupler.contact.scheme import SCHEMES
from coupler.graph import constants, may_differ
from coupler.model import ModelError, Robot

Entry = tuple[int, int]  # a link, and an entry of its joint's velocity

_RECOVERY_ARM = 0.1  # m: a point this far from a joint's axis returns from beyond a limit as fast as a sliding joint


@dataclass(frozen=True, eq=False)
class ContactScene:
    """The settings of a compiled step: what it takes into account, and how exactly it solves the contact problem.

    Attributes:
        pairs: the pairs of shapes that may touch.
        step: h, s.
        tolerance: sweeps end when no impulse changes a velocity by more than this, m/s.
        sweeps: the largest number of sweeps.
        limits: whether joints stop at their limits.
        external: whether forces on bodies are a further input.
        motors: whether actuators act, with their controls as a further input.
        yielding: whether servos yield at their effort limits; if not, a step in which one would has no result.
        penetration: how overlaps count; see `gap_seen`. None: at most as g h², see `seen`.
        integrator: "euler", "midpoint", or one of `SCHEMES`.
        recovery: the largest speed at which overlapping shapes part, m/s (see `let_out`); revolute joints return from
            beyond a limit ten times as fast, rad/s.
        places: whether results include the points and frames of contacts; steps of several stages always include them.
    """

    pairs: tuple[Pair, ...]
    step: float
    tolerance: float = 1e-9  # m/s: a contact that is wrong by it moves 3 mm in a month
    sweeps: int = 10
    limits: bool = True
    external: bool = False
    motors: bool = False
    yielding: bool = True
    penetration: str | float | None = "position"
    integrator: str = "euler"
    recovery: float = np.inf
    places: bool = True

    @property
    def implicit(self) -> bool:
        """Whether servos are implicit, as rows of the contact problem; in steps of several stages they are not."""
        return self.integrator in ("midpoint", "euler")

    def seen(self, gap: Any, view: Any) -> Any:
        """The gap as the laws see it, m, on floats or nodes.

        Impacts in steps of several stages leave overlaps. Shapes that are parted by d in a step continue with d / h,
        and g h is what gravity takes back in the next step. So g h² is what counts by default. Without gravity, nothing
        would take anything back, and overlaps stay as they are.

        Args:
            gap: g_N, m.
            view: has `gravity`, 3, m/s², if `penetration` is None; see `gravity_for`.
        """
        if self.penetration is not None:
            return gap_seen(gap, self.penetration)
        return np.maximum(gap, -np.sqrt(view.gravity @ view.gravity) * self.step**2)

    def seen_by_joint(self, gap: Any, view: Any) -> Any:
        """The distance of a joint to its limit as the laws see it: in full, and in several stages as `seen`."""
        return self.seen(gap, view) if self.integrator in SCHEMES else gap

    def gravity_for(self, robot: Robot, count: int) -> dict[str, Any]:
        """The kernel fields that `seen` needs: gravity, if `penetration` is None."""
        return {} if self.penetration is not None else {"gravity": constants(np.stack([robot.gravity] * count))}


def limited_joints(robot: Robot) -> list[Entry]:
    """The entries of joints that have limits."""
    return _entries(robot, lambda kind, j: kind.nq == kind.nv and max(kind.lower[j], -kind.upper[j]) > -np.inf)


def rubbing_joints(robot: Robot) -> list[Entry]:
    """The entries of joints that have dry friction."""
    return _entries(robot, lambda kind, j: may_differ(kind.friction[j]))


def recovery_speeds(robot: Robot, joints: Sequence[Entry], recovery: float) -> np.ndarray:
    """The largest speed at which each entry of joints returns from beyond a limit, m/s or rad/s; see `ContactScene`."""
    return recovery * np.where([turns(robot, joint) for joint in joints], 1.0 / _RECOVERY_ARM, 1.0)


def turns(robot: Robot, joint: Entry) -> bool:
    """Whether an entry of a joint is an angle rather than a distance."""
    link, j = joint
    kind = robot.tree.links[link].kind
    return bool(np.any(np.asarray(kind.subspace(kind.neutral()))[:3, j]))


def friction_impulses(robot: Robot, joints: Sequence[Entry], step: float) -> list[Any]:
    """The largest impulse of dry friction of each entry of joints within a step, N s or N m s."""
    return [step * robot.tree.links[link].kind.friction[j] for link, j in joints]


def _entries(robot: Robot, holds: Callable[[Any, int], bool]) -> list[Entry]:
    kinds = [(link, robot.tree.links[link].kind) for link in range(1, len(robot.tree.links))]
    return [(link, j) for link, kind in kinds for j in range(kind.nv) if holds(kind, j)]


def rebounding(pairs: Sequence[Pair]) -> list[int]:
    """The numbers of the contacts that rebound in place, over two steps."""
    laws = [pair.restitution for pair in pairs for _ in range(pair.count)]
    return [i for i, law in enumerate(laws) if law is not None and law.in_place]


def travelling(pairs: Sequence[Pair]) -> bool:
    """Whether there are contacts whose impacts close gaps first, then rebound, and travel on to other contacts.

    Raises:
        ModelError: if some contacts rebound in place and others do not.
    """
    laws = [pair.restitution for pair in pairs if pair.restitution is not None]
    travel = any(law.elastic and not law.in_place for law in laws)
    if travel and any(law.in_place for law in laws):
        raise ModelError("restitution: either all contacts that rebound must do so in place, or none")
    return travel


class Layout:
    """The rows of a robot's contact problem in a scene, and the layout of vectors.

    A state consists of q; v; the velocities w of all joints in loops without a solution, which v may not determine; the
    impulses of the previous step, from which a step starts; what that step left of contacts that rebound in place; and
    for the midpoint rule, whether each tree of bodies is near a contact. The result of a step starts with the next
    state. Then come the gap, point and frame of each contact where the step evaluated forces (points and frames only if
    the scene asks for them), the residual, the numbers of pressing contacts, of sweeps, of further iterations and of
    rounds of its kick, the depth of overlaps that are left as they are (see `Jams`), and the work that contacts do to
    part what overlaps, J; and if actuators act, their forces, N m or N, and their work, J.

    Attributes:
        limited: the entries of joints with limits.
        rubbing: the entries of joints with dry friction.
        joints: the entries of both, each once, those with friction first.
        contacts: the number of candidate contacts.
        trees: the number of trees of bodies on the ground.
        loop_links: links in loops without a solution; `w_place` has the place of each one's velocity in w.
        moving_links: links with positions of their own in q, outside such loops.
        stopping_rows: rows of impulses that stop bodies, of contacts and limits, as tuples of the row, its block of the
            contact problem, and a tree on which it acts.
        contact_rows: the rows of contacts.
        rows: the number of rows of the contact problem: those of contacts, then one for each entry of `limited` and of
            `rubbing`.
        places: the slice of each part of a result, by name.
        state: the size of a state; `parts_of_state` has the names of its parts.
        size: the size of a result.
    """

    def __init__(self, robot: Robot, scene: ContactScene) -> None:
        self.limited = limited_joints(robot) if scene.limits else []
        self.rubbing = rubbing_joints(robot)
        self.joints = list(dict.fromkeys([*self.rubbing, *self.limited]))
        discs = [len(pair.cone.coefficients) for pair in scene.pairs for _ in range(pair.count)]
        self.contact_rows, self.contacts = ContactRows(discs), len(discs)
        self.rows = self.contact_rows.total + len(self.limited) + len(self.rubbing)
        n = self.contacts
        self._describe_trees(robot, scene)
        midpoint = scene.integrator == "midpoint"
        sizes = {"q": robot.nq, "v": robot.nv, "w": len(robot.embedding.unsolved_entries)}
        sizes |= {"impulses": self.rows, "pending": 3 * len(rebounding(scene.pairs))}
        sizes |= {"near": self.trees if midpoint and n else 0}
        self.state, self.parts_of_state = sum(sizes.values()), tuple(sizes)
        sizes |= {"gaps": n} | ({"points": 3 * n, "frames": 9 * n} if scene.places else {})
        sizes |= dict.fromkeys(("residual", "touching", "sweeps", "iterations", "rounds", "jammed", "parting"), 1)
        if scene.motors:
            sizes |= dict.fromkeys(("motors", "motor_work"), len(robot.actuators))
        ends = np.cumsum([*sizes.values()]).tolist()
        self.size = ends[-1]
        self.places = {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    def _describe_trees(self, robot: Robot, scene: ContactScene) -> None:
        tree, clusters, embedding = robot.tree, robot.cluster_tree.clusters, robot.embedding
        roots = [k for k, cluster in enumerate(clusters) if k and not cluster.parent]
        number = {k: i for i, k in enumerate(roots)}
        for k, cluster in enumerate(clusters):
            if k and k not in number:
                number[k] = number[cluster.parent]  # carriers have lower numbers
        self.trees, self._tree_of_cluster, self._cluster_of = len(roots), number, robot.cluster_tree.cluster_of
        self.loop_links = list(embedding.unsolved_links)
        starts = np.cumsum([0, *(tree.links[link].kind.nv for link in self.loop_links)]).tolist()
        self.w_place = dict(zip(self.loop_links, starts, strict=False))
        held = {*self.loop_links}
        stored = embedding.q_place[tree.q_start[:-1]] >= 0
        self.moving_links = [link for link in range(1, len(tree.links)) if stored[link] and link not in held]
        self.stopping_rows = list[tuple[int, int, int]]()
        links = [{tree.place[shape.body][0] for shape in (pair.one, pair.other)} for pair in scene.pairs]
        of_contacts = [carriers for pair, carriers in zip(scene.pairs, links, strict=True) for _ in range(pair.count)]
        for i, carriers in enumerate(of_contacts):
            row, trees = int(self.contact_rows.first[i]), sorted({self.tree_of(link) for link in carriers if link})
            self.stopping_rows += [(row, i, tree) for tree in trees]
        block = {joint: self.contacts + i for i, joint in enumerate(self.joints)}
        limits = enumerate(self.limited, self.contact_rows.total)
        self.stopping_rows += [(row, block[joint], self.tree_of(joint[0])) for row, joint in limits]
        self.stopping_rows.sort(key=lambda row: row[1])

    def start(self, robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., state): a state to start from, without impulses.

        Args:
            q: (..., nq), closed configurations.
            v: (..., nv), velocities there.

        Raises:
            ModelError: where v does not determine the velocities of all joints in loops.
        """
        batch, embedding = np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), robot.embedding
        state = np.zeros((*batch, self.state))
        state[..., self.places["q"]], state[..., self.places["v"]] = q, v
        if self.loop_links and v.any():
            p = embedding.positions(q)
            robot.states.check_regular(p)
            state[..., self.places["w"]] = embedding.velocities(p, v)[..., embedding.unsolved_entries]
        state[..., self.places["near"]] = 1.0  # on the safe side: only the first step finds out
        return state

    def tree_of(self, link: int) -> int:
        """The number of the tree of bodies that a link is in."""
        return self._tree_of_cluster[self._cluster_of[link]]

    def tree_of_cluster(self, cluster: int) -> int:
        """The number of the tree of bodies that a cluster is in."""
        return self._tree_of_cluster[cluster]
