"""D of clusters in a step: its inverse, or its factors where these are much fewer numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

from coupler.algorithms import efpa
from coupler.contact.step.memory import Visited
from coupler.linear import Cholesky


def factorise(cluster: Visited) -> None:
    """Computes the factors of H: D⁻¹ or the factors of D, and Y = D⁻¹ Uᵀ X. [001, eq. 49, 55, 56]"""
    plan = cluster.shape.factors
    D = efpa.factorised(cluster, partial(Cholesky, plan=plan))
    if plan is None:
        cluster.memory.Dinv = D.inverse()
    else:
        cluster.memory.factors = D.numbers(plan)


def answer(cluster: Visited, z: Any) -> Any:
    """D⁻¹ z: the accelerations of a cluster's joints by forces z on them."""
    if cluster.shape.factors is None:
        return cluster.memory.Dinv @ z
    return Cholesky.stored(cluster.memory.factors, cluster.shape.factors).solve(z)
