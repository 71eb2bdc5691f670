"""A step with contact by the classical Runge-Kutta method, in NumPy for one state: the reference for step/stages.py.

The contact problem is solved at the start of the step, as in Euler's method [002, §4.1]. Its impulses, spread over the
step as forces F = λ/h of fixed direction, then act on the robot where contacts are in each stage (see carried.py).
Torsion is a constant moment. The forces of joints at their limits or with dry friction are constant, too, and act on
independent joints through the loops' present configuration in each stage. Springs and dampers are explicit.

The method is of fourth order while nothing touches, and of third order where contacts stay closed without friction. But
the laws of contact are those of Euler's method: the force that stops a body or a joint lasts the whole step, during
which it moves on by h |v| / 2. If that overlap counted at position level, it would bounce. So overlaps, and distances
beyond limits, count as at most 1e-5 m (or rad), unless another `penetration` is chosen. Friction is of second order
(see sliding.py), and not certain to dissipate most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact.ahead import StageLoads
from coupler.contact.damping import undamped
from coupler.contact.formulations import first_rows, touches
from coupler.contact.integration import turned_jump
from coupler.contact.joint_rows import joint_rows
from coupler.contact.pairs import Pair
from coupler.contact.stepping import Impulses, Stepped, contact_impulses
from coupler.dynamics import bias_force
from coupler.inertia import mass_matrix_solve
from coupler.model import Robot
from coupler.simulate.chart import carried_velocities, fitted
from coupler.simulate.integrators import rk4


def rk4_contact_step(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    step: float,
    pairs: Sequence[Pair],
    *,
    penetration: str | float = "limited",
    limits: bool = True,
    **options: Any,
) -> Stepped:
    """Moves a robot by one step.

    Args:
        robot, q, v, tau, step, pairs: as in `contact_impulses`.
        penetration: how overlaps, and distances beyond a joint's limit, count; see `gap_seen`.
        limits, options: as in `contact_impulses`.
    """
    bare, q, v = undamped(robot), np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    passive = bias_force(bare, q, v) - bias_force(robot, q, v)  # of springs and dampers, explicit like all other forces
    contact = contact_impulses(
        *(bare, q, v, tau + passive, step, pairs), penetration=penetration, limits=limits, ahead=True, **options
    )
    forces, moments, of_joints = _forces(contact, step)
    normals = [touch.contact.frame[0] for touch in contact.touches]
    loads = StageLoads(robot, q, v, step, touches(robot, q, pairs), normals, forces, moments)

    def on_joints(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if t == 0.0:  # where the problem was solved
            return tau + contact.rows.T @ contact.solution.impulses / step
        return tau + joint_rows(robot, q, step, limits).rows.T @ of_joints

    def on_bodies(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return loads.loads(q) if t > 0.0 else np.zeros((len(robot.bodies), 6))

    f_ext = on_bodies if forces.any() or moments.any() else None
    q_next, v_next = rk4(robot, q, v, on_joints, step, f_ext=f_ext)
    v_next = _after_impacts(bare, contact, q, q_next, v_next)
    return Stepped(q_next, v_next, contact.touches, contact.total, contact.pending)


def _after_impacts(
    robot: Robot, contact: Impulses, q: np.ndarray, q_next: np.ndarray, v_next: np.ndarray
) -> np.ndarray:
    """Velocities after the impacts at the end of a step from q to q_next, as the loops allow them there."""
    if contact.jump is None:
        return v_next
    jump = mass_matrix_solve(robot, q, contact.rows.T @ contact.jump)
    x = carried_velocities(robot, q_next, v_next) + carried_velocities(robot, q, turned_jump(robot, jump, q, q_next))
    return fitted(robot, q_next, x)[: robot.nv]


def _forces(contact: Impulses, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Impulses spread over a step: forces and moments of contacts, (contacts, 3) each, and forces of joints."""
    rates, touched = contact.solution.impulses / step, contact.touches
    forces, moments = np.zeros((2, len(touched), 3))
    for k, (i, touch) in enumerate(zip(first_rows(touched), touched, strict=True)):
        frame = touch.contact.frame
        forces[k] = frame.T @ rates[i : i + 3]
        rotational = rates[i + 3 : i + touch.cone.size]  # about the normal, and about the tangents
        moments[k] = rotational @ frame[: len(rotational)]
    return forces, moments, rates[sum(touch.cone.size for touch in touched) :]
