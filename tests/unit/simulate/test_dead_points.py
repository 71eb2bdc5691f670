"""Loops pass dead points, on the branch that they are on, whichever joints a user calls independent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Robot, RobotBuilder, Simulation
from coupler.model import ModelError, Prismatic, Revolute, Spherical, Universal
from coupler.simulate.motion import integrate_motion
from effort import every, sweep

Y = (0.0, 1.0, 0.0)


def bars(b: RobotBuilder, **lengths: float) -> None:
    """Slender bars along x, 1 kg each."""
    for name, length in lengths.items():
        b.body(name, 1.0, (length / 2, 0.0, 0.0), (1e-4, length**2 / 12, length**2 / 12))


def four_bar(independent: str, crank: float = 0.3, coupler: float = 0.8, rocker: float = 0.7) -> Robot:
    b = RobotBuilder("four-bar")
    bars(b, crank=crank, coupler=coupler, rocker=rocker)
    b.joint("A", Revolute(axis=Y), "ground", "crank", independent=independent == "A")
    b.joint("B", Revolute(axis=Y), "crank", "coupler", at=(crank, 0, 0), independent=independent == "B")
    b.joint("D", Revolute(axis=Y), "ground", "rocker", at=(0.9, 0, 0), independent=independent == "D")
    b.loop("C", Revolute(axis=Y), "coupler", "rocker", at=(coupler, 0, 0), meets=(rocker, 0, 0))
    return b.build()


def parallelogram(independent: str) -> Robot:
    return four_bar(independent, 0.5, 0.9, 0.5)


def slider_crank(independent: str) -> Robot:
    b = RobotBuilder("slider-crank")
    bars(b, crank=0.3, rod=0.8)
    b.body("slide", 1.0, inertia=(1e-3, 1e-3, 1e-3))
    b.joint("A", Revolute(axis=Y), "ground", "crank", independent=independent == "A")
    b.joint("B", Revolute(axis=Y), "crank", "rod", at=(0.3, 0, 0), independent=independent == "B")
    b.joint("S", Prismatic(axis=(1, 0, 0)), "ground", "slide", independent=independent == "S")
    b.loop("C", Revolute(axis=Y), "rod", "slide", at=(0.8, 0, 0))
    return b.build()


def five_bar(independent: str) -> Robot:
    b = RobotBuilder("five-bar")
    bars(b, one=0.5, two=0.6, three=0.6, four=0.5)
    b.joint("A", Revolute(axis=Y), "ground", "one", independent="A" in independent)
    b.joint("B", Revolute(axis=Y), "one", "two", at=(0.5, 0, 0), independent="B" in independent)
    b.joint("D", Revolute(axis=Y), "ground", "four", at=(0.4, 0, 0), independent="D" in independent)
    b.joint("E", Revolute(axis=Y), "four", "three", at=(0.5, 0, 0), independent="E" in independent)
    b.loop("C", Revolute(axis=Y), "two", "three", at=(0.6, 0, 0), meets=(0.6, 0, 0))
    return b.build()


def six_bar(independent: str) -> Robot:
    """Watt's: a four-bar whose coupler carries another loop."""
    b = RobotBuilder("six-bar")
    bars(b, crank=0.3, coupler=0.8, rocker=0.7, arm=0.5, link=0.6)
    b.joint("A", Revolute(axis=Y), "ground", "crank", independent=independent == "A")
    b.joint("B", Revolute(axis=Y), "crank", "coupler", at=(0.3, 0, 0), independent=independent == "B")
    b.joint("D", Revolute(axis=Y), "ground", "rocker", at=(0.9, 0, 0), independent=independent == "D")
    b.joint("E", Revolute(axis=Y), "coupler", "arm", at=(0.4, 0, 0.1), independent=independent == "E")
    b.joint("F", Revolute(axis=Y), "rocker", "link", at=(0.4, 0, 0.1), independent=independent == "F")
    b.loop("C", Revolute(axis=Y), "coupler", "rocker", at=(0.8, 0, 0), meets=(0.7, 0, 0))
    b.loop("G", Revolute(axis=Y), "arm", "link", at=(0.5, 0, 0), meets=(0.6, 0, 0))
    return b.build()


