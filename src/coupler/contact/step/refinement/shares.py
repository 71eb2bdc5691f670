"""How contacts share their load, once a problem is solved: by further iterations of Newton's method (see newton.py).

First each row gives way to its own impulse, a little: that problem has one solution, next to the smallest impulses that
keep the laws. Then these are polished on the laws as they are. If that leads to no solution, the first one stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact.step.answers import SOFT
from coupler.contact.step.refinement.interior import ENDLESS
from coupler.graph import View

_GIVE = 1e-6  # of mobilities: how rows give way to their own impulses while load is shared
_SHARING = 8.0  # iterations of that
_EAGER = 10.0  # times the limit: contacts that open or slip more slowly are asked to carry a share, at first
_FIRST = 3.0  # iterations
_SHARED = 4.0  # times _GIVE, and what impulses by themselves move: impulses that are shared leave no more
_MOST = 8.0  # iterations that polish

STATE = (
    *("shares", "polishes", "shared"),  # 1 while load is shared, and then polished; how many iterations it was shared
    "fast",  # how fast λ of a row by itself moves it, m/s
    *("soft", "give", "eager"),  # of mobilities, in Newton's method; m/s, see `sharp_answer`
)
_OTHERS = ("by_interior", "by_path", "by_gauge", "starts_interior", "starts_path")


def begin(state: View) -> None:
    """Shares at once what sweeps have solved."""
    state.polishes = state.shared = np.array(0.0)
    _share(state, (state.sharing > 0.0) & (state.residual <= state.limit))


def decide(state: View) -> None:
    """What comes next, after the driver's own decision: the solution is kept until there is another."""
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
