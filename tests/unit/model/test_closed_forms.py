"""Closed forms of loops: found where there are such, and the same to rounding as what Newton's method finds."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import coupler
from coupler import mechanisms
from coupler.mechanisms import PosedBuilder, gear
from coupler.model import ModelError, Planar, Prismatic, Revolute, Robot, RobotBuilder, Rod, Spherical
from coupler.model.closed_forms import ClosedForm, recognition
from effort import sweep
from posed import RandomBuilder

Axes = tuple[np.ndarray, np.ndarray, np.ndarray]


def random_axes(rng: np.random.Generator) -> Axes:
    """Three directions at right angles, which no axis of the world is along."""
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return tuple(Q.T)  # type: ignore[return-value]


def angle(rng: np.random.Generator) -> float:
    return float(rng.uniform(-3.0, 3.0))


def rrpr(rng: np.random.Generator) -> RandomBuilder:
    """A linear actuator across a hinge, whose slide does not pass through its own hinge."""
    x, y, z = random_axes(rng)
    b = RandomBuilder("rrpr", rng)
    b.turn("arm", "ground", z, 0.1 * x, angle(rng), free=True)
    b.turn("cylinder", "ground", z, 0.3 * y + 0.05 * z, angle(rng))
    b.slide("piston", "cylinder", 0.4 * x - 0.3 * y, 0.2 * x + 0.2 * y, angle(rng))
    b.close("pin", Revolute(axis=z), "arm", "piston", 0.5 * x)
    return b


def two_spu(rng: np.random.Generator, offset: float = 0.0) -> RandomBuilder:
    """A platform on a universal joint, tilted by two legs, whose axes miss each other by an offset."""
    x, y, z = random_axes(rng)
    b = RandomBuilder("2-SPU+1U", rng)
    b.turn("cross", "ground", x, 0.5 * z, angle(rng), free=True)
    b.turn("platform", "cross", y, 0.5 * z, angle(rng), free=True)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        foot, ball = 0.2 * x + sign * 0.15 * y, 0.15 * x + sign * 0.1 * y + 0.45 * z
        axis = (ball - foot) / np.linalg.norm(ball - foot)
        first = np.cross(axis, rng.normal(size=3))
        first = first / np.linalg.norm(first)
        second = np.cross(axis, first)
        b.turn(f"{side}_cross", "ground", first, foot, angle(rng))
        b.turn(f"{side}_cylinder", f"{side}_cross", second, foot + offset * axis, angle(rng))
        b.slide(f"{side}_piston", f"{side}_cylinder", axis, foot + 0.1 * axis + offset * second, angle(rng))
        b.close(f"{side}_ball", Spherical(), f"{side}_piston", "platform", ball)
    return b


def two_sprr(rng: np.random.Generator) -> RandomBuilder:
    return two_spu(rng, offset=0.02)


def four_bar(rng: np.random.Generator, in_one: bool = False, ground: float = 0.6) -> RandomBuilder:
    """A crank-rocker; the rocker hangs on the ground, or on the coupler."""
    x, y, z = random_axes(rng)
    b = RandomBuilder("four-bar", rng)
    b.turn("crank", "ground", z, 0.0 * x, angle(rng), free=True)
    b.turn("coupler", "crank", z, 0.2 * x + 0.1 * y, angle(rng))
    if in_one:
        b.turn("rocker", "coupler", -z, 0.5 * x + 0.4 * y, angle(rng))
        b.close("pin", Revolute(axis=z), "rocker", "ground", ground * x)
    else:
        b.turn("rocker", "ground", -z, ground * x, angle(rng))
        b.close("pin", Revolute(axis=z), "coupler", "rocker", 0.5 * x + 0.4 * y)
    return b


def four_bar_in_one(rng: np.random.Generator) -> RandomBuilder:
    return four_bar(rng, in_one=True)


def slider_crank(rng: np.random.Generator, rod_on_crank: bool = True) -> RandomBuilder:
    x, y, z = random_axes(rng)
    b = RandomBuilder("slider-crank", rng)
    b.turn("crank", "ground", z, 0.02 * y, angle(rng), free=True)
    b.slide("slider", "ground", x, 0.5 * x, angle(rng))
    tip = 0.1 * x + 0.12 * y
    if rod_on_crank:
        b.turn("rod", "crank", z, tip, angle(rng))
        b.close("pin", Revolute(axis=z), "rod", "slider", 0.5 * x)
    else:
        b.turn("rod", "slider", -z, 0.5 * x, angle(rng))
        b.close("pin", Revolute(axis=z), "rod", "crank", tip)
    return b


def slider_crank_from_slider(rng: np.random.Generator) -> RandomBuilder:
    return slider_crank(rng, rod_on_crank=False)


def two_rss(rng: np.random.Generator, rod: str = "massless", *, spins: bool = False) -> RandomBuilder:
    """A platform on a universal joint, tilted by two cranks with rods, which may spin about themselves."""
    x, y, z = random_axes(rng)
    b = RandomBuilder("ankle", rng)
    b.turn("cross", "ground", x, 0.0 * z, angle(rng), free=True)
    b.turn("foot", "cross", y, 0.01 * z, angle(rng), free=True)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        pivot = sign * 0.05 * y + 0.3 * z
        tip, ball = pivot + 0.06 * x + 0.02 * y, 0.05 * x + sign * 0.07 * y - 0.02 * z
        b.turn(f"{side}_crank", "ground", y + 0.1 * x, pivot, angle(rng))
        along = (ball - tip) / np.linalg.norm(ball - tip) + rng.uniform(-0.2, 0.2, 3)
        first = np.cross(along, rng.normal(size=3))
        second = np.cross(along, first)
        if rod == "massless":
            length = float(np.linalg.norm(tip - ball))
            b.close(f"{side}_rod", Rod(length), f"{side}_crank", "foot", tip, ball)
            continue
        carrier, at, end = (f"{side}_crank", tip, "foot") if rod == "crank" else ("foot", ball, f"{side}_crank")
        b.turn(f"{side}_cross", carrier, first, at, angle(rng))
        b.turn(f"{side}_rod", f"{side}_cross", second, at, angle(rng))
        last, point = f"{side}_rod", ball if rod == "crank" else tip
        if spins:
            b.turn(f"{side}_spin", last, ball - tip, 0.3 * ball + 0.7 * tip, angle(rng), free=True)
            last = f"{side}_spin"
        b.close(f"{side}_ball", Spherical(), last, end, point)
    return b


def two_rus(rng: np.random.Generator) -> RandomBuilder:
    return two_rss(rng, "crank")


def two_rus_that_spin(rng: np.random.Generator) -> RandomBuilder:
    return two_rss(rng, "foot", spins=True)


def two_rus_from_below(rng: np.random.Generator) -> RandomBuilder:
    return two_rss(rng, "foot")


def spherical_four_bar(rng: np.random.Generator, in_one: bool = False) -> RandomBuilder:
    """Four hinges whose axes pass through one point."""
    x, y, z = random_axes(rng)
    b, centre = RandomBuilder("spherical four-bar", rng), 0.3 * x + 0.1 * z
    tip, knee, ground = x + 0.4 * y + z, x - 0.5 * y + 0.9 * z, x - 0.6 * y
    tip, knee = tip / np.linalg.norm(tip), knee / np.linalg.norm(knee)
    b.turn("crank", "ground", x, centre, angle(rng), free=True)
    b.turn("coupler", "crank", tip, centre + 0.1 * tip, angle(rng))
    if in_one:
        b.turn("rocker", "coupler", knee, centre + 0.2 * knee, angle(rng))
        b.close("pin", Revolute(axis=ground), "rocker", "ground", centre)
    else:
        b.turn("rocker", "ground", ground, centre, angle(rng))
        b.close("pin", Revolute(axis=knee), "coupler", "rocker", centre + 0.2 * knee)
    return b


def spherical_four_bar_in_one(rng: np.random.Generator) -> RandomBuilder:
    return spherical_four_bar(rng, in_one=True)


def nested(rng: np.random.Generator) -> RandomBuilder:
    """Cranks that linear actuators turn, with rods to a platform, and a rotor geared to one of the cranks."""
    b = two_rus(rng)
    for side in ("left", "right"):
        axis = np.array(b._joints[f"{side}_crank"].kind.axis)  # type: ignore[attr-defined]
        pivot = b._origins[f"{side}_crank"]
        x = np.cross(axis, rng.normal(size=3))
        x, y = x / np.linalg.norm(x), np.cross(axis, x / np.linalg.norm(x))
        pin, foot = pivot + 0.05 * x, pivot + 0.02 * x + 0.2 * y
        b.turn(f"{side}_cylinder", "ground", axis, foot, angle(rng))
        b.slide(f"{side}_piston", f"{side}_cylinder", pin - foot, 0.5 * (pin + foot), angle(rng))
        b.close(f"{side}_pin", Revolute(axis=axis), f"{side}_piston", f"{side}_crank", pin)
    b.turn("rotor", "ground", [0, 0, 1], [0.2, 0, 0.3])
    assembled = np.array(b._joints["left_crank"].start).item()
    b.couple("gears", ["left_crank", "rotor"], gear(9.0, -9.0 * assembled), independent=["left_crank"])
    return b


MECHANISMS: dict[str, Callable[[np.random.Generator], RandomBuilder]] = {
    "RRPR": rrpr,
    "2-SPU+1U": two_spu,
    "2-SPRR+1U": two_sprr,
    "four-bar": four_bar,
    "four-bar in one": four_bar_in_one,
    "slider-crank": slider_crank,
    "slider-crank in one": slider_crank_from_slider,
    "2-RSS+1U": two_rss,
    "2-RUS+1U": two_rus,
    "2-RUS+1U from below": two_rus_from_below,
    "2-RUS+1U that spin": two_rus_that_spin,
    "spherical four-bar": spherical_four_bar,
    "spherical four-bar in one": spherical_four_bar_in_one,
    "2-SU[RRPR]+1U": nested,
}


def pair(build: Callable[[np.random.Generator], RandomBuilder], seed: int) -> tuple[Robot, Robot]:
    """The same robot with its loops closed analytically and numerically."""
    one, other = (build(np.random.default_rng(seed)).build(closure=c) for c in ("analytical", "numerical"))
    return one, other


@pytest.mark.parametrize("seed", sweep(range(3), [1]))
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_closed_form_gives_what_newtons_method_does(name: str, seed: int) -> None:
    robot, numerical = pair(MECHANISMS[name], seed)
    assert {form.name for form in robot.closed_forms.values()} == {
        name.removesuffix(" in one").removesuffix(" from below").removesuffix(" that spin")
    }
    assert not numerical.closed_forms and robot.nq == robot.nv == numerical.nv < numerical.nq
    rng, loops = np.random.default_rng(seed), numerical.states.closure
    near = numerical.joint_positions(numerical.neutral())
    assert np.allclose(list(robot.joint_positions(robot.neutral()).values()), list(near.values()), atol=1e-9)
    for _ in range(20):
        q = robot.neutral() + rng.uniform(-0.15, 0.15, robot.nq)
        v, a = rng.normal(size=(2, robot.nv))
        positions = robot.joint_positions(q)
        p = numerical.pack_q(positions)
        # The numerical robot takes all positions as they are: nothing is left for Newton's method to close.
        assert np.abs(loops.at(p)[0]).max() < 1e-12
        assert np.allclose(p, list(positions.values()), atol=1e-12)
        for mine, theirs in zip(robot.explicit_constraint(q, v), numerical.explicit_constraint(p, v), strict=True):
            assert np.allclose(mine, theirs, rtol=1e-9, atol=1e-9)
        for function in (coupler.inverse_dynamics, coupler.forward_dynamics):
            mine, theirs = function(robot, q, v, a), function(numerical, p, v, a)
            assert np.allclose(mine, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())


@pytest.mark.parametrize("name", sweep(MECHANISMS, ["RRPR", "2-SPRR+1U", "four-bar", "2-RUS+1U"]))
def test_what_has_dead_points_is_closed_numerically_unless_asked(name: str) -> None:
    robot = MECHANISMS[name](np.random.default_rng(0)).build()
    assert bool(robot.closed_forms) == (name in ("RRPR", "2-SPU+1U", "2-SPRR+1U"))
    assert bool(robot.closed_forms) == any("closed analytically" in remark for remark in robot.remarks)


def test_beyond_its_workspace_a_leg_does_not_close() -> None:
    turns = np.linspace(0, 2 * np.pi, 50)[:, None]
    robot = four_bar(np.random.default_rng(0)).build(closure="analytical")
    assert np.isfinite(coupler.mass_matrix(robot, robot.neutral() + turns)).all()
    robot = four_bar(np.random.default_rng(0), ground=0.7).build(closure="analytical")
    with pytest.raises(
        ModelError, match=r"'pin'.*does not close.*there is no solution: 'coupler', 'rocker' cannot reach"
    ):
        robot.joint_positions(robot.neutral() + turns)


def test_the_way_is_chosen_loop_by_loop() -> None:
    b = two_rus(np.random.default_rng(1))
    with pytest.raises(ModelError, match="closure must be one of 'auto', 'analytical', 'numerical', got 'exact'"):
        b.build(closure="exact")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="there is no loop or coupling 'ball'; there are 'left_ball', 'right_ball'"):
        b.build(closure={"ball": "numerical"})
    assert not b.build(closure={"left_ball": "numerical"}).closed_forms
    robot = b.build(closure={"left_ball": "analytical"})
    assert list(robot.closed_forms) == ["left_ball", "right_ball"]  # which make one cluster
    assert robot.with_closure("numerical").nq == 8 and robot.with_closure("auto").nq == 8
    assert robot.with_closure("numerical").with_closure("analytical").remarks == robot.remarks


def test_robots_keep_how_they_are_closed() -> None:
    robot = four_bar(np.random.default_rng(2)).build(closure="analytical")
    b = RobotBuilder("two")
    b.attach(robot, prefix="a/")
    b.attach(robot.with_closure("numerical"), prefix="b/", at=(1, 0, 0))
    both = b.build()
    assert list(both.closed_forms) == ["a/pin"] and both.nq == 4
    again = pickle.loads(pickle.dumps(robot))
    assert again.closed_forms["pin"].name == "four-bar" and again.closure == robot.closure
    q, v = robot.random_state(0)
    assert np.array_equal(coupler.bias_force(again, q, v), coupler.bias_force(robot, q, v))


def lever(lower: float = -np.inf, upper: float = np.inf, stiffness: float = 0.0, at: float = 0.0) -> PosedBuilder:
    """A linear actuator whose cylinder turns with the arm, all round."""
    b, y = PosedBuilder("lever", gravity=(0, 0, 0)), (0, 1, 0)
    hinge = Revolute(axis=y, lower=lower, upper=upper, stiffness=stiffness)
    b.link("arm", Revolute(axis=y), "ground", (0, 0, 0), bars=[((0, 0, 0), (0.3, 0, 0))], independent=True)
    b.link("cylinder", hinge, "ground", (0.1, 0, 0.02), bars=[((0.1, 0, 0.02), (0.2, 0, 0.01))], position=[at])
    b.link("piston", Prismatic(axis=(0.2, 0, -0.02)), "cylinder", (0.3, 0, 0), bars=[((0.2, 0, 0.01), (0.3, 0, 0))])
    b.close("pin", Revolute(axis=y), "piston", "arm", (0.3, 0, 0))
    return b


def test_limits_of_dependent_joints_hold_beyond_half_a_turn() -> None:
    ends = []
    for closure in ("auto", "numerical"):
        robot = lever(lower=-0.5, upper=4.0).build(closure=closure)
        assert bool(robot.closed_forms) == (closure == "auto")
        simulation = coupler.Simulation(robot, 1e-3, v=[8.0])
        simulation.run(1.0)
        ends.append(robot.joint_positions(simulation.q)["cylinder"].item())
    assert ends == pytest.approx([4.0, 4.0], abs=1e-3)


def test_joints_with_springs_or_wide_limits_are_closed_numerically() -> None:
    for options in ({"stiffness": 1.0}, {"lower": -1.0}, {"lower": -4.0, "upper": 4.0}):
        robot = lever(**options).build(closure="analytical")
        assert not robot.closed_forms and "closed numerically, for want of a closed form" in robot.remarks[-1]
    assert lever(lower=6.0, upper=9.0, stiffness=1.0, at=7.0).build().closed_forms


def test_actuators_that_may_have_no_length_are_closed_numerically() -> None:
    assert not rrpr_mechanism(0.3, (0.0, 0.3)).closed_forms  # the pin passes through the foot
    assert rrpr_mechanism(0.3, (0.0, 0.2)).closed_forms


def rrpr_mechanism(arm: float, foot: tuple[float, float]) -> Robot:
    return mechanisms.rrpr(arm, foot, closure="auto")


@pytest.mark.parametrize("ratio", [30.0, 100.0, 2000.0, 1e5])
def test_a_ball_screw_drives_the_piston(ratio: float) -> None:
    b, axis = lever(), (0.2, 0, -0.02)
    weighs = 0.1, (0.1, 0, 0.02), np.full(3, 1e-3) / ratio**2
    b.link("rotor", Revolute(axis=axis), "cylinder", (0.1, 0, 0.02), weighs=weighs, actuated=True)
    b.couple("screw", ["piston", "rotor"], gear(ratio), independent=["piston"])
    robot, numerical = b.build(), b.build(closure="numerical")
    assert robot.nq == 1 and numerical.nq == 4 and robot.independent_joints == numerical.independent_joints == ["arm"]
    H = [coupler.mass_matrix(own, own.neutral()) for own in (robot, numerical)]
    assert H[0] == pytest.approx(H[1], rel=1e-9)


def test_a_chain_through_a_joint_of_several_freedoms_is_left_to_newton() -> None:
    """Its limits say nothing about how far the chain turns, and so whether angles could be told."""
    b = RobotBuilder("chain")
    for name in ("crank", "slide", "rod", "rocker"):
        b.body(name, 0.25, (0, 0.5, 0), (0.1, 0.1, 0.1))
    hinge = Revolute(axis=(0, 0, 1), lower=-10, upper=10)
    b.joint("turn", hinge, "ground", "crank", independent=True)
    b.joint("plane", Planar(normal=(0, 0, 1)), "crank", "slide", (0, 1, 0), independent=True)
    b.joint("elbow", hinge, "slide", "rod", (0, 1, 0))
    b.joint("rock", hinge, "ground", "rocker", (1, 0, 0))
    b.loop("pin", Revolute(axis=(0, 0, 1)), "rod", "rocker", (1, 0, 0), (0, 2, 0))
    robot = b.build(closure="analytical")
    assert robot.nv == 4 and not robot.closed_forms


def test_equal_mechanisms_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share one γ; a mechanism of other dimensions, or with other limits, has its own."""
    searched: list[tuple[str, ...]] = []
    search_form = recognition._Search.form

    def counted_form(search: recognition._Search) -> ClosedForm | None:
        searched.append(tuple(constraint.name for constraint in search.loop.constraints))
        return search_form(search)

    monkeypatch.setattr(recognition._Search, "form", counted_form)
    b = RobotBuilder("elbows")
    same = mechanisms.rrpr(0.3, (0.1, -0.4))
    for prefix, robot in (("a/", same), ("b/", same), ("c/", mechanisms.rrpr(0.31, (0.1, -0.4))), ("d/", same)):
        b.attach(robot, prefix=prefix, at=(0.0, 1.0, 0.0))
    searched.clear()
    scene = b.build(closure="analytical")
    assert searched == [("a/pin",), ("c/pin",)]
    forms = [scene.closed_forms[f"{name}/pin"] for name in "abcd"]
    assert forms[0] is forms[1] is forms[3] and forms[0] is not forms[2]
    q, _ = scene.random_state(1)
    assert max(scene.loop_errors(q).values()) < 1e-12
