"""Reactions in over-constrained loops: statics under every rule, what is determinate, loads that are shared by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import MinimumNorm, ModelError, Share, Shares, StiffnessWeighted, determinate_forces, joint_forces, robots
from coupler.forces import JointForces
from coupler.model import Fixed, Free, Prismatic, Revolute, Robot, RobotBuilder
from coupler.spatial import Transform
from effort import sweep
from property.test_joint_forces import STATES, Case, Walk, batched, case, case_of, left_over
from property.test_random_dynamics import EVERY, robot_of

BALANCE = 1e-10  # of forces on a body, relative to the largest force in the robot
SAME = 1e-9  # of determinate forces, relative to the largest in the robot

PLANAR = ["four_bar", "five_bar", "slider_crank", "planar_leg_linkage", "six_bar"]
RULES = {
    "minimum norm": MinimumNorm(),
    "short levers": MinimumNorm(length=0.05),
    "stiff ground": lambda robot: StiffnessWeighted(
        {robot.joint_names[0]: 50.0, robot.loops[0].name: [1, 2, 3, 4, 5, 6]}
    ),
}


def rule_for(name: str, robot: Robot) -> Any:
    rule = RULES[name]
    return rule(robot) if callable(rule) else rule


def flat(forces: JointForces) -> dict[str, np.ndarray]:
    """All forces by kind and name."""
    parts = {kind: getattr(forces, kind) for kind in ("joints", "constraints", "actuators", "passive", "loops")}
    return {f"{kind} {name}": x for kind, own in parts.items() for name, x in own.items()} | {
        f"{coupling} {name}": x for coupling, own in forces.couplings.items() for name, x in own.items()
    }


def hinged_door(apart: float = 2.0) -> Robot:
    """A door of 10 kg on two hinges about z, at z = 0 and above, each of which would hold it alone."""
    b = RobotBuilder("door")
    b.body("door", mass=10.0, centre=(0.4, 0.0, 0.5 * apart), inertia=(1.0, 1.0, 1.0))
    b.joint("lower", Revolute(), "ground", "door")
    b.loop("upper", Revolute(), "ground", "door", (0, 0, apart), (0, 0, apart))
    return b.build()


def lifted_arm() -> Robot:
    """As bodies 4 and 5 of CHARMIE: an arm on a hinge about x, lifted by a linear actuator on hinges about x."""
    b = RobotBuilder("lifted_arm", gravity=(0.7, -2.0, -9.0))
    b.body("column", mass=20.0, centre=(0, 0, 0.3), inertia=(1.0, 1.0, 1.0))
    b.body("arm", mass=8.0, centre=(0.1, 0.3, 0.1), inertia=(0.3, 0.2, 0.25))
    b.body("cylinder", mass=1e-3, centre=(0, 0, 0.1), inertia=(1e-6, 1e-6, 1e-6))
    b.body("piston", mass=1e-3, centre=(0, 0, -0.1), inertia=(1e-6, 1e-6, 1e-6))
    b.joint("yaw", Revolute(), "ground", "column")
    b.joint("shoulder", Revolute(axis=(1, 0, 0)), "column", "arm", (0.05, 0, 0.5), independent=True, start=0.3)
    b.joint("foot", Revolute(axis=(1, 0, 0)), "column", "cylinder", (0.05, 0.15, 0), start=-0.1)
    b.joint("rod", Prismatic(axis=(0, 0, 1)), "cylinder", "piston", start=0.45)
    b.loop("pin", Revolute(axis=(1, 0, 0)), "piston", "arm", meets=(0, 0.2, 0.0))
    return b.build()


# Statics, whatever the rule


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", sweep([*PLANAR, "lifted_arm", "door"], ["four_bar", "five_bar", "lifted_arm", "door"]))
def test_forces_are_balanced_and_determinate_ones_the_same_under_every_rule(name: str, rule: str) -> None:
    c = open_case(name)
    found = joint_forces(c.robot, c.q, c.v, c.a, c.f_ext, rule=rule_for(rule, c.robot))
    for i in range(STATES):
        gap, largest = left_over(replace(c, forces=found), i)
        assert gap < BALANCE * largest, f"{gap / largest:.1e}"
    fixed, before, now = flat(determinate_forces(c.robot)), flat(c.forces), flat(found)
    largest = max(np.abs(x).max() for x in before.values())
    changed = {key: np.abs(now[key] - before[key]).max(axis=0) for key in before}
    assert all((changed[key] < SAME * largest)[fixed[key]].all() for key in fixed)
    assert any(np.any((changed[key] > SAME * largest)[~fixed[key]]) for key in fixed if not np.all(fixed[key]))


@cache
def open_case(name: str) -> Case:
    """With loads from all sides."""
    made = {"lifted_arm": lifted_arm, "door": hinged_door}
    robot = made[name]() if name in made else robots.load(name)
    return case_of(robot.with_backend("interpreter"), loaded=True)


@pytest.mark.parametrize("name", sweep([name for name in EVERY if "afloat" not in name], ["geared loop", "crossed"]))
def test_rules_change_nothing_where_nothing_is_open(name: str) -> None:
    robot = robot_of(name).with_backend("interpreter")
    (q, v), fixed = robot.random_state(0), flat(determinate_forces(robot))
    if not all(np.all(x) for x in fixed.values()):
        pytest.skip("some rows of its loops follow from others")
    one, other = (flat(joint_forces(robot, q, v, v, rule=rule)) for rule in ("kept_rows", "minimum_norm"))
    assert all(np.array_equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("name", PLANAR[:2])
def test_the_forces_of_a_plane_are_determinate_and_those_across_are_not(name: str) -> None:
    robot, walk = case(name).robot, Walk(case(name).robot, *(x[0] for x in (case(name).q, case(name).v, case(name).a)))
    fixed, normal = determinate_forces(robot), None
    for joint in robot.joints:
        kind: Any = joint.kind
        axis = walk.X[joint.child].E.T @ np.asarray(kind.axis, float)
        normal = axis if normal is None else normal
        assert abs(abs(axis @ normal) - 1.0) < 1e-12
        across = np.abs(kind.axis) > 0.5
        assert fixed.joints[joint.name].tolist() == [*across.tolist(), *(~across).tolist()]
    assert all(np.all(x) for part in (fixed.actuators, fixed.passive) for x in part.values())


def test_a_screw_free_robot_is_determinate_throughout() -> None:
    fixed = determinate_forces(robots.load("tello").with_backend("interpreter"))
    assert all(np.all(x) for x in flat(fixed).values())


def test_the_least_loads_are_least() -> None:
    """Against a search over all that statics leave open, of loads in the frames in which joints end."""
    c = case("four_bar")
    spread = [flat(joint_forces(c.robot, c.q, c.v, c.a, rule=StiffnessWeighted({"loop1": k}))) for k in (0.5, 2, 7, 30)]
    least = flat(joint_forces(c.robot, c.q, c.v, c.a, rule="minimum_norm"))
    keys = [key for key in least if key.startswith(("constraints", "loops"))]

    def size(forces: dict[str, np.ndarray]) -> np.ndarray:
        return sum(((forces[key] ** 2).sum(axis=-1) for key in keys), np.zeros(STATES))

    for other in spread:
        assert (size(least) < size(other)).all()
        for step in (-1e-3, 1e-3):  # a stationary point: forces that balance are a flat space
            moved = {key: least[key] + step * (other[key] - least[key]) for key in keys}
            assert (size(moved) > size(least)).all()


# By hand


def test_hinges_of_a_door_share_by_stiffness() -> None:
    """Weight: as the stiffnesses along z. Moment of the weight: a couple of the two hinges, if they give to moments."""
    robot, rest = hinged_door(), np.zeros(1)
    soft = 1e-9  # N m/rad: hinges as ball joints
    rule = StiffnessWeighted({"lower": [soft] * 3 + [1.0, 1.0, 3.0], "upper": [soft] * 3 + [1.0] * 3})
    found = joint_forces(robot, rest, rest, rest, rule=rule)
    assert found.joints["lower"] == pytest.approx([0, 0, 0, 19.62, 0, 0.75 * 98.1], abs=1e-5)
    assert found.loops["upper"] == pytest.approx([0, 0, 0, -19.62, 0, 0.25 * 98.1], abs=1e-5)
    alone = joint_forces(robot, rest, rest, rest)
    assert alone.joints["lower"] == pytest.approx([0, -39.24, 0, 0, 0, 98.1], abs=1e-12)
    assert not alone.loops["upper"].any()
    fixed = determinate_forces(robot)
    assert fixed.joints["lower"].tolist() == fixed.loops["upper"].tolist() == [False, False, True, False, False, False]


def test_where_loops_are_cut_does_not_matter_to_the_least_loads() -> None:
    """The same planar frame, whose middle or last joint closes the loop."""
    q = np.array([0.4])
    found = []
    for cut in ("last", "middle"):
        robot = cut_open(cut)
        state = robot.close(robot.pack_q({"jcrank": q[0], "jrocker": 0.4}))
        forces = joint_forces(robot, state, np.ones(1), np.ones(1), rule="minimum_norm")
        found.append({name: forces.joints[name] for name in ("jcrank", "jrocker")})
    for name in found[0]:
        assert found[0][name] == pytest.approx(found[1][name], abs=1e-9)


def cut_open(cut: str) -> Robot:
    """A parallelogram in the plane x-y, with a load across it."""
    b, z = RobotBuilder("parallelogram", gravity=(0, -9.0, 3.0)), Revolute()
    for body in ("crank", "rocker", "beam"):
        b.body(body, mass=1.0, centre=(0.2, 0.1, 0.05), inertia=(0.1, 0.1, 0.1))
    b.joint("jcrank", z, "ground", "crank", independent=True, start=0.4)
    b.joint("jrocker", z, "ground", "rocker", (1.0, 0, 0), start=0.4)
    ends = [("crank", (0.5, 0, 0), (0, 0, 0)), ("rocker", (0.5, 0, 0), (1.0, 0, 0))]
    tree, loop = ends if cut == "last" else ends[::-1]
    b.joint("jbeam", z, tree[0], "beam", tree[1], meets=tree[2], start=-0.4)
    b.loop("pin", z, loop[0], "beam", loop[1], loop[2])
    return b.build()


def test_an_arm_and_its_actuator_share_as_in_004() -> None:
    """Half the x-force and y- and z-torques each [004, §5.2]: the paper's equations, solved here in the arm's axes."""
    robot = lifted_arm()
    c = case_of(robot.with_backend("interpreter"), loaded=False)
    half = {"shoulder": 0.5, "pin": 0.5}
    rule = [Share("arm", half, "fx my mz")]
    found = joint_forces(c.robot, c.q, c.v, c.a, actuators=["rod"], rule=rule)
    for i in range(STATES):
        gap, largest = left_over(replace(c, forces=found), i)
        assert gap < BALANCE * largest
        walk = Walk(c.robot, c.q[i], c.v[i], c.a[i])
        on_arm = {
            "shoulder": found.constraints["shoulder"][i],
            "pin": found.loops["pin"][i],
        }  # the pin is turned as the arm
        for component in (1, 2, 3):
            one, other = (force[component] for force in on_arm.values())
            assert one == pytest.approx(other, abs=1e-9 * largest)
            assert abs(one) > 1e-3
        rod = walk.X["arm"].E @ walk.X["cylinder"].E.T @ np.array([0, 0, 1.0])  # the actuator pushes along itself
        across = np.cross(rod, [1, 0, 0])
        push = on_arm["pin"][3:]
        assert abs(push @ across) < 1e-2 * abs(push @ rod)  # but for its own small mass


def test_a_joint_can_be_given_all_or_nothing() -> None:
    robot = lifted_arm()
    q, v = robot.random_state(0)
    found = joint_forces(robot, q, v, v, rule=[Share("arm", {"shoulder": 1, "pin": 0}, ["fx", "my", "mz"])])
    assert found.loops["pin"][1:4] == pytest.approx(0.0, abs=1e-9)
    other = joint_forces(robot, q, v, v, rule=[Share("piston", {"rod": 0, "pin": 1}, "mz")])  # felt by the predecessor
    assert abs(found.joints["rod"] - other.joints["rod"]).max() > 1e-6


def test_shares_count_about_the_points_of_joints_along_the_axes_of_a_welded_body_or_a_carrier() -> None:
    """A slab on four vertical guides, on a base that floats; moments are about each guide, not the slab's origin."""
    b = RobotBuilder("slab")
    b.body("base", mass=5.0, inertia=(1.0, 1.0, 1.0))
    b.body("slab", mass=20.0, centre=(0.1, 0.05, 0.2), inertia=(1.0, 1.0, 2.0))
    b.body("plate", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("afloat", Free(), "ground", "base")
    corners = [(-0.5, -0.5, 0.0), (0.5, -0.5, 0.0), (0.5, 0.5, 0.0), (-0.5, 0.5, 0.0)]
    b.joint("guide0", Prismatic(axis=(0, 0, 1)), "base", "slab", corners[0], meets=corners[0])
    for i, at in enumerate(corners[1:], 1):
        b.loop(f"guide{i}", Prismatic(axis=(0, 0, 1)), "base", "slab", at, at)
    turn = np.array([[0, 0, 1.0], [1.0, 0, 0], [0, 1.0, 0]])
    b.joint("weld", Fixed(), "slab", "plate", (0, 0, 0.3), turn)
    robot = b.build()
    parts = {"guide0": 0.1, "guide1": 0.2, "guide2": 0.3, "guide3": 0.4}
    q, v = robot.random_state(0)
    for body in ("slab", "base"):
        found = joint_forces(robot, q, v, v, rule=Share(body, parts, "mx my mz fx fy"))
        loads = [Transform.translation(np.array(corners[0])).inverse_force(found.constraints["guide0"])]
        loads += [found.loops[f"guide{i}"] for i in (1, 2, 3)]
        total = np.sum(loads, axis=0)
        assert np.abs(total).min(where=np.arange(6) < 5, initial=np.inf) > 0.1
        for load, part in zip(loads, parts.values(), strict=True):
            assert load == pytest.approx(part * total, abs=1e-9)
    found = joint_forces(robot, q, v, v, rule=Share("plate", parts, "fy"))
    slab, plate = (coupler.frame_pose(robot, q, body)[:3, :3] for body in ("slab", "plate"))
    axis = (slab.T @ plate)[:, 1]
    along = [force[3:] @ axis for force in (found.constraints["guide0"], *found.loops.values())]
    assert along == pytest.approx([part * sum(along) for part in parts.values()], abs=1e-9)


def test_shares_leave_the_rest_to_another_rule() -> None:
    robot, rest = hinged_door(), np.zeros(1)
    soft = StiffnessWeighted({name: [1e-9] * 3 + [1.0] * 3 for name in ("lower", "upper")})
    found = joint_forces(
        robot, rest, rest, rest, rule=Shares([Share("door", {"lower": 0.2, "upper": 0.8}, "fz")], soft)
    )
    assert found.joints["lower"][5] == pytest.approx(0.2 * 98.1)
    assert found.joints["lower"][3] == pytest.approx(19.62, rel=1e-6)


def test_loops_that_formulas_close_transmit_the_same() -> None:
    """A closed form that was found stands for the loop joints; these transmit."""
    plain, closed = (robots.load("slider_crank").with_closure(way) for way in ("numerical", "analytical"))
    angle = 0.7
    q = closed.pack_q({"shaft": angle})
    everything = plain.pack_q(closed.joint_positions(q))
    for rule in ("kept_rows", "minimum_norm"):
        one = joint_forces(plain, everything, [1.0], [2.0], rule=rule)
        other = joint_forces(closed, q, [1.0], [2.0], rule=rule)
        assert not other.couplings
        assert np.abs(one.loops["piston_pin"]).max() > 0.1
        for key, force in flat(one).items():
            assert flat(other)[key] == pytest.approx(force, abs=1e-9)


# Calling


def test_one_state_is_the_same_as_in_a_batch_and_in_machine_code() -> None:
    robot = lifted_arm()
    states = [robot.random_state(seed) for seed in range(5)]
    q, v = map(np.array, zip(*states, strict=True))
    rule = [Share("arm", {"shoulder": 0.5, "pin": 0.5}, "fx")]
    several = flat(joint_forces(robot, q, v, v, rule=rule))
    reference = flat(joint_forces(robot.with_backend("interpreter"), q, v, v, rule=rule))
    for i in range(5):
        one = flat(joint_forces(robot, q[i], v[i], v[i], rule=rule))
        for key, force in one.items():
            assert force == pytest.approx(several[key][i], rel=1e-12, abs=1e-12)
            assert force == pytest.approx(reference[key][i], rel=1e-9, abs=1e-9)


def test_single_precision_and_actuators_elsewhere() -> None:
    c = case("slider_crank")
    driven = joint_forces(c.robot, c.q, c.v, c.a, actuators=["slide"], rule="minimum_norm")
    gap, largest = left_over(replace(c, forces=driven), 0)
    assert gap < BALANCE * largest and list(driven.actuators) == ["slide"]
    q, v, a = (x.astype(np.float32) for x in (c.q, c.v, c.a))
    low = joint_forces(c.robot, q, v, a, rule="minimum_norm")
    assert low.joints["shaft"].dtype == np.float32


def test_loads_from_outside_are_shared_too() -> None:
    robot, rest = hinged_door(), np.zeros(1)
    f_ext = np.array([[0, 0, 0, 0, 0, -50.0]])
    rule = Share("door", {"lower": 0.5, "upper": 0.5}, "fz")
    found = joint_forces(robot, rest, rest, rest, f_ext, rule=rule)
    assert found.joints["lower"][5] == pytest.approx(0.5 * 148.1)
    assert left_over(Case(robot, rest[None], rest[None], rest[None], f_ext[None], batched(found), 1.0), 0)[0] < 1e-10


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("springs", "rule must be .*, got 'springs'"),
        (None, "rule must be .*, got None"),
        ([], r"rule must be .*, got \[\]"),
        (StiffnessWeighted({"knob": 1.0}), "there is no joint, loop or coupling 'knob'"),
        (StiffnessWeighted({"lower": [1.0, 2.0]}), "'lower' is one number or six, by row, not 2"),
        ([Share("gate", {"lower": 0.5, "upper": 0.5}, "fz")], "there is no body 'gate'"),
        ([Share("door", {"lower": 0.5, "middle": 0.5}, "fz")], "no joint or loop 'middle'"),
        (
            [Share("door", {"lower": 0.5, "upper": 0.5}, "fz"), Share("door", {"lower": 1, "upper": 0}, "fz")],
            "along fz",
        ),
    ],
)
def test_rules_that_cannot_be_meant_are_told(rule: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        joint_forces(hinged_door(), [0.0], [0.0], [0.0], rule=rule)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MinimumNorm(0.0), "length must be positive"),
        (lambda: MinimumNorm("long"), "length must be numbers, got 'long'"),  # type: ignore[arg-type]
        (lambda: StiffnessWeighted({"a": "stiff"}), "of 'a' must be numbers"),  # type: ignore[dict-item]
        (lambda: Share("b", {"a": "half", "c": 0.5}, "fx"), "parts must be numbers"),  # type: ignore[dict-item]
        (lambda: StiffnessWeighted({"a": np.inf}), "the stiffness of 'a' must be positive"),
        (lambda: StiffnessWeighted(3.0), "by name"),  # type: ignore[arg-type]
        (lambda: StiffnessWeighted({}, others=-1), "others must be positive"),
        (lambda: Share("b", {"a": 1.0}, "fx"), "two joints at least"),
        (lambda: Share("b", {"a": 0.5, "c": 0.4}, "fx"), "add up to 1, got 0.9"),
        (lambda: Share("b", {"a": 0.5, "c": 0.5}, "x"), "along must be some of mx my"),
        (lambda: Shares([1]), "list of Share"),  # type: ignore[list-item]
    ],
)
def test_rules_check_their_numbers(make: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        make()


def test_shares_of_what_statics_decide_are_refused() -> None:
    robot = lifted_arm()
    q, v = robot.random_state(0)
    with pytest.raises(ModelError, match="along fy cannot be met: statics"):
        joint_forces(robot, q, v, v, rule=[Share("arm", {"shoulder": 0.5, "pin": 0.5}, "fy")])
    with pytest.raises(ModelError, match="share no loop, so statics determine"):
        joint_forces(robot, q, v, v, rule=[Share("column", {"yaw": 0.5, "shoulder": 0.5}, "fx")])
    with pytest.raises(ModelError, match="'rod' is not a joint of that body"):
        joint_forces(robot, q, v, v, rule=[Share("arm", {"rod": 0.5, "shoulder": 0.5}, "fx")])
    tello = robots.load("tello")
    with pytest.raises(ModelError, match="statics determine all forces"):
        joint_forces(tello, *tello.random_state(0), np.zeros(tello.nv), rule=[geared_share(tello)])


def geared_share(robot: Robot) -> Share:
    """Of joints that gears couple."""
    joints = robot.couplings[0].joints
    by_name = {joint.name: joint for joint in robot.joints}
    parents = {by_name[name].parent for name in joints}
    return Share(parents.pop(), {name: 1.0 / len(joints) for name in joints}, "fx")


def test_helpers_are_public() -> None:
    assert {"MinimumNorm", "Share", "Shares", "StiffnessWeighted", "determinate_forces"} <= set(coupler.__all__)