def stewart(independent: str, stiffness: float = 0.0) -> Robot:
    """A plate on six legs: universal joints below, spherical ones above, and slides, which may be springs."""
    b, legs = RobotBuilder("stewart", (1.0, 0.5, -9.81)), range(6)
    b.body("plate", 2.0, inertia=(0.05, 0.05, 0.1))
    base = [np.array([np.cos(x), np.sin(x), 0.0]) * 0.6 for x in np.radians([-10, 10, 110, 130, 230, 250])]
    top = [np.array([np.cos(x), np.sin(x), 0.0]) * 0.4 for x in np.radians([-50, 50, 70, 170, 190, 290])]
    middle = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
    previous = "ground"
    for name, axis in middle.items():  # the plate's place, then its turn
        body = f"carrier {name}"
        b.body(body, 0.01, inertia=(1e-5, 1e-5, 1e-5))
        at = (0.0, 0.0, 0.8) if name == "x" else (0.0, 0.0, 0.0)
        b.joint(f"slide {name}", Prismatic(axis=axis), previous, body, at=at, independent=independent == "plate")
        previous = body
    b.joint("ball", Spherical(), previous, "plate", independent=independent == "plate")
    for i in legs:
        way = top[i] + (0.0, 0.0, 0.8) - base[i]
        length, along = np.linalg.norm(way), way / np.linalg.norm(way)
        side = np.cross((0.0, 0.0, 1.0), along)
        side /= np.linalg.norm(side)
        turned = np.column_stack([np.cross(side, along), side, along])
        b.body(f"lower {i}", 0.3, (0, 0, 0.2), (4e-3, 4e-3, 1e-4))
        b.body(f"upper {i}", 0.2, (0, 0, -0.2), (3e-3, 3e-3, 1e-4))
        turns, slides = independent == "feet" and i % 2 == 0, independent == "legs"
        b.joint(f"foot {i}", Universal(), "ground", f"lower {i}", at=base[i], turned=turned, independent=turns)
        leg = Prismatic(stiffness=stiffness)
        b.joint(f"leg {i}", leg, f"lower {i}", f"upper {i}", at=(0, 0, length), independent=slides)
        b.loop(f"top {i}", Spherical(), f"upper {i}", "plate", meets=top[i])
    return b.build()


def sprung_stewart(independent: str) -> Robot:
    """Of which the plate falls through the plane of its feet, tumbles below, and passes singular poses all the time."""
    return stewart(independent, stiffness=100.0)


MECHANISMS: dict[str, tuple[Callable[[str], Robot], list[str], dict[str, Any]]] = {
    "crank-rocker": (four_bar, ["A", "B", "D"], {"A": 2.0}),
    "slider-crank": (slider_crank, ["A", "B", "S"], {"A": 1.2}),
    "parallelogram": (parallelogram, ["A", "D"], {"A": 0.3, "B": -0.3, "D": 0.3}),
    "five-bar": (five_bar, ["AD", "AB", "DE", "BE"], {"A": -0.5, "D": -1.0}),
    "six-bar": (six_bar, ["A", "D", "E"], {"A": 2.0}),
    "Stewart": (sprung_stewart, ["legs", "plate", "feet"], {}),
}


def energy(simulation: Simulation) -> float:
    kinetic = simulation._engine.kinetic_energy(simulation._state)
    return float(kinetic + coupler.potential_energy(simulation.robot, simulation.q))


