"""Factors and inverse of the mass matrix, and products with it, against the mass matrix itself [003, §IV-B].

H comes from composite rigid bodies; what is tested comes from articulated inertias, or from accelerations and forces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import ModelError, mass_matrix_factors, mass_matrix_inverse, mass_matrix_product, mass_matrix_solve
from coupler.algorithms.factorization import (
    mass_matrix_factors_program,
    mass_matrix_product_program,
    mass_matrix_solve_program,
)
from coupler.algorithms.mass_matrix_inverse import mass_matrix_inverse_program
from coupler.graph import compile as compile_program
from coupler.mechanisms import gear, linear
from coupler.model import Robot
from effort import sweep
from random_robots import ROBOTS, Rng, Sketch, sample

EXACT = 1e-12  # relative to the largest entry; 2e-15 is reached
INVERSE = 1e-14  # relative to the condition number of H, by which rounding is magnified; 6e-16 is reached
STATES = 3

BUNDLED = ("geared_chain", "mini_cheetah", "tello", "five_bar", "planar_leg_linkage")
PROGRAMS = {
    mass_matrix_factors: mass_matrix_factors_program,
    mass_matrix_inverse: mass_matrix_inverse_program,
    mass_matrix_product: mass_matrix_product_program,
    mass_matrix_solve: mass_matrix_solve_program,
}
ALONE, WITH_VECTOR = (mass_matrix_factors, mass_matrix_inverse), (mass_matrix_product, mass_matrix_solve)


def storeys(rng: Rng, floating: bool) -> Robot:
    """Clusters on two and on three bodies of another, some crosswise, with branches on single bodies between them.

    So forces climb from one body to several and back to one, and clusters meet on different bodies of a third.
    """
    sketch = Sketch(rng, "storeys")
    base = sketch.joint("free", "ground") if floating else "ground"
    a, b, c = (sketch.joint("revolute", base, name) for name in "abc")
    sketch.couple("first", [a, b, c], linear([[1.0, 0.0], [0.3, -1.2], [0.0, 1.0]]), [a, c])
    d, e, f = (sketch.joint("revolute", on, name) for on, name in ((b, "d"), (a, "e"), (c, "f")))
    sketch.couple("second", [d, e, f], linear([[1.0, 0.0], [0.0, 1.0], [0.4, 0.7]]), [d, e])
    g, h = sketch.joint("prismatic", e, "g"), sketch.joint("helical", d, "h")
    sketch.couple("third", [g, h], lambda q: q[0] - 0.5 * q[1] - 0.2 * np.sin(q[1]))
    i, j = sketch.joint("revolute", g, "i"), sketch.joint("revolute", g, "j")
    sketch.couple("fourth", [i, j], gear(-3.0), [i])
    for body in (a, b, d, f, h, i):
        sketch.chain("revolute universal", body)
    sketch.chain("revolute", "ground")  # which feels nothing of all this
    return sketch.build()


def with_armatures(robot: Robot, rng: Rng) -> Robot:
    """The same robot with armatures, springs and dampers at its joints; only the first are part of H."""

    def passive(kind: Any) -> Any:
        some = rng.uniform(0.1, 1.0, (2, kind.nv))
        return replace(kind, armature=some[0], damping=some[1], stiffness=0.0 if kind.nq != kind.nv else 3.0)

    ground, *links = robot.tree.links
    tree = replace(robot.tree, links=(ground, *(replace(link, kind=passive(link.kind)) for link in links)))
    return replace(robot, tree=tree)


ARMATURES = " with armatures"


@cache
def robot_of(name: str) -> Robot:
    if name.endswith(ARMATURES):
        return with_armatures(robot_of(name.removesuffix(ARMATURES)), np.random.default_rng(3))
    if name.startswith("storeys"):
        return storeys(np.random.default_rng(4), name.endswith("afloat"))
    return sample(name).robot if name in ROBOTS else coupler.robots.load(name)


DRESSED = ("storeys afloat", "floating tree", "cam", "five-bar")
EVERY = [*BUNDLED, *ROBOTS, "storeys", "storeys afloat", *(name + ARMATURES for name in DRESSED)]
SHORT = ["mini_cheetah", "tree", "spherical loop", "implicit", "storeys afloat", "cam" + ARMATURES]


@dataclass(frozen=True, eq=False)
class Case:
    """A robot with some states, its mass matrices there, and how much they magnify rounding."""

    robot: Robot
    q: np.ndarray
    x: np.ndarray
    H: np.ndarray
    condition: np.ndarray


@cache
def case_of(name: str) -> Case:
    robot = robot_of(name)
    q = np.array([robot.random_state(seed)[0] for seed in range(STATES)])
    x = np.random.default_rng(0).normal(size=(STATES, robot.nv))
    H = coupler.mass_matrix(robot, q)
    return Case(robot, q, x, H, np.linalg.cond(H))


@pytest.fixture(scope="module", params=sweep(EVERY, SHORT))
def case(request: pytest.FixtureRequest) -> Case:
    return case_of(request.param)


def gap(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The largest difference of each state, relative to its largest entry."""
    assert found.shape == expected.shape
    axes = tuple(range(1, found.ndim))
    return np.abs(found - expected).max(axis=axes) / np.abs(expected).max(axis=axes)


