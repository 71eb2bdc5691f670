"""Sub-mechanisms: they assemble with the user's dimensions, and their closed forms are those of their loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import coupler
from common.sub_mechanisms import ACTUATORS, CRANKS, EXAMPLES, RODS, TIPS
from coupler.mechanisms import (
    Bars,
    PosedBuilder,
    delta,
    hexagon,
    pantograph,
    planar_rrr,
    rrpr,
    rus_platform,
    slider_crank,
    spherical_rrr,
    spu_platform,
    stewart,
    wrist,
)
from coupler.model import ModelError, Prismatic, Revolute, Robot, RobotBuilder
from effort import sweep

# What it is called, how many freedoms and joint velocities it has, and how far it moves each way.
FACTS: dict[str, tuple[str, int, int, float]] = {
    "slider_crank": ("slider-crank", 1, 3, 3.0),
    "rrpr": ("RRPR", 1, 3, 1.0),
    "planar_rrr": ("3-RRR", 3, 9, 0.05),
    "2-SPU+1U": ("2-SPU+1U", 2, 8, 0.5),
    "2-SPRR+1U": ("2-SPRR+1U", 2, 8, 0.5),
    "rus_platform": ("2-RUS+1U", 2, 8, 0.3),
    "wrist": ("2-SU[RRPR]+1U", 2, 12, 0.3),
    "stewart": ("6-UPS", 6, 24, 0.15),
    "delta": ("3-RUS", 3, 12, 0.08),
    "spherical_rrr": ("3-spherical RRR", 3, 9, 0.2),
}


@cache
def made(name: str) -> Robot:
    return EXAMPLES[name]()


@pytest.mark.parametrize("name", FACTS)
def test_closed_forms_agree_with_newtons_method(name: str) -> None:
    called, freedoms, joints, span = FACTS[name]
    robot, numerical = made(name), EXAMPLES[name](closure="numerical")
    assert {form.name for form in robot.closed_forms.values()} == {called}
    assert robot.nv == numerical.nv == freedoms and robot.tree.nv == joints and not numerical.closed_forms
    rng = np.random.default_rng(0)
    samples = robot.integrate(robot.neutral(), rng.uniform(-span, span, (40, freedoms)))
    v, a = rng.normal(size=(2, 40, freedoms))
    positions = robot.joint_positions(samples)
    # Newton's method, which starts from the neutral pose and follows the platform, ends where the closed form does.
    held = {joint: positions[joint] for joint in robot.independent_joints}
    followed = numerical.joint_positions(numerical.pack_q(held))
    for joint, position in positions.items():
        assert np.allclose(followed[joint], position, rtol=0, atol=1e-12), joint
    p = numerical.pack_q(positions)
    assert np.abs(numerical.states.closure.at(numerical.embedding.positions(p))[0]).max() < 1e-13
    mine, theirs = coupler.inverse_dynamics(robot, samples, v, a), coupler.inverse_dynamics(numerical, p, v, a)
    assert np.allclose(mine, theirs, rtol=1e-10, atol=1e-11 * np.abs(theirs).max())
    assert np.allclose(coupler.forward_dynamics(robot, samples, v, mine), a, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", FACTS)
def test_velocities_are_the_rates_of_positions(name: str) -> None:
    *_, span = FACTS[name]
    robot, rng, h = made(name), np.random.default_rng(1), 1e-6
    q, v = robot.integrate(robot.neutral(), rng.uniform(-0.5 * span, 0.5 * span, robot.nv)), rng.normal(size=robot.nv)
    ahead, behind = (robot.joint_positions(robot.integrate(q, v, dt)) for dt in (h, -h))
    for joint, rate in robot.joint_velocities(q, v).items():
        if joint not in robot.independent_joints:
            assert (ahead[joint] - behind[joint]) / (2 * h) == pytest.approx(rate, rel=1e-6, abs=1e-6)


def test_a_slider_crank_is_where_trigonometry_puts_it() -> None:
    robot, angles = slider_crank(0.1, 0.3, 0.02), np.linspace(-7.0, 7.0, 50)
    slides = robot.joint_positions(angles[:, None])["slider"]
    x = 0.1 * np.cos(angles) + np.sqrt(0.09 - (0.02 - 0.1 * np.sin(angles)) ** 2)
    start = 0.1 * np.cos(np.pi / 3) + np.sqrt(0.09 - (0.02 - 0.1 * np.sin(np.pi / 3)) ** 2)
    assert np.allclose(slides, x - start, atol=1e-14)


def test_the_length_of_an_actuator_is_its_position() -> None:
    robot, angles = rrpr(0.2, (0.1, -0.3), 0.3), np.linspace(-1.5, 1.5, 31)
    pin = 0.2 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    assert np.allclose(robot.joint_positions(angles[:, None])["piston"], np.linalg.norm(pin - [0.1, -0.3], axis=-1))
    platform, turned = stewart(hexagon(0.3, 0.3), hexagon(0.2, 1.7), 0.4), np.array([0.01, -0.02, 0.43, 0, 0, 0, 0])
    turned[3:] = [np.cos(0.1), 0.0, 0.0, np.sin(0.1)]  # by 0.2 rad about z
    c, s = np.cos(0.2), np.sin(0.2)
    points = hexagon(0.2, 1.7) @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + turned[:3]
    lengths = np.linalg.norm(points - hexagon(0.3, 0.3), axis=1)
    given = platform.joint_positions(turned)
    assert np.allclose([given[f"piston_{i}"] for i in range(1, 7)], lengths, atol=1e-14)


def test_a_pantograph_keeps_its_crank_parallel_to_the_shank() -> None:
    robot = pantograph(0.3, 0.1, 0.35)
    q = np.array([0.4, -0.9])
    assert robot.joint_positions(q)["shank"] == pytest.approx(-1.3)
    foot, knee = coupler.frame_pose(robot, q, "foot")[:3, 3], coupler.frame_pose(robot, q, "shank")[:3, 3]
    assert np.linalg.norm(foot - knee) == pytest.approx(0.35) and np.linalg.norm(knee) == pytest.approx(0.3)


def test_mechanisms_are_parts_of_robots() -> None:
    b = RobotBuilder("two")
    b.body("torso", 10.0, inertia=(0.1, 0.1, 0.1))
    b.joint("hips", Revolute(axis=(0, 0, 1)), "ground", "torso", (0, 0, 1))
    for side, y in (("left", 0.2), ("right", -0.2)):
        b.attach(rus_platform(CRANKS, TIPS, RODS), prefix=f"{side}/", to="torso", at=(0, y, -0.6))
    robot = b.build()
    assert robot.nq == robot.nv == 5 and len(robot.closed_forms) == 4
    numerical = robot.with_closure({"left/left_ball": "numerical"})
    assert numerical.nq == 11 and numerical.nv == 5
    q, v = robot.neutral() + 0.1, np.ones(5)
    p = numerical.pack_q(robot.joint_positions(q))
    assert np.allclose(coupler.bias_force(robot, q, v), coupler.bias_force(numerical, p, v), rtol=1e-11)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: slider_crank(0.1, 0.05), "slider_crank: the rod is too short: it has to bridge 0.0866 m"),
        (lambda: slider_crank(-0.1, 0.05), "slider_crank: crank must be longer than 0 m, got -0.1"),
        (lambda: slider_crank(np.nan, 0.05), "slider_crank: crank"),
        (lambda: rrpr(0.2, (0, 0)), "rrpr: the actuator's foot is on the hinge"),
        (lambda: rrpr(0.2, (0.2, 0)), "rrpr: the actuator has zero length in the assembled pose"),
        (lambda: planar_rrr(0.5, 0.1, 0.1, 0.1), "arm 1 cannot be assembled: it reaches from 0 to 0.2 m.*0.4 m apart"),
        (lambda: planar_rrr(0.5, 0.1, 0.3, 0.3, elbows=(1, 2, 1)), "planar_rrr: elbows must be 1 or -1 each"),
        (lambda: stewart(hexagon(0.3, 0.3)[:5], hexagon(0.2, 1.7), 0.4), "stewart: base must be 6 × 3 finite numbers"),
        (lambda: delta(0.2, 0.05, 0.2, 0.3), "delta: forearms of 0.3 m do not reach"),
        (lambda: spherical_rrr(upper=0.2, lower=0.2), "spherical_rrr: arm 1 cannot be assembled"),
        (lambda: wrist(ACTUATORS, [[0.05, 0.0, 0.31]] * 2, CRANKS, TIPS, RODS), "the left actuator does not lie in"),
        (lambda: rus_platform(CRANKS, CRANKS, RODS), "rus_platform: left: crank must be longer than 0 m"),
        (lambda: pantograph(0.3, 0.1, 0.3, spread=0.0), "pantograph: the parallelogram is flat"),
        (lambda: Bars(radius=-1.0), "bars: their radius"),
        (lambda: hexagon(0.3, np.nan), "hexagon: gap must be a finite number"),
        (lambda: spherical_rrr(upper=np.inf), "spherical_rrr: upper must be a finite number"),
        (lambda: spu_platform([[0.1, 0, -0.3]] * 2, np.zeros((2, 3))), "the left ball is at the platform's joint"),
        (lambda: spherical_rrr(*[np.pi / 2] * 4), "arm 1 has its shoulder in line with the platform"),
    ],
)
def test_dimensions_that_cannot_be_are_refused(make: Callable[[], Robot], told: str) -> None:
    with pytest.raises(ModelError, match=told):
        make()


def test_a_pose_is_described_by_points_in_the_world() -> None:
    b = PosedBuilder("lever")
    b.link("lever", Revolute(axis=(0, 1, 0)), "ground", (0, 0, 0), bars=[((0, 0, 0), (0.3, 0, 0))], position=[0.7])
    with pytest.raises(
        ModelError, match=r"link 'piston': there is no body 'cylinder' yet; there are 'ground', 'lever'"
    ):
        b.link("piston", Prismatic(axis=(1, 0, 2)), "cylinder", (0.2, 0, 0))
    with pytest.raises(ModelError, match="link 'bar': both ends of a bar are at"):
        b.link("bar", Revolute(), "ground", (0, 0, 0), bars=[((0, 0, 1), (0, 0, 1))])
    b.link("cylinder", Revolute(axis=(0, 1, 0)), "ground", (0.1, 0, -0.2))
    b.link("piston", Prismatic(axis=(1, 0, 2)), "cylinder", (0.2, 0, 0), weighs=(0.2, (0.2, 0, 0), (1e-4,) * 3))
    b.close("pin", Revolute(axis=(0, 1, 0)), "piston", "lever", (0.2, 0, 0))
    robot = b.build()
    assert robot.joint_positions(robot.neutral())["lever"] == pytest.approx(0.7)
    mass = 2700 * np.pi * 1e-4 * 0.3
    assert robot.bodies["lever"].mass == pytest.approx(mass) and robot.bodies["cylinder"].mass == 0.0
    assert robot.bodies["lever"].inertia[1, 1] == pytest.approx(mass * (0.09 / 12 + 1e-4 / 4))


def test_a_pose_out_of_the_workspace_offers_the_last_one_within() -> None:
    robot = delta(0.2, 0.05, 0.2, 0.45)
    with pytest.raises(
        ModelError, match=r"'shoulder_1'.* cannot reach .* they reach up to x (0\.\d+), y 0, z -"
    ) as caught:
        robot.pack_q({"x": 2.0, "y": 0.0, "z": robot.neutral()[2]})
    x = float(str(caught.value).split("up to x ")[1].split(",")[0])
    robot.pack_q({"x": x - 1e-3, "y": 0.0, "z": robot.neutral()[2]})
    with pytest.raises(ModelError, match="cannot reach"):
        robot.pack_q({"x": x + 1e-3, "y": 0.0, "z": robot.neutral()[2]})


def test_a_run_that_leaves_the_workspace_says_so() -> None:
    robot = slider_crank(0.3, 0.2, angle=0.3).with_gravity((0, 0, 0))
    simulation = coupler.Simulation(robot, 1e-3, v=[2.0])
    with pytest.raises(ModelError, match=r"'pin' comes to a dead point, where the workspace.*closure\(\"numerical\"\)"):
        simulation.run(1.0)
    simulation.reset(v=[1000.0])
    with pytest.raises(ModelError, match=r"'slider', 'rod' cannot reach.*end of its workspace.*closure=\"numerical\""):
        simulation.run(1.0)


def test_a_platform_that_legs_hold_does_not_fall() -> None:
    simulation = coupler.Simulation(made("stewart"))  # and nothing warns that it could touch nothing
    assert simulation.q[2] == pytest.approx(0.4)


FROM_FILES = {"urdf": {*FACTS}, "sdf": {*FACTS} - {"planar_rrr"}, "xml": {*FACTS}}
CASES = [(name, end) for end, names in FROM_FILES.items() for name in FACTS if name in names]


@pytest.mark.filterwarnings("ignore:.*not in MJCF")
@pytest.mark.parametrize(
    ("name", "end"),
    sweep(
        CASES, [("rrpr", "xml"), ("2-SPU+1U", "xml"), ("stewart", "xml"), ("spherical_rrr", "xml"), ("wrist", "sdf")]
    ),
)
def test_mechanisms_are_recognised_in_files(name: str, end: str, tmp_path: Path) -> None:
    """Even where motors drive what follows from other joints: MJCF has no word for which are independent."""
    path = made(name).save(tmp_path / f"robot.{end}")
    robot, numerical = (coupler.load(path, closure=closure) for closure in ("analytical", "numerical"))
    assert {form.name for form in robot.closed_forms.values()} == {FACTS[name][0]}
    assert robot.actuator_names == numerical.actuator_names
    rng = np.random.default_rng(0)
    q, v = robot.integrate(robot.neutral(), rng.uniform(-0.02, 0.02, robot.nv)), rng.normal(size=robot.nv)
    other = numerical.pack_q(robot.joint_positions(q))
    rates = robot.joint_velocities(q, v)
    theirs = numerical.pack_v({joint: rates[joint] for joint in numerical.independent_joints})
    forces = rng.normal(size=len(robot.actuators))
    a = coupler.forward_dynamics(robot, q, v, motors=forces)
    b = coupler.forward_dynamics(numerical, other, theirs, motors=forces)
    ours = coupler.actuator_accelerations(robot, q, v, a)
    np.testing.assert_allclose(coupler.actuator_accelerations(numerical, other, theirs, b), ours, rtol=1e-8, atol=1e-8)
    again = robot.with_closure("numerical")
    assert again.independent_joints == robot.independent_joints
    assert numerical.with_closure("analytical").independent_joints == numerical.independent_joints
    found = coupler.load(path)
    if found.independent_joints != robot.independent_joints:  # motors made others independent
        told = f"instead, and closes it as {FACTS[name][0]}"
        assert any(told in remark for remark in found.remarks)


@pytest.mark.parametrize("turned", [0.0, 0.4])
def test_legs_that_do_not_hold_their_platform_are_told(turned: float) -> None:
    """Between plates of the same shape, whatever their sizes: a Stewart platform that is singular everywhere."""
    gap = np.pi / 3 if turned else 0.3
    with pytest.warns(coupler.ModelWarning, match="'piston_6' do not hold their mechanism.* 1 freedom of 'platform'"):
        robot = stewart(hexagon(0.3, gap), hexagon(0.2, gap, turned), height=0.4)
    rng = np.random.default_rng(1)
    for _ in range(5):
        q = robot.integrate(robot.neutral(), rng.uniform(-0.2, 0.2, 6))
        assert np.linalg.cond(coupler.actuator_jacobian(robot, q)) > 1e12
