"""How contacts share their load once a problem is solved: by further iterations of Newton's method (newton.py).

First, each row gives way a little to its own impulse. That problem has one solution, close to the smallest impulses
that satisfy the laws. Then these impulses are polished under the laws as they are. If that fails, the first solution
stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact.step.answers import SOFT
from coupler.contact.step.refinement.interior import ENDLESS
from coupler.graph import View

_GIVE = 1e-6  # times its mobility: how far a row gives way to its own impulse while load is shared
_SHARING = 8.0  # iterations with such rows at most
_EAGER = 10.0  # times the limit: at first, contacts that open or slip more slowly take a share, too
_FIRST = 3.0  # iterations in which they do
_SHARED = 4.0  # times _GIVE times the velocities that impulses cause: the residual at which load counts as shared
_MOST = 8.0  # iterations that polish at most

STATE = (
    *("shares", "polishes", "shared"),  # 1 while load is shared, 1 while it is polished; iterations of sharing so far
    "fast",  # the largest velocity that a row's own impulse causes, m/s
    *("soft", "give"),  # for Newton's method, times mobilities
    "eager",  # m/s; see `sharp_answer`
)
_OTHERS = ("by_interior", "by_path", "by_gauge", "starts_interior", "starts_path")


def begin(state: View) -> None:
    """Starts to share at once in states that sweeps have solved."""
    state.polishes = state.shared = np.array(0.0)
    _share(state, (state.sharing > 0.0) & (state.residual <= state.limit))


def decide(state: View) -> None:
    """Decides what follows, after `rules.decide`; the solution is kept until there is another."""
    shares, polishes = state.shares > 0.0, state.polishes > 0.0
    later = shares | polishes
    error = np.where(state.error == state.error, state.error, ENDLESS)
    shared = state.shared + state.shares
    enough = shares & ((error <= _SHARED * _GIVE * state.fast) | (shared >= _SHARING))
    halved, tried = error < 0.5 * state.before, state.tried + state.polishes
    reached = polishes & (error <= state.limit)
    goes_on = polishes & halved & np.logical_not(reached) & (tried < _MOST)
    first = np.logical_not(later) & (state.least <= state.limit) & (state.sharing > 0.0)
    state.polishes, state.shared = np.where(enough | goes_on, 1.0, 0.0), shared
    _share(state, first | (shares & np.logical_not(enough)))
    follows = state.shares + state.polishes
    for name in _OTHERS:
        setattr(state, name, np.where(later | first, 0.0, getattr(state, name)))
    state.by_newton = np.where(later | first, follows, state.by_newton)
    state.better = np.where(later, np.where(reached, 1.0, 0.0), state.better)
    state.accepted = np.where(later | first, np.where(polishes & np.logical_not(halved), 0.0, 1.0), state.accepted)
    state.before = np.where(enough | goes_on, error, state.before)
    state.tried = np.where(later | first, np.where(goes_on, tried, 0.0), state.tried)


def _share(state: View, shares: Any) -> None:
    state.shares = np.where(shares, 1.0, 0.0)
    state.give, state.soft = np.where(shares, _GIVE, 0.0), np.where(shares, _GIVE, SOFT)
    eager = np.maximum(_EAGER * state.limit, _SHARED * _GIVE * state.fast)
    state.eager = np.where(shares & (state.shared < _FIRST), eager, 0.0)
