"""Linear relations between joints, as readers of files make them, and the element for those of several joints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from coupler.io.limits import COUPLED
from coupler.io.xml import Element
from coupler.mechanisms import linear, polynomial
from coupler.model import ModelError
from coupler.model.wording import clipped

Dependence = tuple[list[str], Any, list[str]]  # all joints, γ, and the independent ones: arguments of `couple`


def solved_for(dependent: str, row: Mapping[str, float], constant: float = 0.0) -> Dependence:
    """The relation Σ row × position = constant, solved for one of its joints.

    Raises:
        ModelError: if the joint's factor is too small beside the others.
    """
    free = [joint for joint in row if joint != dependent]
    with np.errstate(all="ignore"):
        last = np.array([*(-row[joint] for joint in free), constant]) / row[dependent]
    if not np.isfinite(last).all():
        raise ModelError(
            f"its factor of joint {clipped(dependent)}, {row[dependent]:g}, is too small beside the others"
        )
    G = np.vstack([np.eye(len(free)), last[:-1]])
    return [*free, dependent], linear(G, [*np.zeros(len(free)), last[-1]]), free


def read_dependence(element: Element, check: Callable[[str], str]) -> Dependence:
    """Joints that each depend linearly on others, or on a single one by a polynomial.

    Args:
        element: with a <joint name offset> for each dependent joint, and <depends_on joint multiplier> in it.
        check: refuses a joint that cannot be coupled; gives its name in the robot.
    """
    dependents = element.all("joint")
    terms = [term for dependent in dependents for term in dependent.all("depends_on")]
    free = [part.require("joint") for part in (*element.all("independent"), *terms)]
    free = list(dict.fromkeys(free))
    names = [dependent.require("name") for dependent in dependents]
    for dependent in dependents:
        if not dependent.all("depends_on"):
            raise dependent.error("it depends on nothing; write <depends_on joint=... multiplier=...> in it")
    joints = [check(joint) for joint in (*free, *names)]
    independent = joints[: len(free)]
    if any(term.has("polynomial") for term in terms):
        if len(terms) != 1 or len(free) != 1:
            raise element.error("a polynomial gives one joint from one other; write a separate coupling for it")
        coefficients = terms[0].numbers("polynomial", None)
        check_amount(element, len(coefficients))
        return joints, polynomial(list(coefficients)), independent
    check_amount(element, len(joints))
    G, offset = np.zeros((len(names), len(free))), np.zeros(len(names))
    for i, dependent in enumerate(dependents):
        offset[i] = dependent.number("offset", 0.0)
        for term in dependent.all("depends_on"):
            G[i, free.index(term.require("joint"))] += term.number("multiplier", 1.0)
            offset[i] += term.number("offset", 0.0)
    return joints, linear(np.vstack([np.eye(len(free)), G]), [*np.zeros(len(free)), *offset]), independent


def check_amount(element: Element, count: int) -> None:
    """Refuses a coupling that relates too much."""
    if count > COUPLED:
        raise element.error(f"it relates {count} joints or powers of one; a coupling in a file may relate {COUPLED}")
