"""Files round their numbers: joints that hold what is held already, and rings of hinges that could not move."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import coupler
from coupler.io.load import load
from coupler.io.urdf.origins import rotation_of
from coupler.model import ModelError, ModelWarning, Prismatic, Revolute, Robot, RobotBuilder
from coupler.spatial import Transform

SUFFIXES = [".urdf", ".xml", ".sdf"]
AXIS = np.array([0.3123, 0.6261, -0.7147]) / np.linalg.norm([0.3123, 0.6261, -0.7147])
ACROSS = np.cross(AXIS, (0.0, 0.0, 1.0)) / np.linalg.norm(np.cross(AXIS, (0.0, 0.0, 1.0)))
TURN, PLACE = rotation_of(np.array([0.1234567, 0.2345678, 0.3456789])), np.array([0.3141593, 0.2236068, 0.1414214])


def hung(
    joint: Callable[..., Revolute] | Callable[..., Prismatic],
    count: int = 2,
    off: float = 0.0,
    tilt: float = 0.0,
    turn: np.ndarray = TURN,
) -> RobotBuilder:
    """A door on hinges, or a drawer on rails; the last joint is off by some metres, or tilted by some radians."""
    b = RobotBuilder("hung")
    b.body("leaf", 2.0, (0.31, 0.052, 0.41), (0.1, 0.12, 0.11))
    b.joint("first", joint(axis=AXIS), "ground", "leaf", Transform(turn.T, PLACE))
    more = rotation_of(np.array([-0.51234567, 0.41234567, 0.71234567]))
    for i in range(1, count):
        r, wrong = 0.8137263 * i * AXIS, (off, tilt) if i == count - 1 else (0.0, 0.0)
        axis = more.T @ (AXIS + np.tan(wrong[1]) * ACROSS)
        first = Transform((turn @ more).T, PLACE + turn @ (r + wrong[0] * ACROSS))
        b.loop(f"joint{i}", joint(axis=axis), "ground", "leaf", first, Transform(more.T, r))
    return b


def four_bar(*more: str) -> RobotBuilder:
    """A four-bar linkage in an inclined plane, of whose joints some are doubled along their axes."""
    b = RobotBuilder("four_bar")
    turns = {name: rotation_of(np.array(rpy)) for name, rpy in ROLLS.items()}
    for name in ("crank", "rod", "rocker"):
        b.body(name, 1.0, (0.031, 0.052, 0.041), (0.01, 0.012, 0.011))
    turns["ground"] = TURN
    at = {"ground": np.zeros(3), "crank": np.zeros(3), "rod": np.array([0.1034, 0.0213, 0.2517])}
    at["rocker"] = np.array([0.5121, 0.0117, 0.0])

    def place(body: str, point: np.ndarray) -> Transform:
        """A frame at a point of the plane whose y is the axis of all hinges, seen from a body."""
        R = turns["ground"] if body == "ground" else turns[body].T
        where = PLACE + R @ point if body == "ground" else R @ (point - at[body])
        return Transform(R.T, where)

    def joint(name: str, parent: str, child: str) -> None:
        X = place(parent, at[child])
        b.joint(name, hinge(turns[child]), parent, child, Transform(turns[child].T @ X.E, X.r))

    joint("shoulder", "ground", "crank")
    joint("elbow", "crank", "rod")
    joint("pivot", "ground", "rocker")
    pin = np.array([0.6077, 0.0291, 0.3519])
    b.loop("pin", Revolute(axis=(0, 1, 0)), "rod", "rocker", place("rod", pin), place("rocker", pin))
    for name, bodies, point in (
        ("shoulder", ("ground", "crank"), at["crank"]),
        ("pin", ("rod", "rocker"), pin),
    ):
        if name in more:
            beside = point + np.array([0.0, 0.3141593, 0.0])
            b.loop(f"more_{name}", Revolute(axis=(0, 1, 0)), *bodies, *(place(body, beside) for body in bodies))
    return b


ROLLS = {"crank": (0.2718, 0.5772, -0.3010), "rod": (-0.6931, 0.1618, 1.2021), "rocker": (0.9160, -0.4343, 0.2502)}


def hinge(turn: np.ndarray) -> Revolute:
    """A hinge along y of the plane, on a body that is turned."""
    return Revolute(axis=turn.T @ (0.0, 1.0, 0.0))


def ring(angles: list[float], lengths: list[float], twists: list[float], seed: int = 0) -> RobotBuilder:
    """A ring of hinges, by the angles, lengths and twists of Denavit and Hartenberg, with bodies turned at random."""
    rng, b, count = np.random.default_rng(seed), RobotBuilder("ring"), len(angles)

    def turned() -> Transform:
        return Transform(rotation_of(rng.uniform(-1, 1, 3)).T, np.array([0.0, 0.0, rng.uniform(-0.05, 0.05)]))

    start = hinge = Transform(rotation_of(rng.uniform(-1, 1, 3)).T, rng.uniform(-0.4, 0.4, 3))
    hinges = []
    for angle, length, twist in zip(angles, lengths, twists, strict=True):
        hinges.append(hinge)
        along = rotation_of(np.array([0.0, 0.0, angle]))
        link = Transform((along @ rotation_of(np.array([twist, 0.0, 0.0]))).T, along @ (length, 0.0, 0.0))
        hinge = link @ hinge
    np.testing.assert_allclose(hinge.matrix(), start.matrix(), atol=1e-12)
    frames = [Transform.identity(), *(turned() @ hinge for hinge in hinges[:-1])]
    names = ["ground", *(f"link{i}" for i in range(1, count))]
    for name in names[1:]:
        b.body(name, 1.0, rng.uniform(-0.05, 0.05, 3), (0.01, 0.012, 0.011))
    for i in range(count - 1):
        axis = frames[i + 1].E @ hinges[i].E.T[:, 2]
        b.joint(f"hinge{i}", Revolute(axis=axis), names[i], names[i + 1], frames[i + 1] @ frames[i].inverse())
    last = turned() @ hinges[-1]
    axis = last.E @ hinges[-1].E.T[:, 2]
    b.loop("last", Revolute(axis=axis), names[-1], "ground", last @ frames[-1].inverse(), last)
    return b


def bricard(angle: float, seed: int) -> RobotBuilder:
    """Bricard's ring of six hinges, of three planes of symmetry: six rows and five joints, and yet it moves."""
    other = -np.arccos(-np.cos(angle) / (1.0 + np.cos(angle)))
    return ring([angle, other] * 3, [0.2] * 6, [np.pi / 2, -np.pi / 2] * 3, seed)


