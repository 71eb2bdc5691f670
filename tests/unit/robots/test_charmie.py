"""CHARMIE: the paper's counts and numbers, its equations as an independent check, and each of its misprints."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.mechanisms import Spring
from coupler.model import Body, ModelError, Robot, nearest_inertia
from coupler.robots._legged import inertia_matrix
from coupler.robots.charmie import JOINTS, SPRINGS, WEIGHTS, charmie
from coupler.robots.charmie import zxz_euler as turned
from coupler.studies import charmie_chain as chains
from coupler.studies import charmie_loops as loops
from effort import sweep

EXACT = 1e-12
UNEQUAL: dict[str, Spring | None] = {"4slb": None, "4srb": Spring(900.0, 0.1, 12.0)}
SHIFTED = {"4": -0.03, "5": -0.2, "3": 0.4, "7a": 0.5, "8a": -0.6, "10a": 0.8, "8b": 0.3, "7c": 0.2, "13a1": 0.1}


@cache
def robot() -> Robot:
    return charmie()


@cache
def chain() -> chains.Chain:
    return chains.charmie_chain()


def by_joint(x: np.ndarray) -> dict[str, float]:
    """Numbers of main joints, with the second jaw of each claw a mirror image of the first."""
    own = {joint: float(x[robot().v_slice(joint)][0]) for joint in robot().independent_joints}
    return own | {f"13{side}2": -own[f"13{side}1"] for side in "ab"}


def states(count: int = 3) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(4)
    return [(rng.uniform(-0.1, 0.05, 21), *rng.normal(size=(2, 21))) for _ in range(count)]


def motors(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, float]:
    return dict(zip(robot().actuator_names, coupler.motor_forces(robot(), q, v, a), strict=True))


def test_the_robot_is_the_papers() -> None:
    """[004, §3.1]; auxiliary bodies are those without a row in its tables."""
    own = robot()
    kinds = Counter(part.kind.kind for part in (*own.joints, *own.loops))
    assert kinds == {"revolute": 34, "prismatic": 10, "fixed": 3}
    assert (len(own.bodies), len(own.loops), own.nv, own.nq) == (40, 7, 21, 21)
    main = set(chain().links)
    assert len(main) == 26 and all(own.bodies[body].massless for body in set(own.body_names) - main)
    assert own.mass == pytest.approx(62.4, abs=1e-9)
    driven = [own.joint_names.index(next(iter(motor.gears))) for motor in own.actuators]
    assert Counter(own.joints[i].kind.kind for i in driven) == {"revolute": 16 + 1, "prismatic": 2 + 2}
    assert not own.idle and not own.warnings


def test_actuators_are_as_long_as_the_paper_says() -> None:
    lengths = dict(zip(robot().actuator_names, coupler.actuator_positions(robot(), np.zeros(21)), strict=True))
    assert lengths["4d"] == pytest.approx(0.4, abs=1e-15) and lengths["5d"] == pytest.approx(0.4, abs=1e-15)
    assert {x for name, x in lengths.items() if name not in ("4d", "5d")} == {0.0}
    np.testing.assert_allclose(
        coupler.frame_pose(robot(), np.zeros(21), "5.G")[:3, 3], [0, 0.056, 0.29 + 0.438 + 0.3972], atol=1e-15
    )


def test_poses_are_those_of_the_papers_recursion() -> None:
    """[004, eq. 15 to 19]"""
    for q, _, _ in states():
        poses = coupler.body_poses(robot(), q)
        for body, (R, at) in chain().placed(by_joint(q)).items():
            if body:
                pose = poses[robot().body_names.index(body)]
                np.testing.assert_allclose(pose[:3], np.column_stack([R, at]), rtol=0, atol=EXACT)


def test_indirect_joints_are_those_of_the_papers_geometry() -> None:
    """[004, eq. 5 to 14], and the derivatives of these, for velocities and accelerations."""
    names = robot().actuator_names
    for q, v, a in states(8):
        u, du, ddu = (
            dict(zip(names, x, strict=True))
            for x in (
                coupler.actuator_positions(robot(), q),
                coupler.actuator_velocities(robot(), q, v),
                coupler.actuator_accelerations(robot(), q, v, a),
            )
        )
        d4, theta5 = loops.indirect_joints(u["4d"], u["5d"])
        for joint, sign, actuator, of in (("4", -1.0, "4d", d4), ("5", 1.0, "5d", theta5)):
            found = [by_joint(x)[joint] for x in (q, v, a)]
            rate, bend = of[1], of[2]
            expected = of[0], rate * du[actuator], rate * ddu[actuator] + bend * du[actuator] ** 2
            np.testing.assert_allclose(found, sign * np.array(expected), rtol=0, atol=EXACT)


def test_the_way_back_from_actuators_to_joints() -> None:
    q = robot().pack_q(SHIFTED)
    u = coupler.actuator_positions(robot(), q)
    np.testing.assert_allclose(coupler.configuration_of_actuators(robot(), u), q, rtol=0, atol=1e-9)


def test_the_balancing_mechanism_is_where_the_paper_has_it() -> None:
    """[004, eq. 20, 22 to 27]; the left side is a mirror image."""
    for q4 in (0.0, -0.05, -0.14):
        q = robot().pack_q({"4": q4})
        expected, p = loops.balance(q4), robot().joint_positions(q)
        assert p["4src"] == pytest.approx(expected.B4src[0], abs=EXACT) == -p["4slc"]
        assert p["4srb2"] == pytest.approx(expected.length, abs=EXACT) == p["4slb2"]
        slider = coupler.frame_pose(robot(), q, "4src")[:3, 3]
        spring = coupler.frame_pose(robot(), q, "4srb2")[:3, 3]
        np.testing.assert_allclose(slider[[0, 2]], expected.B4src, rtol=0, atol=EXACT)
        np.testing.assert_allclose(spring[[0, 2]], expected.B4srb, rtol=0, atol=EXACT)


@pytest.mark.parametrize("springs", sweep([{}, {"4slb": None, "5s": None}, UNEQUAL], [UNEQUAL]))
def test_forces_of_actuators_are_those_of_the_papers_recursion(springs: dict[str, Spring | None]) -> None:
    """[004, eq. 28 to 43], with gravity."""
    own, has = charmie(springs=springs), {**SPRINGS, **springs}
    for q, v, a in states():
        loads, lower, upper = loops.forces_of(chain(), by_joint(q), by_joint(v), by_joint(a), has)
        found = dict(zip(own.actuator_names, coupler.motor_forces(own, q, v, a), strict=True))
        assert found["4d"] == pytest.approx(lower.push, rel=EXACT)
        assert found["5d"] == pytest.approx(upper.push, rel=EXACT)
        scale = np.abs(list(found.values())).max()
        for name, link in chain().links.items():
            if name in found and not name.startswith("13"):
                load = (loads.torque if link.JT == "R" else loads.force)[name]
                assert found[name] == pytest.approx(load["xyz".index(link.JO)], abs=EXACT * scale)
        jaws = [loads.torque[f"13a{jaw}"][1] for jaw in (1, 2)]
        assert found["13a1"] == pytest.approx(jaws[0] - jaws[1], abs=EXACT * scale)


def test_reactions_are_those_of_the_papers_recursion() -> None:
    """[004, eq. 33, 34, 36, 40 to 42], where loops leave no choice: the base; levers and joint 5 in their planes."""
    own = robot().with_closure("numerical")
    for q, v, a in states(2):
        loads, _, upper = loops.forces_of(chain(), by_joint(q), by_joint(v), by_joint(a))
        closed = own.pack_q(robot().joint_positions(q))
        found = coupler.joint_forces(own, closed, v, a, actuators=["4d2", "5d2"])
        base = np.concatenate([loads.torque["3"], loads.force["3"]])
        np.testing.assert_allclose(found.joints["3"], base, rtol=0, atol=EXACT * np.abs(base).max())
        np.testing.assert_allclose(found.joints["5"][4:], upper.joint[1:], rtol=0, atol=1e-9)
        expected, lever = loops.balance(by_joint(q)["4"], SPRINGS["4srb"]), float(own.joint_positions(closed)["4sra"])
        turn = np.array([[np.cos(lever), np.sin(lever)], [-np.sin(lever), np.cos(lever)]])  # x and z, to body 3
        np.testing.assert_allclose(turn @ found.joints["4sra"][[3, 5]], expected.axle, rtol=0, atol=1e-9)


def test_the_papers_rule_shares_as_its_equations_do() -> None:
    """[004, eq. 36, 38, 42, 43]: forces and torques on bodies 4 and 5."""
    own = robot().with_closure("numerical")
    for q, v, a in states(2):
        _, lower, upper = loops.forces_of(chain(), by_joint(q), by_joint(v), by_joint(a))
        closed = own.pack_q(robot().joint_positions(q))
        found = coupler.joint_forces(own, closed, v, a, actuators=["4d2", "5d2"], rule=loops.PAPER_RULE)
        np.testing.assert_allclose(found.joints["5"][3:], upper.joint, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.joints["4"][3:5], lower.joint[:2], rtol=0, atol=1e-9)
        pushes = found.actuators["4d2"], found.actuators["5d2"]
        assert pushes == pytest.approx((lower.push, upper.push))
        frame = next(loop for loop in own.loops if loop.name == "5d").successor_frame
        np.testing.assert_allclose((frame.E.T @ found.loops["5d"][:3])[1:], found.joints["5"][1:3], rtol=0, atol=1e-9)
        assert found.joints["4slc"][2] == pytest.approx(found.joints["4src"][2], abs=1e-9)
        assert abs(found.joints["4"][2]) < 1e-9


def test_motions_can_be_given_by_actuators() -> None:
    """The same robot with the lengths of its linear actuators as coordinates: forces are theirs at once."""
    own = charmie(independent="actuators")
    assert {"4d2", "5d2"} < set(own.independent_joints) and own.nv == 21
    q, v, a = states(1)[0]
    u, du, ddu = (
        coupler.actuator_positions(robot(), q),
        coupler.actuator_velocities(robot(), q, v),
        coupler.actuator_accelerations(robot(), q, v, a),
    )
    joints = [next(iter(motor.gears)) for motor in robot().actuators]
    q_own = own.pack_q(dict(zip(joints, u, strict=True)))
    v_own, a_own = (own.pack_v(dict(zip(joints, x, strict=True))) for x in (du, ddu))
    tau = coupler.inverse_dynamics(own, q_own, v_own, a_own)
    expected = motors(q, v, a)
    for joint, name in zip(joints, robot().actuator_names, strict=True):
        assert tau[own.v_slice(joint)][0] == pytest.approx(expected[name], rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"springs": {"6s": None}}, "no spring '6s'; there are '4slb', '4srb', '5s'"),
        ({"springs": {"5s": 3.0}}, "its spring must be a Spring, got 3.0"),
        ({"independent": "motors"}, "must be 'joints' or 'actuators', got 'motors'"),
    ],
)
def test_options_are_checked(options: Any, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        coupler.robots.load("charmie", **options)


# Misprints of the paper: what is printed cannot be, and what stands for it here can


@pytest.mark.parametrize(
    ("body", "entry", "printed", "told"),
    [("3", 5, -5.3e6, "none can be negative"), ("8c", 1, 7.2e2, "exceeds the sum of the other two")],
)
def test_inertias_that_no_body_has(body: str, entry: int, printed: float, told: str) -> None:
    """[004, Table 4]: with the exponent one less, or one more, they are possible."""
    mass, _, moments = WEIGHTS[body]
    as_printed = list(moments)
    as_printed[entry] = printed
    assert abs(np.log10(abs(printed / moments[entry]))) == pytest.approx(1.0)
    with pytest.raises(ModelError, match=f"{told}.*the nearest that a body can have: Ixx ="):
        Body(body, mass, inertia=inertia_matrix(as_printed))
    Body(body, mass, inertia=inertia_matrix(moments))
    Body(body, mass, inertia=nearest_inertia(inertia_matrix(as_printed)))


def test_the_exponent_that_body_5_lacks() -> None:
    """[004, Table 4]: "1.87+3" is no number; as 1.87E+3 it is possible, as 1.87E+4 it is not."""
    mass, _, moments = WEIGHTS["5"]
    assert moments[5] == 1.87e3
    Body("5", mass, inertia=inertia_matrix(moments))
    with pytest.raises(ModelError):
        Body("5", mass, inertia=inertia_matrix([*moments[:5], 1.87e4]))


def test_body_6c_is_fixed() -> None:
    """[004, Table 2]: with the R that is printed, there would be two fixed joints and 22 freedoms, not 3 and 21."""
    assert [name for name, (kind, *_) in JOINTS.items() if kind == "F"] == ["6a", "6b", "6c"]


def test_eq_14_needs_a_minus_sign() -> None:
    """G is on both circles with it, and on neither as printed."""
    act5 = 0.39
    B, F = loops.B4[1:], np.array(loops.F4[1:])
    e, g = np.hypot(*(F - B)), np.hypot(*loops.G5[1:])
    along = (act5**2 - g**2 + e**2) / (2 * e)
    h = np.sqrt(act5**2 - along**2)

    def gaps(sign: float) -> list[float]:
        G = along / e * (B - F) + h / e * np.array([B[1] - F[1], sign * (B[0] - F[0])]) + F
        return [abs(np.hypot(*(G - F)) - act5), abs(np.hypot(*(G - B)) - g)]

    assert max(gaps(-1.0)) < 1e-15 and min(gaps(1.0)) > 5e-4


def test_eq_17_needs_s1_s2_in_its_corner() -> None:
    """As printed, with s₁ s₃, it is no rotation."""
    angles = 0.3, -0.7, 1.1
    R = chains.zxz_euler(*angles)
    np.testing.assert_allclose(R, turned(*angles), rtol=0, atol=1e-15)
    printed = R.copy()
    printed[0, 2] = np.sin(angles[0]) * np.sin(angles[2])
    assert np.abs(printed @ printed.T - np.eye(3)).max() > 0.1


def test_fixed_joints_need_a_case_in_eq_18() -> None:
    """With that of prismatic ones, both arms would point up rather than to the sides."""
    left, right = (coupler.frame_pose(robot(), np.zeros(21), f"12{side}.D")[:3, 3] for side in "ab")
    reach = 1e-3 * (200 + 30 + 61.5 + 145 + 145 + 140 + 140 + 102.3)
    np.testing.assert_allclose(left, [-reach, -0.002, 0.29 + 0.438 + 0.46], rtol=0, atol=1e-14)
    np.testing.assert_allclose(right, left * [-1, 1, 1], rtol=0, atol=1e-14)


def test_eq_19_moves_the_bodys_own_point() -> None:
    """Aᵢ comes to Bᵢ₋₁; with Aᵢ₋₁, joints of bodies behind a prismatic one would come apart."""
    q = robot().pack_q({"4": -0.1})
    placed = chain().placed(by_joint(q))
    end = placed["4"][1] + placed["4"][0] @ loops.B4
    np.testing.assert_allclose(placed["5"][1], end, rtol=0, atol=1e-15)
    shift = 0.1 * np.array([0.0, 0.0, 1.0])  # A₄ in the axes of body 4: eq. 1 with d₄ = −q₄
    assert np.abs((end - placed["4"][0] @ shift) - placed["5"][1]).max() == pytest.approx(0.1)


def test_the_right_side_of_eq_21_is_a_cosine() -> None:
    """The law of cosines, for a triangle of sides 3, 4 and 5."""
    assert np.arccos((3.0**2 + 4.0**2 - 5.0**2) / (2 * 3.0 * 4.0)) == pytest.approx(np.pi / 2)


def test_eq_31_needs_the_sign_of_table_2() -> None:
    """Acceleration of body 5's origin while body 4 comes down and the robot turns: d̈₄ counts against z."""
    step, rates = 1e-4, {"3": 0.7, "4": -0.2}
    found = []
    for sign in (1.0, -1.0):
        v = {joint: rates.get(joint, 0.0) for joint in by_joint(np.zeros(21))}
        a = dict.fromkeys(v, 0.0) | {"4": sign * 0.5}
        start = by_joint(np.zeros(21)) | {"4": -0.05}
        loads = chain().loads(start, v, a)
        R = chain().placed(start)["5"][0]
        found.append(R @ loads.at_A["5"] + chains.GRAVITY)
    places = []
    for t in (-step, 0.0, step):
        moved = {joint: rates.get(joint, 0.0) * t for joint in by_joint(np.zeros(21))}
        moved["4"] += -0.05 + 0.5 * 0.5 * t**2
        places.append(chain().placed(moved)["5"][1])
    expected = (places[0] - 2 * places[1] + places[2]) / step**2
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    assert np.abs(found[1] - expected).max() == pytest.approx(1.0, rel=1e-6)


