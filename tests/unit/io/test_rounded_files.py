"""Files round their numbers: the loops of a robot close and move as those of the exact one."""

from __future__ import annotations

import pickle
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

import coupler
from coupler import robots
from coupler.io.load import load
from coupler.io.precision import precision_of
from coupler.io.urdf.origins import rotation_of
from coupler.io.writing import rpy_of
from coupler.io.xml import parse
from coupler.model import ModelError, ModelWarning, Revolute, Robot, RobotBuilder
from coupler.rotation import about_x, about_y, about_z
from coupler.spatial import Transform
from effort import sweep
from random_robots import ROBOTS, sample
from saved_robots import dynamics_gap

QUARTER = np.pi / 2
TURNS = [(QUARTER, 0, 0), (0, 0, QUARTER), (QUARTER, 0, -QUARTER), (0, QUARTER, 0), (np.pi, 0, QUARTER)]
PLANAR = ["four_bar", "five_bar", "six_bar", "slider_crank", "planar_leg_linkage"]

Digits = Callable[[float], str]


def all_digits(x: float) -> str:
    return repr(float(x))


def numbers(element: ET.Element | None, name: str) -> np.ndarray:
    text = None if element is None else element.get(name)
    return np.zeros(3) if text is None else np.array([float(word) for word in text.split()])


def turned(text: str) -> ET.Element:
    """The same robot with the frame of each link turned by right angles, other ones from link to link."""
    root = ET.fromstring(text)
    turns = cycle(TURNS)
    of = {link.get("name"): rotation_of(np.array(next(turns), float)) for link in root.iter("link")}
    of["ground"] = np.eye(3)

    def place(parent: ET.Element, before: np.ndarray, after: np.ndarray) -> None:
        origin = parent.find("origin")
        R, r = rotation_of(numbers(origin, "rpy")), numbers(origin, "xyz")
        origin = ET.SubElement(parent, "origin") if origin is None else origin
        origin.set("xyz", " ".join(map(all_digits, before.T @ r)))
        origin.set("rpy", " ".join(map(all_digits, rpy_of(before.T @ R @ after))))

    for link in root.iter("link"):
        for part in (*link.iter("inertial"), *link.iter("visual"), *link.iter("collision")):
            place(part, of[link.get("name")], np.eye(3))
    for joint in (joint for joint in root.iter("joint") if joint.find("parent") is not None):
        parent, child = (of[joint.find(end).get("link")] for end in ("parent", "child"))  # type: ignore[union-attr]
        place(joint, parent, child)
        axis = joint.find("axis")
        if axis is not None:
            axis.set("xyz", " ".join(map(all_digits, child.T @ numbers(axis, "xyz"))))
    for loop in root.iter("loop"):
        for end in ("predecessor", "successor"):
            place(loop.find(end), of[loop.find(end).get("link")], np.eye(3))  # type: ignore[union-attr,arg-type]
    return root


def rounded(root: ET.Element, angles: Digits, lengths: Digits) -> str:
    """The same file with fewer digits."""
    for element in root.iter():
        for name, digits in (("rpy", angles), ("xyz", lengths)):
            if element.get(name) is not None:
                element.set(name, " ".join(digits(x) for x in numbers(element, name)))
    return ET.tostring(root, encoding="unicode")


def decimals(count: int) -> Digits:
    return lambda x: f"{x:.{count}f}"


def significant(count: int) -> Digits:
    return lambda x: f"{x:.{count - 1}e}"


def careless(x: float) -> str:
    """As in a file of a quadruped: π/2 as 1.57075."""
    return f"{x * (1.57075 / QUARTER):.5f}"


def saved(robot: Robot, folder: Path) -> str:
    return robot.save(folder / "exact.urdf").read_text()


def loaded(text: str, folder: Path, **options: float) -> Robot:
    path = folder / "rounded.urdf"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load(path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PLANAR)
def test_turned_frames_are_the_same_robot(name: str, tmp_path: Path) -> None:
    exact = robots.load(name)
    found = loaded(rounded(turned(saved(exact, tmp_path)), all_digits, all_digits), tmp_path)
    assert found.nv == exact.nv and not any("rounded" in text for text in found.warnings)
    assert dynamics_gap(exact, found) < 1e-9