def moved(robot: Robot, pose: dict[str, Any], duration: float, step: float) -> tuple[dict[str, np.ndarray], float]:
    """All joint positions after a passive motion from rest, and by how much energy changed, as a part of its range."""
    simulation = Simulation(robot, step, q=robot.close(robot.pack_q(pose)))
    energies, potential = [], []
    for k in range(round(duration / step)):
        if k % 10 == 0:
            energies.append(energy(simulation))
            potential.append(float(coupler.potential_energy(robot, simulation.q)))
        simulation.step()
    robot.check_closed(simulation.q)
    return robot.joint_positions(simulation.q), float(np.ptp(energies) / np.ptp(potential))


@pytest.mark.parametrize(
    ("duration", "step", "lost"), sweep([(2.0, 1e-3, 1e-2), (10.0, 1e-4, 1e-4)], [(2.0, 1e-3, 1e-2)])
)
@pytest.mark.parametrize("name", sweep(MECHANISMS, list(MECHANISMS)[:5]))
def test_every_choice_of_independent_joints_gives_the_same_motion(
    name: str, duration: float, step: float, lost: float
) -> None:
    make, choices, pose = MECHANISMS[name]
    first = make(choices[0])
    start = first.joint_positions(first.pack_q(pose))
    ends = []
    for choice in choices:
        end, change = moved(make(choice), start, duration, step)
        assert change < lost
        ends.append(np.hstack([end[joint] for joint in sorted(end)]))
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], rtol=0, atol=1e-6)


def test_a_crank_moves_as_a_method_of_high_order_says() -> None:
    """Which the crank is a good coordinate for; the rocker stands still at two of its angles."""
    crank, rocker = four_bar("A"), four_bar("D")
    q, v = crank.pack_q({"A": 2.0}), crank.pack_v({"A": 8.0})
    exact = integrate_motion(crank, q, v, 1.0, tolerance=1e-11).q[-1]
    w = {joint: float(x) for joint, x in crank.joint_velocities(q, v).items()}
    for robot in (crank, rocker):
        errors = []
        for step in (2e-3, 1e-3, 5e-4):
            simulation = Simulation(
                robot, step, q=robot.close(robot.pack_q(crank.joint_positions(q))), v=robot.pack_v(w)
            )
            simulation.run(1.0)
            found = [robot.joint_positions(simulation.q)[joint] for joint in "ABD"]
            errors.append(np.abs(np.array(found) - [crank.joint_positions(exact)[joint] for joint in "ABD"]).max())
        assert errors[-1] < 1e-4
        assert 3.0 < errors[0] / errors[1] < 5.0  # of second order
        assert 3.0 < errors[1] / errors[2] < 5.0


def crank_angle(angle: float, duration: float) -> float:
    """The crank of `slider_crank` after it has swung from rest, by Lagrange's equation for its angle alone.

    A bar of 1 kg has m l²/12 about its centre. Joint B, between crank and rod, is 0.3 (cos θ, −sin θ) from joint A.
    """

    def energies(angle: Any) -> tuple[Any, Any]:
        lean = np.arcsin(3 / 8 * np.sin(angle))  # of the rod
        leaning = 3 / 8 * np.cos(angle) / np.cos(lean)
        slides, rises = -0.3 * np.sin(angle) - 0.8 * np.sin(lean) * leaning, -0.3 * np.cos(angle)
        rod = ((slides - 0.3 * np.sin(angle)) ** 2 + rises**2) / 4 + 0.8**2 / 12 * leaning**2
        return 0.3**2 / 3 + rod + slides**2, -9.81 * 0.3 * np.sin(angle)

    def rates(x: np.ndarray) -> np.ndarray:
        inertia, rise = (np.imag(energy) / 1e-30 for energy in energies(x[0] + 1e-30j))
        return np.array([x[1], -(0.5 * inertia * x[1] ** 2 + rise) / energies(x[0])[0]])

    x, h = np.array([angle, 0.0]), duration / 2000
    for _ in range(2000):
        one = rates(x)
        two = rates(x + h / 2 * one)
        three = rates(x + h / 2 * two)
        x = x + h / 6 * (one + 2 * two + 2 * three + rates(x + h * three))
    return float(x[0])