def clusters_of(robot: Robot) -> np.ndarray:
    """The cluster of each independent velocity."""
    owner = np.full(robot.nv, -1)
    for link in range(1, len(robot.tree.links)):
        places = robot.embedding.v_place[robot.tree.velocities(link)]
        owner[places[places >= 0]] = robot.cluster_tree.cluster_of[link]
    assert (owner > 0).all()
    return owner


def carriers_of(robot: Robot, cluster: int) -> set[int]:
    """The clusters that carry a cluster, the ground left out."""
    above, parent = set(), robot.cluster_tree.clusters[cluster].parent
    while parent:
        above.add(parent)
        parent = robot.cluster_tree.clusters[parent].parent
    return above


# Results


def test_factors_give_the_mass_matrix(case: Case) -> None:
    B, D = mass_matrix_factors(case.robot, case.q)
    assert gap(B.swapaxes(1, 2) @ D @ B, case.H).max() < EXACT


def test_factors_have_the_structure_of_the_cluster_tree(case: Case) -> None:
    """B is one on its diagonal and zero but where a cluster carries another; D has blocks, positive definite."""
    B, D = mass_matrix_factors(case.robot, case.q)
    owner = clusters_of(case.robot)
    own = owner[:, None] == owner
    carried = np.array([[j in carriers_of(case.robot, k) for j in owner] for k in owner])
    np.testing.assert_array_equal(B[:, own], np.broadcast_to(np.eye(case.robot.nv)[own], (STATES, own.sum())))
    assert not B[:, ~own & ~carried].any()
    assert not D[:, ~own].any()
    np.testing.assert_array_equal(D, D.swapaxes(1, 2))
    assert np.linalg.eigvalsh(D).min() > 0.0


def test_inverse(case: Case) -> None:
    inverse = mass_matrix_inverse(case.robot, case.q)
    np.testing.assert_array_equal(inverse, inverse.swapaxes(1, 2))
    error = np.abs(inverse @ case.H - np.eye(case.robot.nv)).max(axis=(1, 2))
    assert (error / case.condition).max() < INVERSE


def test_inverse_by_factors(case: Case) -> None:
    """Eq. 27 with matrices."""
    B, D = mass_matrix_factors(case.robot, case.q)
    unit = np.linalg.inv(B)
    expected = unit @ np.linalg.inv(D) @ unit.swapaxes(1, 2)
    assert (gap(mass_matrix_inverse(case.robot, case.q), expected) / case.condition).max() < INVERSE


def test_product(case: Case) -> None:
    expected = (case.H @ case.x[..., None])[..., 0]
    assert gap(mass_matrix_product(case.robot, case.q, case.x), expected).max() < EXACT


def test_solve(case: Case) -> None:
    forces = (case.H @ case.x[..., None])[..., 0]
    assert (gap(mass_matrix_solve(case.robot, case.q, forces), case.x) / case.condition).max() < INVERSE


def test_robots_have_clusters_on_several_bodies_branches_and_armatures() -> None:
    """What the tests above are about does occur."""
    c = case_of("storeys afloat")
    clusters = c.robot.cluster_tree.clusters
    widths = [len(set(cluster.outputs)) for cluster in clusters[1:]]
    assert max(widths) == 3 and widths.count(2) == 1
    assert gap(coupler.mass_matrix(robot_of("storeys afloat" + ARMATURES), c.q), c.H).min() > 0.01
    inverse = mass_matrix_inverse(c.robot, c.q)
    aside = clusters_of(c.robot) == max(k for k, cluster in enumerate(clusters) if k and not cluster.parent)
    assert aside.sum() == 1 and not inverse[:, aside][..., ~aside].any()
    assert inverse[:, ~aside][..., ~aside].all()


# Calling


@pytest.mark.parametrize(
    "name", sweep(["mini_cheetah", "storeys afloat", "implicit", "spherical loop afloat"], ["mini_cheetah", "implicit"])
)
def test_a_batch_is_as_one_by_one(name: str) -> None:
    """To the last bit, whatever the leading dimensions, and where one argument has none."""
    robot, count = robot_of(name), 11  # no multiple of any number of lanes
    q = case_of(name).q[np.arange(count) % STATES]
    x = np.random.default_rng(8).normal(size=(count, robot.nv))
    for function in ALONE:
        batch = np.asarray(function(robot, q))
        for i in range(count):
            np.testing.assert_array_equal(np.asarray(function(robot, q[i])), batch[..., i, :, :])
        grid = np.asarray(function(robot, q[:10].reshape(5, 2, -1)))
        np.testing.assert_array_equal(grid.reshape(batch[..., :10, :, :].shape), batch[..., :10, :, :])
    for function in WITH_VECTOR:
        batch = function(robot, q, x)
        assert batch.shape == (count, robot.nv) and batch.flags.writeable
        for i in range(count):
            np.testing.assert_array_equal(function(robot, q[i], x[i]), batch[i])
        np.testing.assert_array_equal(function(robot, q[:2, None], x[:3])[1, 2], function(robot, q[1], x[2]))
        np.testing.assert_array_equal(function(robot, q[1], x)[4], function(robot, q[1], x[4]))
        np.testing.assert_array_equal(function(robot, q, x[4])[1], function(robot, q[1], x[4]))


