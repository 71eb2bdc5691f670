"""Rows that nearly follow from others are dropped where numbers are rounded, and no others are."""

from __future__ import annotations

import numpy as np
import pytest

from coupler import RobotBuilder
from coupler.model import Held, LoopKind, ModelError, Prismatic, Revolute, Robot, Spherical, Universal

Y = (0.0, 1.0, 0.0)


def four_bar(kind: LoopKind, tilt: float = 0.0, gap: float = 0.0, size: float = 1.0) -> RobotBuilder:
    """A crank, a rod whose axis is tilted (rad), and a rocker that is shifted along it (m)."""
    b, axis = RobotBuilder("four_bar"), np.array([tilt, 1.0, -0.7 * tilt])
    for name in ("crank", "rod", "rocker"):
        b.body(name, 1.0, (0.1 * size, 0, 0), (0.1, 0.1, 0.1))
    b.joint("shoulder", Revolute(axis=Y), "ground", "crank")
    b.joint("elbow", Revolute(axis=axis), "crank", "rod", at=(0.2 * size, 0, 0.1 * size))
    b.joint("pivot", Revolute(axis=Y), "ground", "rocker", at=(0.6 * size, gap, 0))
    b.loop("pin", kind, "rod", "rocker", at=(0.4 * size, 0, 0), meets=(0, 0, 0.3 * size))
    return b


KINDS = {"revolute": Revolute(axis=Y), "spherical": Spherical(), "universal": Universal(first=Y, second=(0, 0, 1))}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("tilt", "gap"), [(0, 1.2e-8), (4e-6, 0), (2e-4, 5e-4), (8e-4, 8e-4)])
def test_a_loop_of_rounded_numbers_moves_as_the_exact_one(kind: str, tilt: float, gap: float) -> None:
    with pytest.raises(ModelError, match=r"cannot (move|close)"):
        four_bar(KINDS[kind], tilt, gap).build()
    robot = four_bar(KINDS[kind], tilt, gap).build(precision=max(tilt, gap))
    assert robot.nv == 1 and "follow" in " ".join(robot.warnings)
    q, _ = robot.random_state(np.random.default_rng(0))
    robot.check(q)


@pytest.mark.parametrize("kind", KINDS)
def test_an_exact_loop_is_as_it_is_without_asking(kind: str) -> None:
    plain, asked = (four_bar(KINDS[kind]).build(precision=precision) for precision in (0.0, 5e-4))
    np.testing.assert_array_equal(plain.neutral(), asked.neutral())
    assert (plain.remarks, plain.warnings, plain.nv) == (asked.remarks, asked.warnings, asked.nv)
    assert asked.precision == 0.0


def test_a_loop_that_is_open_stays_open() -> None:
    """Half a centimetre is no rounding of half a millimetre's numbers; nor is a rod that is too short."""
    with pytest.raises(ModelError, match="cannot close"):
        four_bar(Revolute(axis=Y), gap=0.02).build(precision=5e-4)
    b = four_bar(Spherical())
    b.loop("far", Spherical(), "crank", "ground", at=(0, 0, 0), meets=(9, 0, 0))
    with pytest.raises(ModelError, match="cannot close"):
        b.build(precision=5e-4)


def test_a_truss_cannot_move() -> None:
    b = four_bar(Revolute(axis=Y))
    b.loop("brace", Spherical(), "crank", "ground", at=(0.2, 0, 0.1), meets=(0.2, 0, 0.1))
    with pytest.raises(ModelError, match="cannot move"):
        b.build(precision=5e-4)


@pytest.mark.parametrize("size", [1e-3, 1e-2, 10.0])
def test_small_and_large_loops_keep_their_rows(size: float) -> None:
    """A watch has loops of a millimetre: their rows are small in metres, and not rounding."""
    robot = four_bar(Revolute(axis=Y), size=size).build(precision=1e-6)
    assert robot.nv == 1 and robot.precision == 0.0


def eccentric(offset: float) -> Robot:
    """A slider on a crank that is very short."""
    b = RobotBuilder("eccentric")
    for name in ("crank", "rod", "slider"):
        b.body(name, 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("shaft", Revolute(axis=Y), "ground", "crank")
    b.joint("pin", Revolute(axis=Y), "crank", "rod", at=(offset, 0, 0))
    b.joint("guide", Prismatic(axis=(1, 0, 0)), "ground", "slider", at=(0.3, 0, 0))
    b.loop("end", Revolute(axis=Y), "rod", "slider", at=(0.3, 0, 0.0))
    return b.build(precision=5e-5)


@pytest.mark.parametrize("offset", [1e-3, 5e-4])
def test_a_short_crank_drives_its_slider(offset: float) -> None:
    robot = eccentric(offset)
    assert robot.nv == 1
    q = robot.pack_q({"shaft": 1.0})
    assert robot.joint_positions(q)["guide"] == pytest.approx(
        offset * np.cos(1.0) + np.sqrt(0.09 - (offset * np.sin(1.0)) ** 2) - 0.3, abs=1e-9
    )


def test_a_weak_but_real_constraint_is_kept() -> None:
    """Two sliders whose positions a screw relates by a thousandth: small numbers, and no rounding."""
    b = RobotBuilder("screw")
    for name in ("nut", "stage"):
        b.body(name, 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("turn", Revolute(axis=(0, 0, 1)), "ground", "nut")
    b.joint("slide", Prismatic(axis=(0, 0, 1)), "ground", "stage")
    b.couple("thread", ["turn", "slide"], lambda q: np.array([1e-3 * q[0] - q[1]]))
    b.loop("across", Held([[0, 0, 0, 1, 0, 0]]), "ground", "stage")  # follows exactly
    assert b.build(precision=5e-4).nv == 1