def bennett(seed: int) -> RobotBuilder:
    """Bennett's ring of four hinges."""
    one, two, angle = 0.7, 1.3, 0.9
    other = 2.0 * np.arctan(np.sin((one + two) / 2) / np.sin((two - one) / 2) / np.tan(angle / 2))
    angles = [angle, other, -angle, -other]
    return ring(angles, [0.2, 0.2 * np.sin(two) / np.sin(one)] * 2, [one, two] * 2, seed)


def rounded(robot: Robot, suffix: str, digits: int, folder: Path) -> Path:
    """The file of a robot, with fewer digits behind the point, and nothing that says so."""
    text = robot.save(folder / f"exact{suffix}").read_text()
    text = re.sub(r' (coupler:)?precision="[^"]*"|\s*<numeric name="coupler_precision"[^>]*>', "", text)
    root = {".urdf": "<robot", ".xml": "<mujoco", ".sdf": "<model"}[suffix]  # what is before it has versions
    head, body = text.split(root, 1)
    path = folder / f"rounded{suffix}"
    path.write_text(head + root + fewer(body, digits))
    return path


def fewer(text: str, digits: int) -> str:
    return re.sub(r"-?\d+\.\d+(e[-+]?\d+)?", lambda number: f"{float(number[0]):.{digits}f}", text)


def loaded(path: Path) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load(path)


HUNG = {"door": (Revolute, 2), "door on three hinges": (Revolute, 3), "drawer": (Prismatic, 2)}


def files_of(name: str) -> list[str]:
    return [suffix for suffix in SUFFIXES if suffix != ".xml" or name != "drawer"]  # MJCF has no loops that slide