def test_eq_35_pushes() -> None:
    """A spring that is stretched pulls: its force by eq. 35 is negative, and so must be what is wound into it."""
    spring = SPRINGS["5s"]
    longer = 0.55
    printed = spring.stiffness * (spring.free_length - longer) - spring.pretension
    assert printed == pytest.approx(-loops.spring_tension(spring, longer)) and printed < 0.0


def test_the_spring_of_eq_37_counts_once() -> None:
    q, v, a = states(1)[0]
    loads = chain().loads(by_joint(q), by_joint(v), by_joint(a))
    held = loops.upper_loop(by_joint(q)["5"], loads.force["5"], loads.torque["5"], SPRINGS["5s"])
    twice = SPRINGS["5s"]
    twice = Spring(2 * twice.stiffness, twice.free_length, 2 * twice.pretension)
    doubled = loops.upper_loop(by_joint(q)["5"], loads.force["5"], loads.torque["5"], twice)
    assert held.push == pytest.approx(motors(q, v, a)["5d"], rel=EXACT)
    assert abs(doubled.push - held.push) > 10.0


def test_gravity_is_needed() -> None:
    """At rest, body 2 carries the weight of the robot; by the paper's equations, nothing."""
    zero = by_joint(np.zeros(21))
    force = chain().loads(zero, zero, zero).force["3"]
    np.testing.assert_allclose(force, [0, 0, 62.4 * 9.81], rtol=0, atol=1e-11)
