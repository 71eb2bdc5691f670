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


def linearise_contact(block: View) -> None:
    normal, *others = mobilities(block)
    mobility = [normal + laws.TINY, *others]
    w = block.w + block.give * by_rows(block, mobility) * block.point
    block.p, block.Q = sharp_answer(mobility, block.friction, block.point, w, block.soft, block.eager)


def linearise_joint(block: View) -> None:
    w = block.w[0] + block.give * block.a * block.point[0]
    target, held, brake = laws.joint_regime(block.a, block.low, block.high, block.bound, block.point[0], w)
    stiff = 1.0 / (block.soft * (block.a + laws.TINY))
    block.p = np.array([np.where(held, (target - w) * stiff, brake - block.point[0])])
    block.Q = np.array([[np.where(held, stiff, 0.0)]])


def step_contact(block: View) -> None:
    block.impulse = laws.inside_cone(block.friction, block.point + block.p - block.Q @ block.dw)


def step_joint(block: View) -> None:
    block.impulse = block.point + block.p - block.Q @ block.dw