@pytest.mark.parametrize("name", sweep(["mini_cheetah", "storeys afloat", "cam"], ["mini_cheetah", "cam"]))
@pytest.mark.parametrize("make", PROGRAMS.values())
def test_machine_code_is_near_the_interpreter(name: str, make: Callable[[Robot], Any]) -> None:
    c, program = case_of(name), make(robot_of(name))
    given = (c.q, c.x)[: len(program.inputs)]
    expected = compile_program(program, backend="interpreter")(*given)
    assert (gap(compile_program(program)(*given), expected) / c.condition).max() < INVERSE


@pytest.mark.parametrize("name", sweep(["mini_cheetah", "storeys", "implicit"], ["implicit"]))
def test_single_precision(name: str) -> None:
    c = case_of(name)
    q, x = c.q.astype(np.float32), c.x.astype(np.float32)
    for function in PROGRAMS:
        given = ((q, x), (c.q, c.x)) if function in WITH_VECTOR else ((q,), (c.q,))
        found, exact = (function(c.robot, *arguments) for arguments in given)  # type: ignore[arg-type]
        for one, other in zip(found, exact, strict=True):
            assert one.dtype == np.float32
            assert gap(one[None], other[None]).max() < 1e-6 * max(1e3, c.condition.max())


# Cost


@pytest.mark.parametrize("make", [mass_matrix_product_program, mass_matrix_solve_program])
def test_time_is_linear(make: Callable[[Robot], Any]) -> None:
    """Each link costs the same, but for the first and the last."""
    counts = [make(coupler.robots.load("geared_chain", links=n)).operations().total() for n in (12, 24, 48)]
    assert (counts[1] - counts[0]) * 2 == counts[2] - counts[1]


def test_the_inverse_takes_quadratic_time() -> None:
    """Third differences are zero."""
    robots = (coupler.robots.load("geared_chain", links=n) for n in (8, 16, 24, 32))
    counts = [mass_matrix_inverse_program(robot).operations().total() for robot in robots]
    assert not np.diff(counts, 3).any() and np.diff(counts, 2).all()


def test_long_chains() -> None:
    """As many kernels as for a short one, and as exact."""
    short, long = (coupler.robots.load("geared_chain", links=n) for n in (12, 100))
    for make in PROGRAMS.values():
        assert len(make(short).kernels()) == len(make(long).kernels())
    q, x = long.random_state(0)
    H = coupler.mass_matrix(long, q)
    condition = np.linalg.cond(H)
    B, D = mass_matrix_factors(long, q)
    assert gap((B.T @ D @ B)[None], H[None]) < EXACT
    assert np.abs(mass_matrix_inverse(long, q) @ H - np.eye(100)).max() / condition < INVERSE
    assert gap(mass_matrix_product(long, q, x)[None], (H @ x)[None]) < EXACT
    assert gap(mass_matrix_solve(long, q, H @ x)[None], x[None]) / condition < INVERSE


# Errors


@pytest.mark.parametrize("function", PROGRAMS)
def test_bad_arguments_are_refused(function: Callable[..., Any]) -> None:
    robot = robot_of("spherical loop")
    q, x = robot.random_state(0)
    more = (x,) if function in WITH_VECTOR else ()
    ajar, lost = q.copy(), q.copy()
    ajar[-1] += 1e-2
    lost[1] = np.nan
    for first, told in (
        (q[:-1], "'q' has shape"),
        (q + 0j, "'q' is complex128"),
        (lost, "q must be finite; entry 1 is nan"),
        (ajar, "does not close: "),
        (np.stack([q, q, ajar]), r"does not close.* in state 2"),
    ):
        with pytest.raises(ModelError, match=told):
            function(robot, first, *more)
    if more:
        with pytest.raises(ModelError, match="'x' has shape"):
            function(robot, q, x[:-1])
        with pytest.raises(ModelError, match="x must be finite; entry 0 in state 1 is inf"):
            function(robot, q, np.stack([x, np.full_like(x, np.inf)]))
        with pytest.raises(ModelError, match="do not fit together"):
            function(robot, np.stack([q] * 2), np.stack([x] * 3))


@pytest.mark.parametrize("function", PROGRAMS)
def test_quaternions_must_have_unit_length(function: Callable[..., Any]) -> None:
    robot = robot_of("gear")
    q, x = robot.random_state(0)
    q[3:7] *= 1.5
    with pytest.raises(ModelError, match="quaternion"):
        function(robot, q, *((x,) if function in WITH_VECTOR else ()))
