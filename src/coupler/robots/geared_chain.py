"""A chain of links, each geared to a rotor on the link before it. [001, fig. 8e]"""

from __future__ import annotations

from coupler.mechanisms import gear
from coupler.model import Robot
from coupler.robots._chain import Chain, whole


def geared_chain(links: int = 12, seed: int | None = None) -> Robot:
    """The chain, on the ground.

    Args:
        links: the number of links.
        seed: the seed of random parameters; without one, all links are identical and move in a plane.
    """
    chain, parent = Chain("geared_chain", seed), "ground"
    for i in range(whole("links", links, least=1)):
        link, joints = f"link-{i}", [f"link-joint-{i}", f"rotor-joint-{i}"]
        chain.add_link(link, joints[0], parent, contact=f"cp-{i}")
        chain.add_rotor(f"rotor-{i}", joints[1], parent)
        chain.b.couple(f"cluster-{i}", joints, gear(chain.ratio(6.0)), joints[:1])
        parent = link
    return chain.b.build()
