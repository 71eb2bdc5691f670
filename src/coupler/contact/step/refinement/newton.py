"""Newton's method on the sharp laws of contacts and joints: λ = P(λ − w/m), with the mobility m of rows.

The method is semismooth: laws have kinks, and derivatives are those of the piece that a block is on. Where it
converges, a few iterations make impulses exact to rounding.
"""

from __future__ import annotations

import numpy as np

from coupler.contact import laws
from coupler.contact.step.answers import SOFT, sharp_answer
from coupler.contact.step.blocks import mobilities
from coupler.graph import View


def linearise_contact(own: View) -> None:
    normal, *others = mobilities(own)
    own.p, own.Q = sharp_answer([normal + laws.TINY, *others], own.friction, own.point, own.w)


def linearise_joint(own: View) -> None:
    target, held, brake = laws.joint_regime(own.a, own.low, own.high, own.bound, own.point[0], own.w[0])
    stiff = 1.0 / (SOFT * (own.a + laws.TINY))
    own.p = np.array([np.where(held, (target - own.w[0]) * stiff, brake - own.point[0])])
    own.Q = np.array([[np.where(held, stiff, 0.0)]])


def step_contact(own: View) -> None:
    own.impulse = laws.inside_cone(own.friction, own.point + own.p - own.Q @ own.dw)


def step_joint(own: View) -> None:
    own.impulse = own.point + own.p - own.Q @ own.dw
