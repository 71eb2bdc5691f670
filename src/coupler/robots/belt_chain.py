"""A chain of links in pairs or triples, driven by belts from rotors on the link before them. [001, fig. 8f]"""

from __future__ import annotations

from typing import Literal

import numpy as np

from coupler.mechanisms import linear
from coupler.model import ModelError, Robot
from coupler.robots._chain import Chain, whole

# The bodies of a cluster, in order.
_BODIES = {
    2: ("link-A", "rotor-A", "rotor-B", "link-B"),
    3: ("link-A", "link-B", "link-C", "rotor-A", "rotor-B", "rotor-C"),
}


def belt_chain(links: int = 12, seed: int | None = None, per_cluster: Literal[2, 3] = 2) -> Robot:
    """The chain, on the ground.

    Args:
        links: the number of links, a multiple of `per_cluster`.
        seed: the seed of random parameters; without one, all links are identical and move in a plane.
        per_cluster: the number of links in a cluster.
    """
    if per_cluster not in _BODIES:
        raise ModelError(f"per_cluster must be 2 or 3, got {per_cluster!r}")
    if whole("links", links, least=1) % per_cluster:
        raise ModelError(f"links must be a multiple of per_cluster, {per_cluster}, got {links}")
    chain, last = Chain("belt_chain", seed), "ground"
    for i in range(links // per_cluster):
        base = last
        for part in _BODIES[per_cluster]:
            body = f"{part}-{i}"
            if part.startswith("link"):
                chain.add_link(body, f"{body}_joint", last, contact=body.replace("link", "cp"))
                last = body
            else:
                chain.add_rotor(body, f"{body}_joint", base)
        driving, driven = ([f"{part}-{n}-{i}_joint" for n in "ABC"[:per_cluster]] for part in ("link", "rotor"))
        chain.b.couple(f"cluster-{i}", driving + driven, linear(_belts(chain, per_cluster)), driving)
    return chain.b.build()


def _belts(chain: Chain, count: int) -> np.ndarray:
    """G: the positions of links and rotors from those of the links.

    A rotor drives its link through a gear, and through belts over the joints before it, which therefore turn it too.
    """
    ratios = np.zeros((count, count))
    for row in range(count):
        ratios[row, : row + 1] = chain.ratio(6.0) * np.cumprod([chain.ratio(1.0) for _ in range(row + 1)])
    return np.vstack([np.eye(count), ratios])