@pytest.mark.parametrize("independent", every(3, ["S", "A", "B"]))
def test_a_slider_crank_swings_through_its_dead_points_as_lagrange_says(independent: str) -> None:
    """From a little above the rail to beyond the other dead point, and back."""
    robot, crank, start = slider_crank(independent), slider_crank("A"), -0.3
    q = robot.close(robot.pack_q(crank.joint_positions(crank.pack_q({"A": start}))))
    expected, errors = crank_angle(start, 1.5), []
    for step in (2e-3, 1e-3):
        simulation, most = Simulation(robot, step, q=q), start
        for _ in range(round(1.5 / step)):
            simulation.step()
            most = max(most, float(robot.joint_positions(simulation.q)["A"]))
        assert most > np.pi
        errors.append(abs(float(robot.joint_positions(simulation.q)["A"]) - expected))
    assert errors[1] < 1e-4
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.5)


@pytest.mark.parametrize("independent", ["A", "B", "D"])
@pytest.mark.parametrize("speed", every(3, [7.3, 9.7, 13.7, 20.0]))
def test_a_parallelogram_stays_one_through_its_flat_poses(independent: str, speed: float) -> None:
    robot = parallelogram(independent)
    q = robot.pack_q({"A": 1.0, "B": -1.0, "D": 1.0})
    v = robot.pack_v({independent: -speed if independent == "B" else speed})
    simulation = Simulation(robot, q=q, v=v)
    before, flat = energy(simulation), 0
    for _ in range(2000):
        sign = np.sin(robot.joint_positions(simulation.q)["A"])
        simulation.step()
        angles = robot.joint_positions(simulation.q)
        flat += int(np.sin(angles["A"]) * sign < 0.0)
        assert np.abs(np.sin(angles["A"] - angles["D"])) < 1e-9
    assert flat > 2
    assert energy(simulation) == pytest.approx(before, abs=1e-3)


def test_a_motor_drives_a_loop_through_the_dead_point_of_its_own_joint() -> None:
    """The rocker's motor does work on the crank wherever it moves, and nothing where it stands still."""
    robot = four_bar("D").with_gravity((0.0, 0.0, 0.0))
    crank = four_bar("A")
    q, v = crank.pack_q({"A": 2.0}), crank.pack_v({"A": 10.0})
    start = crank.joint_positions(q)
    w = {joint: float(x) for joint, x in crank.joint_velocities(q, v).items()}
    simulation = Simulation(robot, 1e-4, q=robot.close(robot.pack_q(start)), v=robot.pack_v(w))
    before, turned = energy(simulation), 0.0
    for _ in range(20000):
        simulation.step([0.5])
    after = robot.joint_positions(simulation.q)
    turned = abs(float(after["A"] - start["A"]))
    assert turned > 4.0 * np.pi
    work = 0.5 * float(after["D"] - start["D"])
    assert energy(simulation) - before == pytest.approx(work, abs=2e-4)


def test_a_state_at_a_dead_point_may_be_at_rest_but_v_cannot_say_how_it_moves() -> None:
    robot = four_bar("D")
    reach = 0.3 + 0.8  # crank and coupler in line: the rocker turns back
    cosine = (0.9**2 + 0.7**2 - reach**2) / (2 * 0.9 * 0.7)
    D = -(np.pi - np.arccos(cosine))
    A = -np.arccos((0.9**2 + reach**2 - 0.7**2) / (2 * 0.9 * reach))
    q = robot.close(robot.pack_q({"A": A, "B": 0.0, "D": D}))
    simulation = Simulation(robot, q=q)
    before = energy(simulation)
    log = simulation.run(0.5)
    assert energy(simulation) == pytest.approx(before, abs=1e-4)
    np.testing.assert_allclose(log.kinetic + log.potential, before, rtol=0, atol=1e-3)  # at the dead point, too
    assert np.abs(robot.joint_positions(simulation.q)["A"] - A) > 0.1
    with pytest.raises(ModelError, match=r"is singular: 'D' does not determine the others; choose '[AB]' as"):
        Simulation(robot, q=q, v=[1.0])