@pytest.mark.parametrize("name", PLANAR)
@pytest.mark.parametrize(
    ("angles", "lengths"),
    [
        pytest.param(decimals(7), all_digits, id="1.5707963"),
        pytest.param(decimals(4), all_digits, id="1.5708"),
        pytest.param(decimals(3), all_digits, id="1.571"),
        pytest.param(careless, all_digits, id="1.57075"),
        pytest.param(decimals(4), decimals(3), id="1.5708 and mm"),
        pytest.param(decimals(3), decimals(3), id="1.571 and mm"),
    ],
)
def test_a_rounded_file_has_the_freedoms_of_the_exact_robot(
    name: str, angles: Digits, lengths: Digits, tmp_path: Path
) -> None:
    exact = robots.load(name)
    text = rounded(turned(saved(exact, tmp_path)), angles, lengths)
    found = loaded(text, tmp_path)
    assert found.nv == exact.nv and list(found.joint_names) == list(exact.joint_names)
    assert any("follow from others to" in text or "follows from others to" in text for text in found.warnings)
    q, v = found.random_state(np.random.default_rng(0))
    found.check(q)
    assert np.isfinite(coupler.forward_dynamics(found, q, v, np.zeros(found.nv))).all()


def test_the_dynamics_are_those_of_the_exact_robot_but_for_the_rounding(tmp_path: Path) -> None:
    exact = robots.load("four_bar")
    text = saved(exact, tmp_path)
    found = loaded(rounded(turned(text), decimals(6), decimals(6)), tmp_path)
    q = exact.neutral()
    positions = exact.joint_positions(q)
    start = found.pack_q({joint: positions[joint] for joint in exact.independent_joints})
    H, other = coupler.mass_matrix(exact, q), coupler.mass_matrix(found, start)
    np.testing.assert_allclose(other, H, rtol=2e-5)


def test_an_option_takes_the_numbers_as_they_are(tmp_path: Path) -> None:
    text = rounded(turned(saved(robots.load("four_bar"), tmp_path)), decimals(4), all_digits)
    with pytest.raises(ModelError, match=r"cannot (move|close)"):
        loaded(text, tmp_path, precision=0)
    assert loaded(text, tmp_path, precision=1e-5).nv == 1


