"""Where links have their frames along the axes of their joints."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import coupler
from coupler.model import Free, Joint, Prismatic, Revolute, RobotBuilder
from coupler.model.slides import best_slides, slid
from coupler.spatial import RigidInertia, Transform
from effort import every

NOTHING = RigidInertia(0.0, np.zeros(3), np.zeros((3, 3)))
TURNS = [np.eye(3)[list(order)] for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1))]


def random_tree(rng: np.random.Generator, count: int = 5) -> tuple[list, list, list, list]:
    """Links with axes along axes of coordinates, placements with zeros, and masses here and there."""
    parents, placements, inertias = [0], [Transform.identity()], [NOTHING]
    kinds: list[Joint] = [Free()]
    for i in range(1, count + 1):
        parents.append(int(rng.integers(0, i)))
        kinds.append(Revolute() if rng.random() < 0.8 else Prismatic())
        placements.append(Transform(TURNS[rng.integers(3)], rng.choice([0.0, 0.1, -0.2, 0.3], 3)))
        centre = rng.choice([0.0, 0.05, -0.1], 3)
        inertias.append(RigidInertia.from_centre(1.0, centre, np.diag([0.1, 0.2, 0.25])))
    return parents, kinds, placements, inertias


def numbers(parents: list, placements: list, inertias: list, slides: np.ndarray) -> tuple[int, int, int]:
    """How many entries of placements, first moments and products of inertia are not zero."""
    shifts = moments = products = 0
    for i in range(1, len(parents)):
        shifts += int(
            np.count_nonzero(np.abs(slid(placements[i], float(slides[parents[i]]), float(slides[i])).r) > 1e-12)
        )
        moved = inertias[i].seen_from(Transform.translation((0.0, 0.0, -slides[i])))
        moments += int(np.count_nonzero(np.abs(moved.h) > 1e-12))
        products += int(np.count_nonzero(np.abs(moved.I[[0, 1], [2, 2]]) > 1e-12))
    return shifts, moments, products


@pytest.mark.parametrize("seed", every(4, range(8)))
def test_no_other_places_have_more_zeros(seed: int) -> None:
    parents, kinds, placements, inertias = random_tree(np.random.default_rng(seed))
    slides = best_slides(parents, kinds, placements, inertias)

    def cost(slides: np.ndarray) -> float:
        return float(np.dot((14.0, 8.0, 6.0), numbers(parents, placements, inertias, slides)))

    some = sorted({round(float(x), 12) for x in np.add.outer([0, 0.1, -0.2, 0.3, 0.05], [0, 0.2, -0.1]).ravel()})
    rng = np.random.default_rng(seed)
    others = [np.array([0.0, *rng.choice(some, len(parents) - 1)]) for _ in range(2000)]
    others += [np.array([0.0, *s]) for s in product((0.0, 0.1, -0.1), repeat=len(parents) - 1)]
    leaves = set(range(1, len(parents))) - set(parents)
    for leaf in leaves:  # which are balanced first, if they can be
        if not inertias[leaf].h[:2].any():
            slides[leaf] = inertias[leaf].h[2]
            for other in others:
                other[leaf] = slides[leaf]
    assert cost(slides) <= min(map(cost, others)) + 1e-9


def test_where_axes_meet_nothing_is_shifted() -> None:
    b = RobotBuilder("wrist")
    b.body("yaw", 1.0, (0.01, 0.02, 0.0), (0.1, 0.1, 0.1))
    b.body("pitch", 1.0, (0.01, -0.3, 0.03), (0.1, 0.1, 0.1))
    b.joint("yaw", Revolute(), "ground", "yaw")
    b.joint("pitch", Revolute(axis=(0, 1, 0)), "yaw", "pitch", (0, 0.3, 0))
    for link in b.build().tree.links:
        np.testing.assert_array_equal(link.placement.r, 0.0)


def test_general_placements_keep_their_centres_on_the_axis_plane() -> None:
    link = coupler.robots.load("geared_chain", links=2, seed=1).tree.links[1]
    assert link.inertia.h[2] == 0.0 or link.placement.r[2] == 0.0


def test_users_see_none_of_it() -> None:
    b = RobotBuilder("arm")
    b.body("arm", 1.0, (0.1, 0.0, 0.5), (0.1, 0.1, 0.1))
    b.frame("tip", "arm", (0.2, 0.0, 0.7))
    b.joint("hinge", Revolute(), "ground", "arm", (0, 0, 1))
    pose = coupler.frame_pose(b.build(), [0.5], "tip")
    np.testing.assert_allclose(pose[:3, 3], (0.2 * np.cos(0.5), 0.2 * np.sin(0.5), 1.7), rtol=1e-15)
