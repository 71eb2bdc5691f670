"""The size that a model in MJCF reaches once MuJoCo has made its copies, computed before MuJoCo makes them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coupler.io.limits import BODIES, ELEMENTS
from coupler.io.xml import Element
from coupler.model.wording import clipped

_COPYING = ("replicate", "composite", "flexcomp")
_LARGEST_SIZE = 1e6  # of what <size> reserves: constraints, contacts, keyframes, user data


def check_amounts(root: Element, included: Mapping[Element, Element]) -> None:
    """Refuses a model with too many elements, or too much room.

    Args:
        root: the root element of the main file.
        included: for each <include> the root element of its file.

    Raises:
        ModelError: naming the element that asks for too much.
    """
    total, bodies, pending = 0.0, 0.0, [(root, 1.0)]
    while pending:
        element, copies = pending.pop()
        if element.tag == "size":
            _check_sizes(element)
        if element.tag in _COPYING and element.has("count"):
            copies *= max(1.0, float(np.prod(np.abs(element.numbers("count", None)))))
        total, bodies = total + copies, bodies + copies * (element.tag == "body")
        if total > ELEMENTS or bodies > BODIES:
            limit = f"{ELEMENTS} elements" if total > ELEMENTS else f"{BODIES} bodies"
            raise element.error(f"with it the model has more than {limit}, copies among them; use fewer")
        inside = [*element.children, *([included[element]] if element in included else [])]
        pending += [(child, copies) for child in inside]


def _check_sizes(element: Element) -> None:
    for name in (name for name in element.attributes if name.startswith("n")):
        if np.any(np.abs(element.numbers(name, None, finite=False)) > _LARGEST_SIZE):
            raise element.error(f"its {name} must not exceed {_LARGEST_SIZE:g}, got {clipped(element.get(name))}")