def test_where_loops_have_more_freedoms_than_elsewhere_nothing_decides() -> None:
    robot = parallelogram("A")
    flat = robot.close(robot.pack_q({"A": 0.0, "B": 0.0, "D": 0.0}))
    with pytest.raises(ModelError, match=r"more freedoms"):
        Simulation(robot, q=flat).step()


def test_states_of_a_batch_pass_dead_points_like_one() -> None:
    robot = slider_crank("S")
    starts = np.stack([robot.pack_q({"A": a}) for a in (0.6, 1.0, 1.4)])
    batch = coupler.rollout(robot, starts, np.zeros(1), np.zeros((400, 1)), 2e-3)
    for q, after in zip(starts, batch.q[:, -1], strict=True):
        simulation = Simulation(robot, 2e-3, q=q)
        simulation.run(0.8)
        np.testing.assert_array_equal(simulation.q, after)


@pytest.mark.long
def test_a_plate_on_six_legs_falls_alike() -> None:
    ends, start = [], stewart("legs").joint_positions(stewart("legs").neutral())
    for independent in ("legs", "plate"):
        robot = stewart(independent)
        assert robot.nv == 6
        simulation = Simulation(robot, q=robot.close(robot.pack_q(start)))
        before = energy(simulation)
        simulation.run(0.3)
        assert energy(simulation) == pytest.approx(before, abs=1e-3)
        robot.check_closed(simulation.q)
        ends.append(coupler.frame_pose(robot, simulation.q, "plate"))
    assert np.abs(ends[0][:3, 3] - (0.0, 0.0, 0.8)).max() > 0.1
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1e-6)


# Motion without contact


def integrated(robot: Robot, start: dict[str, np.ndarray], duration: float, **given: float) -> tuple[np.ndarray, float]:
    """All joint positions after a passive motion from rest, and by how much energy changed, as a part of its range."""
    motion = integrate_motion(robot, robot.close(robot.pack_q(start)), np.zeros(robot.nv), duration, **given)  # type: ignore[arg-type]
    potential = coupler.potential_energy(robot, motion.q)
    total = potential + coupler.kinetic_energy(robot, motion.q, motion.v, motion.loop_velocities)
    assert max(errors.max() for errors in robot.loop_errors(motion.q).values()) < 1e-11
    end = robot.joint_positions(motion.q[-1])
    return np.hstack([end[joint] for joint in sorted(end)]), float(np.ptp(total) / np.ptp(potential))


@pytest.mark.parametrize("given", [{"h": 1e-3}, {"tolerance": 1e-10}], ids=["steps", "tolerance"])
@pytest.mark.parametrize("name", every(2, MECHANISMS))
def test_motion_without_contact_passes_dead_points_whichever_joints_are_independent(
    name: str, given: dict[str, float]
) -> None:
    make, choices, pose = MECHANISMS[name]
    first = make(choices[0])
    start = first.joint_positions(first.pack_q(pose))
    ends, changes = zip(*(integrated(make(choice), start, 2.0, **given) for choice in choices), strict=True)
    assert max(changes) < 1e-6
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], rtol=0, atol=1e-7)


@pytest.mark.parametrize("method", ["rk4", "dormand_prince"])
def test_methods_keep_their_order_through_dead_points(method: str) -> None:
    """A rocker that stands still twice a turn of its crank, as its independent joint and with the crank instead."""
    crank, rocker = four_bar("A"), four_bar("D")
    q, v = crank.pack_q({"A": 2.0}), crank.pack_v({"A": 8.0})
    goal = crank.joint_positions(integrate_motion(crank, q, v, 1.0, tolerance=1e-13).q[-1])
    w = {joint: float(x) for joint, x in crank.joint_velocities(q, v).items()}
    start = rocker.close(rocker.pack_q(crank.joint_positions(q)))
    errors, steps = [], (100, 200, 400) if method == "rk4" else (50, 100, 200)
    for n in steps:
        motion = integrate_motion(rocker, start, rocker.pack_v(w), 1.0, 1.0 / n, method=method)
        found = rocker.joint_positions(motion.q[-1])
        errors.append(max(abs(float(found[joint] - goal[joint])) for joint in "ABD"))
    order = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (order > {"rk4": 3.7, "dormand_prince": 4.7}[method]).all()


