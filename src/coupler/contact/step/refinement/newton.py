"""Newton's method on the sharp laws of contacts and joints: λ = P(λ − w/m), with the mobility m of rows.

The method is semismooth: laws have kinks, and derivatives are those of the piece that a block is on. Where it
converges, a few iterations make impulses exact to rounding.

Where contacts share their load, another problem is solved for some iterations: each row gives way to its own impulse,
so that w + σ m λ takes the place of w, with σ = 1e-6. Its solution is next to the smallest of all impulses that satisfy
the laws, and a few iterations on the laws as they are lead from there to those. In the first iterations, contacts that
hardly open count as pressed, and contacts that hardly slip as sticking, so that they get a share.
"""

from __future__ import annotations

import numpy as np

from coupler.contact import laws
from coupler.contact.step.answers import sharp_answer
from coupler.contact.step.blocks import mobilities
from coupler.contact.step.refinement.interior import by_rows
from coupler.graph import View


def linearise_contact(own: View) -> None:
    normal, *others = mobilities(own)
    mobility = [normal + laws.TINY, *others]
    w = own.w + own.give * by_rows(own, mobility) * own.point
    own.p, own.Q = sharp_answer(mobility, own.friction, own.point, w, own.soft, own.eager)


def linearise_joint(own: View) -> None:
    w = own.w[0] + own.give * own.a * own.point[0]
    target, held, brake = laws.joint_regime(own.a, own.low, own.high, own.bound, own.point[0], w)
    stiff = 1.0 / (own.soft * (own.a + laws.TINY))
    own.p = np.array([np.where(held, (target - w) * stiff, brake - own.point[0])])
    own.Q = np.array([[np.where(held, stiff, 0.0)]])


def step_contact(own: View) -> None:
    own.impulse = laws.inside_cone(own.friction, own.point + own.p - own.Q @ own.dw)


def step_joint(own: View) -> None:
    own.impulse = own.point + own.p - own.Q @ own.dw
