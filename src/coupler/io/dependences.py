"""Linear relations between joints, as readers of files make them, and the element for those of several joints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from coupler.io.limits import COUPLED
from coupler.io.xml import Element
from coupler.mechanisms import linear, polynomial

Dependence = tuple[list[str], Any, list[str]]  # all joints, γ, and the independent ones: arguments of `couple`


def solved_for(dependent: str, row: Mapping[str, float], constant: float = 0.0) -> Dependence:
    """The relation Σ row × position = constant, solved for one of its joints."""
    free = [joint for joint in row if joint != dependent]
    G = np.vstack([np.eye(len(free)), [-row[joint] / row[dependent] for joint in free]])
    return [*free, dependent], linear(G, [0.0] * len(free) + [constant / row[dependent]]), free


def read_dependence(element: Element, check: Callable[[str], str]) -> Dependence:
    """Joints that each depend linearly on others, or on a single one by a polynomial.

    Args:
        element: with a <joint name offset> for each dependent joint, and <depends_on joint multiplier> in it.
        check: refuses a joint that cannot be coupled; gives its name in the robot.
    """
    dependents = element.all("joint")
    free = [own.require("joint") for own in element.all("independent")]
    free += [on.require("joint") for own in dependents for on in own.all("depends_on")]
    free = list(dict.fromkeys(free))
    names = [own.require("name") for own in dependents]
    for own in dependents:
        if not own.all("depends_on"):
            raise own.error("it depends on nothing; write <depends_on joint=... multiplier=...> in it")
    named = [check(joint) for joint in (*free, *names)]
    independent = named[: len(free)]
    terms = [on for own in dependents for on in own.all("depends_on")]
    if any(term.has("polynomial") for term in terms):
        if len(terms) != 1 or len(free) != 1:
            raise element.error("a polynomial gives one joint from one other; write a separate coupling for it")
        coefficients = terms[0].numbers("polynomial", None)
        check_amount(element, len(coefficients))
        return named, polynomial(list(coefficients)), independent
    check_amount(element, len(named))
    G, offset = np.zeros((len(names), len(free))), np.zeros(len(names))
    for i, own in enumerate(dependents):
        offset[i] = own.number("offset", 0.0)
        for on in own.all("depends_on"):
            G[i, free.index(on.require("joint"))] += on.number("multiplier", 1.0)
            offset[i] += on.number("offset", 0.0)
    return named, linear(np.vstack([np.eye(len(free)), G]), [*np.zeros(len(free)), *offset]), independent


def check_amount(element: Element, count: int) -> None:
    """Refuses a coupling that relates too much."""
    if count > COUPLED:
        raise element.error(f"it relates {count} joints or powers of one; a coupling in a file may relate {COUPLED}")