@pytest.mark.parametrize("digits", [4, 5, 6, 7])
@pytest.mark.parametrize(("name", "suffix"), [(name, suffix) for name in HUNG for suffix in files_of(name)])
def test_a_door_on_hinges_is_a_door(name: str, suffix: str, digits: int, tmp_path: Path) -> None:
    """All rows of the second hinge are zero but for rounding, so that none of them is real."""
    exact, slack = hung(*HUNG[name]).build(), 100 * 10.0**-digits
    path = rounded(exact, suffix, digits, tmp_path)
    with pytest.warns(ModelWarning, match="rows of '.*' follow from others to") as told:
        found = load(path)
    assert len(told) == 1 and sum("follow from others to" in text for text in found.warnings) == 1
    assert found.nv == 1 and all(loop.name in str(found) for loop in found.loops)
    q, v, a, tau = np.array([0.4]), np.array([0.7]), np.array([0.3]), np.array([0.5])
    assert found.loop_errors(q) == dict.fromkeys((loop.name for loop in found.loops), 0.0)
    np.testing.assert_allclose(coupler.mass_matrix(found, q), coupler.mass_matrix(exact, q), atol=slack)
    np.testing.assert_allclose(
        coupler.forward_dynamics(found, q, v, tau), coupler.forward_dynamics(exact, q, v, tau), atol=slack
    )
    forces, wanted = coupler.joint_forces(found, q, v, a), coupler.joint_forces(exact, q, v, a)
    np.testing.assert_allclose(forces.joints["first"], wanted.joints["first"], atol=slack)
    assert all(not np.any(force) for force in forces.loops.values())


@pytest.mark.parametrize("digits", [3, 5])
@pytest.mark.parametrize("suffix", [".urdf", ".sdf"])
@pytest.mark.parametrize("name", [*HUNG, "four-bar", "Bennett"])
def test_dropped_rows_share_loads(name: str, suffix: str, digits: int, tmp_path: Path) -> None:
    """A rule shares loads, and forces are determinate, as in the exact robot: hinges of a door both carry it."""
    builder = four_bar("pin") if name == "four-bar" else bennett(0) if name == "Bennett" else hung(*HUNG[name])
    exact = builder.build()
    found = loaded(rounded(exact, suffix, digits, tmp_path))
    known, wanted = coupler.determinate_forces(found), coupler.determinate_forces(exact)
    for joint in exact.joint_names:
        np.testing.assert_array_equal(known.joints[joint], wanted.joints[joint])
    v, a = np.array([0.7]), np.array([0.3])
    shared, right = (
        coupler.joint_forces(robot, robot.neutral(), v, a, rule="minimum_norm") for robot in (found, exact)
    )
    scale = max(np.abs(force).max() for force in right.joints.values())
    for joint in exact.joint_names:
        np.testing.assert_allclose(shared.joints[joint], right.joints[joint], atol=30 * 10.0**-digits * scale)
    for loop in exact.loops if suffix == ".urdf" else ():  # in SDFormat, the ground is the first of two bodies
        np.testing.assert_allclose(shared.loops[loop.name], right.loops[loop.name], atol=30 * 10.0**-digits * scale)
    if name == "door":
        share = coupler.Share("leaf", {"first": 0.25, "joint1": 0.75}, along=("fx",))
        ours, theirs = (coupler.joint_forces(r, r.neutral(), v, a, rule=share) for r in (found, exact))
        np.testing.assert_allclose(ours.joints["first"], theirs.joints["first"], atol=30 * 10.0**-digits * scale)


def test_a_rounded_door_swings_and_comes_back(tmp_path: Path) -> None:
    exact = hung(Revolute, 3).build()
    found = loaded(rounded(exact, ".urdf", 5, tmp_path))
    swings = [coupler.Simulation(robot, 1e-3, q=np.zeros(1), v=np.ones(1)) for robot in (exact, found)]
    for _ in range(1000):
        for swing in swings:
            swing.step(np.zeros(1))
    np.testing.assert_allclose(swings[1].q, swings[0].q, atol=1e-4)
    for suffix in SUFFIXES:
        again = loaded(found.save(tmp_path / f"again{suffix}"))
        assert again.nv == 1 and (suffix == ".sdf" or again.precision == found.precision == 5e-6)


