"""The geared chain of the examples against Pinocchio, where that is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler import graph
from geared_chain import Bodies, Chain, forward_dynamics, random_chain

pinocchio: Any = pytest.importorskip("pinocchio", reason="Pinocchio is not installed (pip install pin)")


def add_body(model: Any, parent: int, bodies: Bodies, i: int, name: str) -> int:
    # E maps parent coordinates to the child's; Pinocchio wants the child's pose in the parent.
    placement = pinocchio.SE3(bodies.E[i].T, bodies.r[i])
    joint = model.addJoint(parent, pinocchio.JointModelRZ(), placement, name)
    centre = bodies.h[i] / bodies.m[i]
    cx = pinocchio.skew(centre)
    about_centre = bodies.I[i] + bodies.m[i] * cx @ cx
    model.appendBodyToJoint(joint, pinocchio.Inertia(bodies.m[i], centre, about_centre), pinocchio.SE3.Identity())
    return joint


def tree(chain: Chain) -> Any:
    """Links and rotors as a tree; a rotor is added before its link, because `crba` needs joints depth-first."""
    model = pinocchio.Model()
    model.gravity.linear = np.array([0.0, 0.0, -9.81])
    parent = 0
    for i in range(len(chain.ratio)):
        add_body(model, parent, chain.rotors, i, f"rotor {i}")
        parent = add_body(model, parent, chain.links, i, f"link {i}")
    return model


@pytest.mark.parametrize("n", [1, 4, 12])
def test_forward_dynamics_is_the_projection_of_the_tree(n: int) -> None:
    """H = Gᵀ H_tree G and c = Gᵀ c_tree, where G gives the speeds of rotors and links from those of the links."""
    chain = random_chain(n, seed=n)
    model = tree(chain)
    data = model.createData()
    G = np.zeros((2 * n, n))
    G[0::2] = np.diag(chain.ratio)
    G[1::2] = np.eye(n)
    run = graph.compile(forward_dynamics(chain))
    states = np.random.default_rng(n).normal(size=(3, 20, n))
    result = run(*states)
    for i, (q, qd, tau) in enumerate(zip(*states, strict=True)):
        H = pinocchio.crba(model, data, G @ q)
        H = np.triu(H) + np.triu(H, 1).T  # one triangle is filled
        c = pinocchio.nonLinearEffects(model, data, G @ q, G @ qd)
        expected = np.linalg.solve(G.T @ H @ G, tau - G.T @ c)
        assert np.abs(result[i] - expected).max() <= 1e-11 * np.abs(expected).max()
