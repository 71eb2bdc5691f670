"""A step with contact by the method of Runge and Kutta, of fourth order. [002, §4.1]

The contact problem is solved at the start of the step, as for Euler's method. Its impulses, spread over the step as
forces F = λ/h that stay as they are, then act on the robot where contacts are in each stage. (If they stayed at the
places of the step's start, those that slide would be pushed with a wrong lever, and energy err by first order.)

That is of fourth order while nothing touches, and of third where contacts stay closed. The laws of contact are those of
Euler's method, though: the force that stops a body takes the whole step, in which the body moves on by h |v| / 2. If
that counted at position level it would bounce, so overlaps count up to 1e-5 m at most, unless another `penetration` is
chosen. Friction is not sure to dissipate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact.formulations import Touch, touches
from coupler.contact.pairs import Pair
from coupler.contact.stepping import Stepped, contact_impulses
from coupler.model import Robot
from coupler.simulate.integrators import rk4

__all__ = ["contact_forces", "rk4_contact_step"]


def rk4_contact_step(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    step: float,
    pairs: Sequence[Pair],
    *,
    penetration: str | float = "limited",
    **options: Any,
) -> Stepped:
    """Moves a robot by one step.

    Args:
        robot, q, v, tau, step, pairs: as in `contact_step`.
        penetration: how overlaps count; see `gap_seen`.
        options: `pending`, `formulation`, `method`, `start` and options of the solver, as in `contact_step`.
    """
    hit = contact_impulses(robot, q, v, tau, step, pairs, penetration=penetration, ahead=True, **options)
    frames = [touch.contact.frame.T for touch in hit.touches]
    forces = [frame @ own / step for frame, own in zip(frames, hit.solution.impulses.reshape(-1, 3), strict=True)]

    def f_ext(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return contact_forces(robot, touches(robot, q, pairs), forces)

    after = rk4(robot, q, v, tau, step, f_ext=f_ext if any(map(np.any, forces)) else None)
    return Stepped(*after, hit.touches, hit.solution, hit.pending)


def contact_forces(robot: Robot, found: Sequence[Touch], forces: Sequence[np.ndarray]) -> np.ndarray:
    """f_ext, (bodies, 6), of forces at contacts on the first bodies of their pairs, 3 each in the world's axes, N."""
    place = {name: i for i, name in enumerate(robot.body_names)}
    total = np.zeros((len(place), 6))
    for touch, force in zip(found, forces, strict=True):
        spatial = np.concatenate([np.cross(touch.contact.point, force), force])
        for shape, sign in ((touch.pair.one, 1.0), (touch.pair.other, -1.0)):
            if shape.body in place:
                total[place[shape.body]] += sign * spatial
    return total