@pytest.mark.parametrize("wrong", [(1e-3, 0.0), (0.0, np.pi / 180)], ids=["1 mm", "1 degree"])
@pytest.mark.parametrize(("name", "suffix"), [("door", ".urdf"), ("door", ".xml"), ("drawer", ".urdf")])
def test_a_wrong_hinge_is_refused(name: str, suffix: str, wrong: tuple[float, float], tmp_path: Path) -> None:
    """In SDFormat, both ends of a joint are at one place, which cannot be open."""
    joint, count = HUNG[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        wrongly = hung(joint, count, *wrong).build(precision=0.05)  # so coarse that it can be saved
    for digits in (4, 5, 6):
        with pytest.raises(ModelError, match=r"cannot (close|move)"):
            loaded(rounded(wrongly, suffix, digits, tmp_path))


@pytest.mark.parametrize("digits", [4, 6])
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("more", [("shoulder",), ("shoulder", "pin")], ids=" and ".join)
def test_a_real_loop_is_kept_beside_a_doubled_hinge(
    more: tuple[str, ...], suffix: str, digits: int, tmp_path: Path
) -> None:
    plain, exact, slack = four_bar().build(), four_bar(*more).build(), 100 * 10.0**-digits
    found = loaded(rounded(exact, suffix, digits, tmp_path))
    assert exact.nv == found.nv == 1 and found.independent_joints == exact.independent_joints
    state = np.zeros(1), np.array([0.3]), np.array([0.2])
    wanted = coupler.forward_dynamics(plain, plain.neutral(), *state[1:])
    for robot in (exact, found):
        np.testing.assert_allclose(
            coupler.forward_dynamics(robot, robot.neutral(), *state[1:]), wanted, rtol=slack, atol=slack
        )
        forces = coupler.joint_forces(robot, robot.neutral(), *state[1:])
        assert len(forces.loops) == len(robot.loops) and all(np.isfinite(f).all() for f in forces.joints.values())


RINGS: dict[str, Callable[[], RobotBuilder]] = {
    "Bricard": lambda: bricard(1.2, 0),
    "Bricard, elsewhere": lambda: bricard(0.7, 1),
    "Bricard, elsewhere again": lambda: bricard(0.7, 2),
    "Bennett": lambda: bennett(0),
    "Bennett, elsewhere": lambda: bennett(1),
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", RINGS)
def test_rings_that_hardly_close_move(name: str, suffix: str, tmp_path: Path) -> None:
    """Each of their frames is rounded, and what all of them are off by comes together where they close."""
    exact = RINGS[name]().build()
    assert exact.nv == 1
    for digits in (3, 4, 5):
        found = loaded(rounded(exact, suffix, digits, tmp_path))
        assert found.nv == 1, f"{digits} digits"
        q, v = found.random_state(0)
        found.check(q)
        assert np.isfinite(coupler.forward_dynamics(found, q, v, np.zeros(1))).all()


def test_a_ring_with_a_wrong_link_is_refused(tmp_path: Path) -> None:
    exact = bricard(0.7, 1).build()
    root = rounded(exact, ".urdf", 16, tmp_path).read_text()
    block = re.search(r'<joint name="hinge2".*?</joint>', root, re.DOTALL)
    assert block is not None

    def longer(found: re.Match[str]) -> str:
        x, y, z = map(float, found[1].split())
        return f'xyz="{x + 0.00144} {y + 0.0018} {z + 0.00192}"'

    root = root.replace(block[0], re.sub(r'xyz="([^"]*)"', longer, block[0], count=1))
    for digits in (4, 5, 6):
        (tmp_path / "wrong.urdf").write_text(fewer(root, digits))
        with pytest.raises(ModelError, match=r"cannot (close|move)"):
            loaded(tmp_path / "wrong.urdf")


def test_other_lengths_of_rounded_loops_are_told_to_be_unchecked(tmp_path: Path) -> None:
    """Of an exact robot, a hinge that does not fit is refused; of a rounded one, its rows are gone."""
    exact, place = hung(Revolute).build(), np.array([0.5, 0.5, 0.6])
    moved = exact.with_parameters({"at:joint1": place})
    with pytest.raises(ModelError, match="does not close"):
        coupler.forward_dynamics(moved, exact.neutral(), np.zeros(1), np.zeros(1))
    found = loaded(rounded(exact, ".urdf", 5, tmp_path))
    with pytest.warns(ModelWarning, match=r"dropped.*not checked for other values of 'at:joint1'"):
        found.with_parameters({"at:joint1": place})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.with_parameters({"mass:leaf": 3.0})
