"""Which rule of the refinement each state follows, and when it changes: kernels of a state.

Newton's method comes first. Where it does not halve the residual, the interior point takes over. It tries Newton's
method now and then, and where it has come much nearer. When the interior point is spent, it starts once more at
another scale. When it is spent again, paths are followed, one after the other from several starts. They, too, try
Newton's method, where they see their end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.step.refinement import interior, path, shares
from coupler.graph import View

_NEWTON = 8.0  # iterations of Newton's method in a row at most
_INTERIOR = 30.0  # iterations of the interior point at most
_FIRST_TRY, _NEXT_TRY = 6.0, 3.0  # iterations of the interior point before Newton's method is tried, and tried again
_NEARER = 0.1  # of the residual where Newton's method was tried last: there it is tried at once
_STALLED, _STALLS = 0.05, 3.0  # so many steps in a row that are so short end the interior point
_SHORT = 0.2  # after a step so short, the next one only centres
_PATH = 100.0  # iterations of a path at most
# Where paths start, one after the other: θ₀ relative to `speed`, and how much of the sweeps' impulses they start from.
_PATH_STARTS = ((0.1, 1.0), (0.03, 1.0), (0.1, 0.0), (1.0, 0.0), (0.3, 1.0), (0.01, 1.0), (3.0, 0.0), (0.01, 0.0))

STATE = (
    *("by_newton", "by_interior", "by_path", "by_gauge"),  # 1 for the rule that the state follows
    *("starts_interior", "starts_path"),  # 1 where that rule begins
    *("limit", "least", "before", "error"),  # residuals, m/s: to reach, the best, the last accepted, the present one
    *("tried", "turns"),  # iterations of Newton's method in a row, and of the interior point
    "until_newton",  # iterations of the interior point until it tries Newton's method
    *("stalls", "gauged", "steps", "paths"),  # how many: short steps in a row, gauges, iterations of a path, paths
    *("speed", "scale"),  # how large velocities and impulses are, in units of unit mobility
    *("normals", "from_sweeps"),  # how many normals there are; how much of the sweeps' impulses a path starts from
    *("better", "accepted"),  # 1 if the present impulses are the best so far, and if the next iteration starts there
)


def set_no_limit(state: View) -> None:
    state.limit = np.array(interior.ENDLESS)


def clear_scales(state: View) -> None:
    state.speed = state.scale = state.limit = state.normals = state.fast = np.array(0.0)


def begin(state: View) -> None:
    state.limit = state.tolerance * np.maximum(state.limit, 1.0)
    shares.begin(state)
    state.speed = state.speed + laws.TINY
    state.scale = np.maximum(state.scale, state.speed)
    state.least = state.before = state.error = state.residual
    state.by_newton = np.array(1.0)
    state.by_interior = state.by_path = state.by_gauge = state.starts_interior = state.starts_path = np.array(0.0)
    state.tried = state.turns = state.stalls = state.gauged = state.steps = state.paths = np.array(0.0)
    state.until_newton = np.array(_FIRST_TRY)
    state.from_sweeps = np.array(1.0)
    for name in (*interior.STATE, *path.STATE):
        setattr(state, name, np.array(0.0))


def good_enough(state: View) -> Any:
    return (state.residual <= state.tolerance) & (state.sharing <= 0.0)


def ended(state: View) -> Any:
    followed = state.by_newton + state.by_interior + state.by_path + state.by_gauge
    found = (state.least <= state.limit) | ((state.paths > 0.0) & (state.least <= state.enough))
    return (found & (state.shares + state.polishes <= 0.0)) | (followed <= 0.0)


def clear_sums(state: View) -> None:
    state.iterations = state.iterations + 1.0
    state.products = state.count = np.array(0.0)
    state.length = np.array(interior.ENDLESS)
    path.clear_sums(state)


def decide_path(state: View) -> None:
    path.decide(state, state.sign)


def decide(state: View) -> None:
    """Judges the iteration, and chooses the rule of the next one."""
    by_newton, by_interior, by_path, by_gauge = (getattr(state, name) > 0.0 for name in STATE[:4])
    finite = state.error == state.error
    error = np.where(finite, state.error, interior.ENDLESS)
    state.better = np.where(error < state.least, 1.0, 0.0)
    state.least = np.minimum(state.least, error)
    # Newton's method goes on while it halves the residual. Then the rule resumes that has tried it.
    halved, tried = by_newton & (error < 0.5 * state.before), state.tried + state.by_newton
    goes_on = halved & (tried < _NEWTON)
    gives_up = by_newton & np.logical_not(goes_on)
    # The interior point tries Newton's method now and then, until it is spent. A path tries it when it sees its end.
    turns, until_newton = state.turns + state.by_interior, state.until_newton - state.by_interior
    stalls = np.where(by_interior, np.where(state.length < _STALLED, state.stalls + 1.0, 0.0), state.stalls)
    stalls = np.where(by_interior & np.logical_not(finite), _STALLS, stalls)
    due = (until_newton <= 0.0) | (error < _NEARER * state.before)
    tries = (by_interior & finite & due) | (by_path & (state.tries > 0.0) & finite)
    resumes = gives_up | ((by_interior | by_path) & np.logical_not(tries))
    # When it is spent, the interior point starts once more, from impulses as large as those that would hold all rows
    # (gauge.py). When it is spent again, paths follow. Neither is worth it where the residual is small enough by then.
    spent, gauged = (turns >= _INTERIOR) | (stalls >= _STALLS), state.gauged + state.by_gauge
    near = state.least <= np.maximum(state.limit, state.enough)
    gauges = resumes & spent & (gauged <= 0.0) & np.logical_not(near)
    turns, stalls = np.where(by_gauge, 0.0, turns), np.where(by_gauge, 0.0, stalls)
    until_newton = np.where(by_gauge, _FIRST_TRY, until_newton)
    spent = spent & ((gauged > 0.0) | near) & np.logical_not(by_gauge)
    steps = state.steps + state.by_path
    next_path = spent & ((state.paths <= 0.0) | (steps >= _PATH)) & np.logical_not(goes_on | tries)
    paths, steps = np.where(next_path, state.paths + 1.0, state.paths), np.where(next_path, 0.0, steps)
    state.by_newton = np.where(goes_on | tries, 1.0, 0.0)
    state.by_interior = np.where((resumes & np.logical_not(spent | gauges)) | by_gauge, 1.0, 0.0)
    state.by_gauge, state.gauged = np.where(gauges, 1.0, 0.0), gauged
    state.by_path = np.where(resumes & spent & (paths <= float(len(_PATH_STARTS))) & np.logical_not(near), 1.0, 0.0)
    state.starts_interior = np.where((gives_up | by_gauge) & (turns <= 0.0), state.by_interior, 0.0)
    state.starts_path = np.where(next_path, state.by_path, 0.0)
    state.accepted = np.where(halved | tries, 1.0, 0.0)
    state.before = np.where(halved | tries, error, state.before)
    state.tried, state.turns, state.stalls = np.where(goes_on, tried, 0.0), turns, stalls
    state.until_newton = np.where(tries & by_interior, _NEXT_TRY, until_newton)
    centres = np.where(by_interior, np.where(state.length < _SHORT, 1.0, 0.0), state.centring)
    state.centring = np.where(by_gauge, 0.0, centres)
    state.steps, state.paths = steps, paths
    for k, (part, swept) in enumerate(_PATH_STARTS):
        begins = next_path & (paths == k + 1.0)
        state.theta = np.where(begins, part * state.speed, state.theta)
        state.from_sweeps = np.where(begins, swept, state.from_sweeps)
