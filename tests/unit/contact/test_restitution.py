"""The law of contacts that rebound, of one contact and of a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.contact.formulations import traditional_problem
from coupler.contact.pairs import pairs_of
from coupler.contact.restitution import Restitution, pending_rebound, rebound_terms
from coupler.graph import Builder, View, compile, fields
from coupler.model import Free, ModelError, Plane, Robot, RobotBuilder, Sphere
from reference.stepping import contact_step

NOTHING = np.zeros(3)
FREE, APPROACH = np.array([-2.01, 0.5, -0.2]), np.array([-2.0, 0.5, -0.2])
FORMS = ["velocity", "impulse"]


def ball(*, gravity: float = 9.81) -> Robot:
    """2 kg, of radius 0.1 m, above a plane."""
    b = RobotBuilder("ball", (0.0, 0.0, -gravity))
    b.body("ball", 2.0, inertia=(0.008,) * 3)
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.1), friction=0.5)
    b.shape("ground", Plane())
    return b.build()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((1.2,), "restitution: normal must be 0 to 1"),
        ((-0.1,), "restitution: normal must be a finite number, 0 or more"),
        ((0.5, 1.5), "restitution: tangential must be 0 to 1"),
        ((0.5, -1.0), "restitution: tangential must be a finite number, 0 or more"),
        ((float("nan"),), "restitution: normal"),
        ((0.5, 0.0, "energy"), 'restitution: form must be "velocity" or "impulse", got \'energy\''),
        ((0.5, 0.0, "velocity", -1.0), "restitution: threshold"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: Any, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        Restitution(*arguments)


@pytest.mark.parametrize("form", FORMS)
def test_a_contact_that_does_not_close_is_left_alone(form: str) -> None:
    law = Restitution(0.8, 0.4, form)
    terms = rebound_terms(law, 0.5, NOTHING, 3.0, FREE, APPROACH)
    assert terms.b == pytest.approx([FREE[0] + 3.0, 0.5, -0.2], abs=1e-15)
    assert not terms.offset.any() and not terms.closing
    assert not pending_rebound(law, terms.closing, 0.5, NOTHING, terms.b, FREE, APPROACH).any()


@pytest.mark.parametrize("form", FORMS)
def test_a_contact_that_closes_is_stopped_and_its_gap_does_not_count(form: str) -> None:
    law = Restitution(0.8, 0.4, form)
    terms = rebound_terms(law, 0.5, NOTHING, 1.0, FREE, APPROACH)
    assert terms.b.tolist() == FREE.tolist() and not terms.offset.any() and terms.closing
    impulse = np.array([4.02, -1.0, 0.4])
    left = pending_rebound(law, terms.closing, 0.5, impulse, np.array([1e-14, 0.0, 0.0]), FREE, APPROACH)
    came = APPROACH if form == "velocity" else impulse
    assert left == pytest.approx(came * [1.0, 0.4, 0.4], abs=1e-15)


@pytest.mark.parametrize("form", FORMS)
def test_what_others_kept_from_closing_does_not_rebound(form: str) -> None:
    """Its impulse is zero to the solver's tolerance, and it opens."""
    law = Restitution(0.8, 0.4, form)
    terms = rebound_terms(law, 0.5, NOTHING, 1.0, FREE, APPROACH)
    assert not pending_rebound(
        law, terms.closing, 0.5, np.array([1e-13, 0.0, 0.0]), np.array([0.3, 0.5, -0.2]), FREE, APPROACH
    ).any()


@pytest.mark.parametrize(("slip", "part"), [(3.0, 0.8), (0.3, 0.5), (0.1, 0.4)])
def test_friction_goes_on_while_the_contact_slides(slip: float, part: float) -> None:
    """It has lost 0.6 m/s of its slip: as much as it can again, or until it sticks; then it is thrown back."""
    law, impulse = Restitution(0.8, 0.4, "impulse"), np.array([4.0, -2.0, 0.0])
    free, velocity = np.array([-2.0, slip + 0.6, 0.0]), np.array([0.0, slip, 0.0])
    terms = rebound_terms(law, 0.5, NOTHING, 0.0, free, free)
    left = pending_rebound(law, terms.closing, 0.5, impulse, velocity, free, free)
    assert left == pytest.approx([4.0, -2.0 * part, 0.0], abs=1e-14)