def test_it_is_said_once(tmp_path: Path) -> None:
    text = rounded(turned(saved(robots.load("six_bar"), tmp_path)), decimals(4), all_digits)
    (tmp_path / "rounded.urdf").write_text(text)
    with pytest.warns(ModelWarning, match=r"\d+ rows of '\w+' follow from others to \S+ \(m or rad\)") as told:
        load(tmp_path / "rounded.urdf")
    assert len(told) == 1 and str(told[0].message).count("follow from others to") == 1


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_a_rounded_robot_is_saved_and_comes_back(suffix: str, tmp_path: Path) -> None:
    if suffix == ".xml":
        pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed")
    found = loaded(rounded(turned(saved(robots.load("five_bar"), tmp_path)), decimals(4), decimals(3)), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        again = load(found.save(tmp_path / f"again{suffix}"))
    assert (again.nv, again.precision) == (found.nv, found.precision) == (2, 5e-4)


def test_a_rounded_robot_is_pickled_and_simulated(tmp_path: Path) -> None:
    found = loaded(rounded(turned(saved(robots.load("five_bar"), tmp_path)), decimals(4), decimals(3)), tmp_path)
    again = pickle.loads(pickle.dumps(found))
    q, v = found.random_state(np.random.default_rng(1))
    tau = np.zeros(2)
    np.testing.assert_array_equal(
        coupler.forward_dynamics(again, q, v, tau), coupler.forward_dynamics(found, q, v, tau)
    )
    simulation = coupler.Simulation(found, 1e-3, q=q, v=v)
    for _ in range(100):
        simulation.step(tau)
    found.check_closed(simulation.q)
    assert all(error < 1e-2 for error in found.loop_errors(found.neutral()).values())


# Mechanisms with more rows than they need, in poses that no symmetry helps.

HINGE = Revolute(axis=(0, 1, 0))


def cranks(count: int) -> Robot:
    """A bar on equal parallel cranks: with three or more, it has other assemblies, in which it cannot move."""
    at, length, tilt = ((0.0, 0.0), (0.211, 0.031), (0.377, -0.044), (0.52, 0.02)), 0.173, about_y(0.3)
    b = RobotBuilder("cranks")
    for name in ("bar", *(f"crank{i}" for i in range(count))):
        b.body(name, 1.0, (0.01, 0.02, 0.05), (0.01, 0.012, 0.011))
    for i, (x, z) in enumerate(at[:count]):
        b.joint(f"hinge{i}", HINGE, "ground", f"crank{i}", Transform(tilt.T, np.array([x, 0.0, z])))
        top = Transform(tilt, np.array([0.0, 0.0, length]))
        if i:
            b.loop(f"pin{i}", HINGE, f"crank{i}", "bar", top, (x, 0.0, z))
        else:
            b.joint("pin0", HINGE, "crank0", "bar", top)
    return b.build()


def sarrus(lower: float, upper: float, radius: float, *angles: float) -> Robot:
    """A platform that legs of three parallel hinges each, folding in planes at angles about z, let move along z."""
    b, bend = RobotBuilder("sarrus"), 0.6
    rest = np.arcsin(lower * np.sin(bend) / upper)
    b.body("platform", 1.0, (0.01, 0.02, 0.05), (0.01, 0.012, 0.011))
    for i, angle in enumerate(angles):
        turn, foot = about_z(angle), about_z(angle) @ (radius, 0.0, 0.0)
        for name in (f"thigh{i}", f"shank{i}"):
            b.body(name, 1.0, (0.01, 0.02, 0.05), (0.01, 0.012, 0.011))
        b.joint(f"foot{i}", HINGE, "ground", f"thigh{i}", Transform((turn @ about_y(bend)).T, foot))
        knee = Transform(about_y(bend + rest), np.array([0.0, 0.0, lower]))
        b.joint(f"knee{i}", HINGE, f"thigh{i}", f"shank{i}", knee)
        top, seat = Transform(about_y(rest).T, np.array([0.0, 0.0, upper])), Transform(turn.T, foot)
        if i:
            b.loop(f"top{i}", HINGE, f"shank{i}", "platform", top, seat)
        else:
            b.joint("top0", HINGE, "shank0", "platform", top, meets=seat)
    return b.build()


def spherical(radius: float) -> Robot:
    """A four-bar whose axes meet in a point: lengths and angles of a small one are rounded as those of large ones."""
    b, one, other = RobotBuilder("spherical"), about_y(0.5) @ (0, 0, 1), about_x(1.1) @ (0, 0, 1)
    for name in ("left", "rod", "right"):
        b.body(name, 1.0, (0.01, 0.02, 0.05), (0.01, 0.012, 0.011))
    across = np.cross(one, other)
    part = np.linalg.solve([one, other, across], [np.cos(0.9), np.cos(0.8), 0.0])
    pin = part + across * np.sqrt((1 - part @ part) / (across @ across))
    b.joint("a", Revolute(axis=(0, 0, 1)), "ground", "left")
    b.joint("b", Revolute(axis=one), "left", "rod", radius * one)
    b.joint("d", Revolute(axis=other), "ground", "right", radius * other)
    b.loop("c", Revolute(axis=pin), "rod", "right", radius * (pin - one), radius * (pin - other))
    return b.build()


PARALLEL: dict[str, Callable[[], Robot]] = {
    "two cranks": lambda: cranks(2),
    "three cranks": lambda: cranks(3),
    "four cranks": lambda: cranks(4),
    "spherical four-bar": lambda: spherical(0.02),
    "Sarrus": lambda: sarrus(0.237, 0.311, 0.123, 0.0, 2.0943951),
    "square Sarrus": lambda: sarrus(0.25, 0.25, 0.1, 0.0, QUARTER),
    "Sarrus of three legs": lambda: sarrus(0.237, 0.311, 0.123, 0.1, 2.2, -1.9),
}


@pytest.mark.parametrize("name", PARALLEL)
def test_mechanisms_with_more_rows_than_they_need_move(name: str, tmp_path: Path) -> None:
    """Also where rounding makes cranks and legs unequal: with their numbers as they are, they could not."""
    exact = PARALLEL[name]()
    assert exact.nv == 1
    text = saved(exact, tmp_path)
    for root, digits in (
        (turned(text), decimals(7)),
        (ET.fromstring(text), decimals(4)),
        (turned(text), decimals(3)),
        (turned(text), significant(4)),
    ):
        assert loaded(rounded(root, digits, digits), tmp_path).nv == 1, f"1/3 as {digits(1 / 3)}"


@pytest.mark.parametrize("rounding", [1e-7, 1e-8, 1e-9])
def test_axes_that_are_parallel_but_for_their_last_digits_are_parallel(rounding: float) -> None:
    """The loop closes exactly where it is drawn; with its axes as they are, it could not go anywhere else."""
    b, rng = RobotBuilder("five_bar"), np.random.default_rng(0)
    for name in ("left", "left_rod", "right", "right_rod"):
        b.body(name, 1.0, (0.01, 0.02, 0.05), (0.01, 0.012, 0.011))

    def hinge() -> Revolute:
        return Revolute(axis=np.array([0.0, 1.0, 0.0]) + rounding * rng.uniform(-1, 1, 3))

    b.joint("a", hinge(), "ground", "left")
    b.joint("b", hinge(), "left", "left_rod", (-0.08, 0, 0.18))
    b.joint("e", hinge(), "ground", "right", (0.25, 0, 0))
    b.joint("d", hinge(), "right", "right_rod", (0.12, 0, 0.15))
    b.loop("c", hinge(), "left_rod", "right_rod", (0.22, 0, 0.25), (-0.23, 0, 0.28))
    robot = b.build(precision=rounding)
    assert robot.nv == 2 and len(robot.warnings) == 1
    q = robot.random_state(0)[0]
    robot.check_closed(q)
    assert np.abs(q - robot.neutral()).max() > 0.1


def test_axes_that_are_inclined_are_not_rounded(tmp_path: Path) -> None:
    """A four-bar whose pin is inclined by a degree cannot move, which four digits can say."""
    text = saved(robots.load("four_bar"), tmp_path)
    root = ET.fromstring(text)
    axis = root.find("loop/axis")
    assert axis is not None
    axis.set("xyz", " ".join(map(all_digits, about_x(np.pi / 180) @ about_z(np.pi / 180) @ numbers(axis, "xyz"))))
    with pytest.raises(ModelError, match=r"cannot (move|close)|is singular wherever"):
        loaded(rounded(root, decimals(4), decimals(4)), tmp_path)


SPATIAL = [name for name in ROBOTS if "tree" not in name]


@pytest.mark.parametrize("name", sweep(SPATIAL, SPATIAL[::4]))
def test_loops_of_every_kind_keep_their_freedoms(name: str, tmp_path: Path) -> None:
    """Few of these have rows that follow from others, and none may be lost."""
    exact = sample(name).robot
    try:
        text = saved(exact, tmp_path)
    except ModelError:
        pytest.skip("no file can hold it")
    for count in (7, 5, 4):
        found = loaded(rounded(ET.fromstring(text), decimals(count), decimals(count)), tmp_path)
        assert found.nv == exact.nv, f"{count} digits"


# What a file's digits say


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ('<origin xyz="0.25 0 1" rpy="0 0 0"/>', 5e-4),
        ('<origin xyz="0.12345 0 1" rpy="0 0 0"/>', 5e-6),
        ('<origin xyz="0 0 1" rpy="0 0 0"/>', 0.0),
        ('<origin xyz="0.1234567890123456 0.5 0"/>', 0.0),
        (f'<origin xyz="0 0 1" rpy="0 0 {QUARTER!r}"/>', 0.0),
        ('<origin xyz="0 0 1" rpy="1.5708 0 0"/>', 5e-5),
        ('<origin xyz="0 0 1" rpy="1.57075 0 0"/>', QUARTER - 1.57075),
        ('<origin xyz="0 0 1" rpy="1.571 0 0"/>', 5e-4),
        ('<origin xyz="1.5e-3 0 1"/>', 5e-5),
        ('<origin xyz="1e-3 0 1"/>', 5e-4),
        ('<origin xyz="0.1234 1.235e-5 1"/>', 5e-5),
        ('<origin xyz="1.2346e-1 -1.0000e+00 3.1416e-2"/>', 5e-6),
        ('<origin xyz="0.1234 6.123233995736766e-17 1" rpy="-2.220446049250313e-16 0 1.5708"/>', 5e-5),
        ('<origin xyz="2.000000 0 0.100000"/>', 5e-7),
        ('<axis xyz="0.7071 0 0.7071"/>', 5e-5),
        ('<mass value="1.5"/>', 0.0),
        ('<origin xyz="nan x 1e999999 0.1e99999999999"/>', 0.0),
    ],
)
def test_the_precision_of_a_file_is_read_off_its_digits(text: str, precision: float) -> None:
    assert precision_of(parse(f"<r>{text}</r>".encode(), Path("r"))) == pytest.approx(precision, rel=1e-9)
