"""Clustering against a search through all partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from coupler.model import ModelError
from coupler.model.clusters import ClusterTree, find_clusters, joints_of_loop
from work import at_most

Partition = frozenset[frozenset[int]]


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    first, *rest = items
    for smaller in partitions(rest):
        for i, group in enumerate(smaller):
            yield [*smaller[:i], [first, *group], *smaller[i + 1 :]]
        yield [[first], *smaller]


def is_tree(parent: Sequence[int], groups: Sequence[Sequence[int]], constraints: Sequence[frozenset[int]]) -> bool:
    of = {body: i for i, group in enumerate(groups) for body in group} | {0: -1}
    if any(len({of[j] for j in joints}) > 1 for joints in constraints):
        return False
    return all(len({of[parent[b]] for b in group if of[parent[b]] != i}) == 1 for i, group in enumerate(groups))


def search(parent: Sequence[int], constraints: Sequence[frozenset[int]]) -> list[Partition]:
    """All partitions that form a tree and have the most clusters."""
    bodies = list(range(1, len(parent)))
    good = [groups for groups in partitions(bodies) if is_tree(parent, groups, constraints)]
    most = max(len(groups) for groups in good)
    return [frozenset(map(frozenset, groups)) for groups in good if len(groups) == most]


def found(tree: ClusterTree) -> Partition:
    return frozenset(frozenset(cluster.bodies) for cluster in tree.clusters[1:])


def check_numbering(parent: Sequence[int], tree: ClusterTree) -> None:
    of = tree.cluster_of
    assert sorted(of) == list(range(len(parent)))
    for k, cluster in enumerate(tree.clusters[1:], start=1):
        assert cluster.parent < k
        for i, (body, output) in enumerate(zip(cluster.bodies, cluster.outputs, strict=True)):
            assert of[output] == cluster.parent
            assert parent[body] == output or parent[body] in cluster.bodies[:i]
            above = parent[body]
            while of[above] == k:
                above = parent[above]
            assert above == output


def random_tree(rng: np.random.Generator, n: int) -> list[int]:
    return [0, *(int(rng.integers(0, i)) for i in range(1, n + 1))]


@pytest.mark.parametrize("seed", range(150))
def test_loop_joints_give_the_one_finest_tree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parent = random_tree(rng, 7)
    ends = rng.integers(0, 8, (int(rng.integers(0, 4)), 2)).tolist()
    constraints = [joints_of_loop(parent, *pair) for pair in ends]
    tree = find_clusters(parent, constraints)
    assert search(parent, constraints) == [found(tree)]
    check_numbering(parent, tree)


@pytest.mark.parametrize("seed", range(150))
def test_gears_between_any_joints_give_a_tree_with_the_most_clusters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parent = random_tree(rng, 7)
    gears = [frozenset(rng.choice(np.arange(1, 8), 2, replace=False).tolist()) for _ in range(int(rng.integers(1, 3)))]
    tree = find_clusters(parent, gears)
    assert found(tree) in search(parent, gears)
    check_numbering(parent, tree)


def test_without_constraints_every_body_is_its_own_cluster() -> None:
    tree = find_clusters([0, 0, 1, 1, 2], [])
    assert [c.bodies for c in tree.clusters] == [(0,), (1,), (2,), (3,), (4,)]
    assert [c.parent for c in tree.clusters] == [0, 0, 1, 1, 2]


def test_output_bodies_of_the_papers_example() -> None:
    """001, Fig. 5: three clusters; bodies 6 and 7 hang on different bodies of the first."""
    parent = [0, 0, 1, 2, 1, 4, 1, 2]
    constraints = [joints_of_loop(parent, 3, 0), joints_of_loop(parent, 5, 1), {6, 7}]
    tree = find_clusters(parent, constraints)
    assert [c.bodies for c in tree.clusters[1:]] == [(1, 2, 3), (4, 5), (6, 7)]
    assert [c.parent for c in tree.clusters[1:]] == [0, 1, 1]
    assert [c.outputs for c in tree.clusters[1:]] == [(0, 0, 0), (1, 1), (1, 2)]


def test_every_spanning_tree_of_a_cycle_gives_the_same_bodies() -> None:
    """001, Fig. 2: a ring of three bodies on a base; whichever joint is the loop joint, the ring is one cluster."""
    ring = [(1, 2), (2, 3), (3, 4), (4, 1)]  # body 1 is on the ground
    for cut in range(4):
        parent = [0, 0, -1, -1, -1]
        while -1 in parent:
            for i, (a, b) in enumerate(ring):
                if i != cut:
                    for above, below in ((a, b), (b, a)):
                        if parent[below] == -1 and parent[above] != -1:
                            parent[below] = above
        tree = find_clusters(parent, [joints_of_loop(parent, *ring[cut])])
        assert found(tree) == {frozenset({1}), frozenset({2, 3, 4})}


def test_nested_loops_are_one_cluster_and_neighbours_are_not() -> None:
    #     a four-bar (1, 2, 3) whose coupler 2 carries another (4, 5, 6), and a loop that spans both
    parent = [0, 0, 1, 0, 2, 4, 2]
    inner, outer = joints_of_loop(parent, 5, 6), joints_of_loop(parent, 2, 3)
    assert found(find_clusters(parent, [inner, outer])) == {frozenset({1, 2, 3}), frozenset({4, 5, 6})}
    spanning = joints_of_loop(parent, 6, 3)
    assert found(find_clusters(parent, [inner, outer, spanning])) == {frozenset(range(1, 7))}


def test_a_rotor_beside_a_link() -> None:
    # rotor 1 and link 2 on the ground, rotor 3 and link 4 on link 2
    tree = find_clusters([0, 0, 0, 2, 2], [{1, 2}, {3, 4}])
    assert [c.bodies for c in tree.clusters[1:]] == [(1, 2), (3, 4)]
    assert tree.clusters[2].outputs == (2, 2)


def test_a_loop_over_a_single_body_couples_nothing_more() -> None:
    parent = [0, 0, 1]
    assert joints_of_loop(parent, 2, 2) == frozenset()
    assert found(find_clusters(parent, [joints_of_loop(parent, 2, 2)])) == {frozenset({1}), frozenset({2})}


@pytest.mark.parametrize(
    ("parent", "constraints", "message"),
    [
        ([0, 2, 1], [], r"bodies \[1, 2\] do not hang on the ground: their parents lead round in a circle"),
        ([0, 1], [], r"bodies \[1\] do not hang on the ground"),
        ([0, 5], [], "body 1 hangs on body 5, which does not exist"),
        ([0, 0], [{1, 2}], "a constraint names joint 2; there are 1 to 1"),
        ([0, 0], [{0, 1}], "a constraint names joint 0; there are 1 to 1"),
    ],
)
def test_what_is_no_tree_is_refused(parent: list[int], constraints: list[set[int]], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        find_clusters(parent, constraints)


def test_long_branches_are_zipped_together() -> None:
    """A gear between the tips of two chains of 200 bodies: too many ways to search, and still pairs of bodies."""
    n = 200
    parent = [0, *range(n), 0, *range(n + 1, 2 * n)]
    tree = find_clusters(parent, [{n, 2 * n}])
    assert found(tree) == {frozenset({i, n + i}) for i in range(1, n + 1)}
    check_numbering(parent, tree)


def test_branches_that_are_not_linked_are_searched_apart() -> None:
    """Twenty copies of a tree whose answer needs a search: forty clusters, two each."""
    parent, gears = [0], []
    for _ in range(20):
        start = len(parent) - 1
        parent += [start + p if p else 0 for p in (0, 0, 1, 0, 4, 2)]
        gears += [{start + 3, start + 5}, {start + 4, start + 6}]
    assert len(find_clusters(parent, gears).clusters) == 41


def test_gears_all_over_a_long_chain_are_quick() -> None:
    rng = np.random.default_rng(0)
    gears = [set(rng.choice(np.arange(1, 2001), 2, replace=False).tolist()) for _ in range(100)]
    with at_most(2_000_000):  # it takes 0.65 million
        find_clusters([0, *range(2000)], gears)


@pytest.mark.parametrize(
    ("parent", "ends", "message"),
    [([0, 2, 1], (1, 0), "lead round in a circle"), ([0, 0], (5, 0), "no body 5"), ([0, 0], (-1, 0), "no body -1")],
)
def test_a_loop_between_bodies_that_do_not_hang_together(
    parent: list[int], ends: tuple[int, int], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        joints_of_loop(parent, *ends)


def test_large_robots_are_quick() -> None:
    n = 500
    ring = [0, 0, *range(1, n)]
    # a chain of four-bars: each hangs on the coupler of the one before
    parent, loops, base = [0], [], 0
    for _ in range(n):
        crank, coupler, rocker = len(parent), len(parent) + 1, len(parent) + 2
        parent += [base, crank, base]
        loops.append((coupler, rocker))
        base = coupler
    with at_most(5_000_000):  # it takes 2.1 million
        assert len(find_clusters(ring, [joints_of_loop(ring, n, 0)]).clusters) == 2
        tree = find_clusters(parent, [joints_of_loop(parent, *pair) for pair in loops])
    assert len(tree.clusters) == n + 1


# Graphs of the paper, by what its text says of the figures: parents of bodies 1, 2, ..., and what couples their joints.
FIGURES: dict[str, tuple[list[int], list[tuple[int, int] | set[int]]]] = {
    "Fig. 2": ([0, 0, 1, 2, 1], [(3, 4)]),
    "Fig. 4": ([0, 0, 1, 2, 2, 3, 1], [(4, 5)]),  # clusters 1, 2 and 4 are single bodies
    "Fig. 5": ([0, 0, 1, 2, 1, 4, 1, 2], [(3, 0), (5, 1), {6, 7}]),
    "nested": ([0, 0, 1, 0, 2, 4, 2], [(5, 6), (2, 3)]),
    "nested, and one that spans both": ([0, 0, 1, 0, 2, 4, 2], [(5, 6), (2, 3), (6, 3)]),
    "overlapping": ([0, 0, 1, 2, 0, 4], [(3, 0), (2, 5)]),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_and_nested_loops_equal_a_brute_force_search(name: str) -> None:
    parent, bonds = FIGURES[name]
    constraints = [frozenset(x) if isinstance(x, set) else joints_of_loop(parent, *x) for x in bonds]
    tree = find_clusters(parent, constraints)
    assert search(parent, constraints) == [found(tree)]
    check_numbering(parent, tree)
    if name == "Fig. 4":
        assert [len(cluster.bodies) for cluster in tree.clusters[1:]] == [1, 1, 3, 1]