def test_the_velocity_form_shifts_b_and_the_impulse_form_acts_in_advance() -> None:
    free = np.array([-0.01, 0.1, 0.0])
    newton = rebound_terms(Restitution(0.8, 0.4), 0.5, np.array([-2.0, 0.2, -0.08]), 7.0, free, NOTHING)
    assert newton.b == pytest.approx([-1.61, 0.3, -0.08], abs=1e-15)
    assert not newton.offset.any() and not newton.closing
    poisson = rebound_terms(Restitution(0.8, 0.4, "impulse"), 0.5, np.array([4.0, 0.4, 0.8]), 7.0, free, NOTHING)
    assert poisson.b.tolist() == free.tolist()
    assert poisson.offset == pytest.approx([3.2, 0.4, 0.8], abs=1e-15)


def test_impulses_in_advance_stay_in_the_cone() -> None:
    law = Restitution(0.1, 1.0, "impulse")
    terms = rebound_terms(law, 0.5, np.array([4.0, 1.2, -1.6]), 0.0, NOTHING, NOTHING)
    assert terms.offset == pytest.approx([0.4, 0.12, -0.16], abs=1e-15)


@pytest.mark.parametrize(("threshold", "closes"), [(None, False), (0.0, True), (0.019, True), (0.02, False)])
def test_slow_contacts_do_not_rebound(threshold: float | None, closes: bool) -> None:
    """By themselves: those that come as fast as an acceleration makes them within two steps."""
    approach, free = np.array([-0.0199, 0.0, 0.0]), np.array([-0.03, 0.0, 0.0])
    assert (
        bool(rebound_terms(Restitution(1.0, threshold=threshold), 0.5, NOTHING, 0.0, free, approach).closing) is closes
    )


@pytest.mark.parametrize("law", [Restitution(0.8, 0.4), Restitution(0.7, 0.9, "impulse", 0.1)], ids=FORMS)
def test_a_compiled_program_does_what_floats_do(law: Restitution) -> None:
    def both(pending: Any, closure: Any, free: Any, approach: Any, mobility: Any, impulse: Any, velocity: Any) -> Any:
        terms = rebound_terms(law, 0.5, pending, closure, free, approach)
        left = pending_rebound(law, terms.closing, mobility, impulse, velocity, free, approach)
        return np.concatenate([terms.b, terms.offset, left])

    def traced(at: View) -> None:
        x = at.x
        at.y = both(x[:3], x[3], x[4:7], x[7:10], x[10], x[11:14], x[14:])

    b = Builder("restitution")
    x, y = b.input("x", 17), b.output("y", 9)
    b.loop(traced, at=fields(x=x.at([0], 17), y=y.at([0], 9)))
    program, rng, closed = compile(b.build()), np.random.default_rng(5), 0
    for k in range(200):
        x = rng.normal(size=17)
        x[:3] *= k % 2
        x[4:7] = x[7:10] + 0.1 * rng.normal(size=3)
        expected = both(x[:3], x[3], x[4:7], x[7:10], x[10], x[11:14], x[14:])
        closed += bool(expected[6:].any())
        np.testing.assert_allclose(np.asarray(program(x=x)), expected, rtol=0.0, atol=1e-15)
    assert closed > 10


def test_a_step_without_restitution_leaves_nothing_pending() -> None:
    robot = ball()
    q = robot.pack_q({"free": [0, 0, 0.1, 1, 0, 0, 0]})
    assert contact_step(robot, q, np.zeros(6), np.zeros(6), 1e-3, pairs_of(robot)).pending is None


@pytest.mark.parametrize("form", FORMS)
def test_both_formulations_rebound_alike(form: str) -> None:
    robot, law = ball(), Restitution(0.6, 0.3, form)
    pairs, states = pairs_of(robot, restitution=law), []
    for options in ({}, {"formulation": traditional_problem, "method": "admm"}):
        q, v, pending = robot.pack_q({"free": [0, 0, 0.101, 1, 0, 0, 0]}), np.array([0, 5.0, 0, 1.0, 0, -2.0]), None
        for _ in range(4):
            done = contact_step(robot, q, v, np.zeros(6), 1e-3, pairs, pending=pending, tolerance=1e-12, **options)
            q, v, pending = done.q, done.v, done.pending
        states.append(v)
    assert states[0][5] > 1.0
    np.testing.assert_allclose(states[0], states[1], atol=1e-9)


def test_mistakes_in_a_step_are_told() -> None:
    robot = ball()
    with pytest.raises(ModelError, match=r"restitution must be given as Restitution\(normal, ...\), got 0.5"):
        pairs_of(robot, restitution=0.5)  # type: ignore[arg-type]
    q = robot.pack_q({"free": [0, 0, 0.1, 1, 0, 0, 0]})
    pairs = pairs_of(robot, restitution=Restitution(0.5, in_place=True))
    with pytest.raises(ModelError, match="pending must be 1 × 3"):
        contact_step(robot, q, np.zeros(6), np.zeros(6), 1e-3, pairs, pending=np.zeros(4))