def test_states_of_a_batch_move_like_one_and_may_rest_at_a_dead_point() -> None:
    robot = four_bar("D")
    reach = 0.3 + 0.8
    D = -(np.pi - np.arccos((0.9**2 + 0.7**2 - reach**2) / (2 * 0.9 * 0.7)))
    A = -np.arccos((0.9**2 + reach**2 - 0.7**2) / (2 * 0.9 * reach))
    dead, other = robot.close(robot.pack_q({"A": A, "B": 0.0, "D": D})), robot.pack_q({"A": 2.0})
    both = integrate_motion(robot, np.stack([dead, other]), [[0.0], [1.0]], 0.3, 1e-3)
    one = integrate_motion(robot, other, [1.0], 0.3, 1e-3)
    np.testing.assert_array_equal(both.q[:, 1], one.q)
    total = coupler.potential_energy(robot, both.q)
    total += coupler.kinetic_energy(robot, both.q, both.v, both.loop_velocities)
    assert np.ptp(total, axis=0).max() < 1e-8
    with pytest.raises(ModelError, match=r"is singular in state 0: 'D' does not determine the others"):
        integrate_motion(robot, np.stack([dead, other]), [[1.0], [1.0]], 0.3, 1e-3)
    with pytest.raises(ModelError, match="tau must be finite; entry 0 is nan"):
        integrate_motion(robot, other, [0.0], 0.1, 1e-3, tau=lambda t, q, v: np.full(1, np.nan))


@pytest.mark.parametrize("integrator", ["midpoint", "euler", "rk4", "trapezoid"])
def test_a_closed_form_stops_before_a_dead_point_instead_of_turning_round(integrator: str) -> None:
    """The rocker is independent; where its crank and coupler are in line, the closed form has one of two branches."""
    numerical = four_bar("D")
    analytical = numerical.with_closure("analytical")
    start = analytical.random_state(1)[0]
    q = numerical.pack_q(analytical.joint_positions(start))
    v = np.array([6.0 / float(numerical.joint_velocities(q, [1.0])["A"])])  # the crank goes round
    passing = Simulation(numerical, q=q, v=v, integrator=integrator)
    stopping = Simulation(analytical, q=start, v=v, integrator=integrator)
    with pytest.raises(ModelError, match=r"'C' comes to a dead point.*with_closure\(\"numerical\"\)"):
        stopping.run(5.0)
    passing.run(stopping.time + 10 * passing.step_size)
    before, after = numerical.joint_positions(q), numerical.joint_positions(passing.q)
    assert np.sin(float(before["B"])) * np.sin(float(after["B"])) < 0.0  # in line between both
    with pytest.raises(ModelError, match="'C' comes to a dead point"):
        integrate_motion(analytical, start, v, 5.0, 1e-3, method="semi_implicit_euler")
    with pytest.raises(ModelError, match="'C' comes to a dead point"):
        coupler.rollout(analytical, start, v, np.zeros((5000, 1)), step=1e-3, integrator=integrator)


def test_a_closed_form_passes_where_the_other_joint_stands_still() -> None:
    """The crank is independent: the rocker turns round by itself, and nothing is dead."""
    robot = four_bar("A").with_closure("analytical")
    simulation = Simulation(robot, v=[20.0])
    simulation.run(1.0)
    assert float(robot.joint_positions(simulation.q)["A"]) > 4 * np.pi
