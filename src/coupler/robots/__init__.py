"""The bundled robots. Each is built by a function in a file of the same name.

robot = coupler.robots.load("mini_cheetah")
chain = coupler.robots.load("geared_chain", links=100)
"""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from coupler.forks import imports
from coupler.model import ModelError, Robot
from coupler.model.wording import clipped, listed

__all__ = ["load", "names"]

_NAMES = (
    "mini_cheetah",
    "mit_humanoid",
    "mit_humanoid_leg",
    "tello",
    "tello_with_arms",
    "jvrc1",
    "geared_chain",
    "belt_chain",
    "four_bar",
    "planar_leg_linkage",
    "six_bar",
    "slider_crank",
    "five_bar",
    "rh5_manus",
    "charmie",
)


def names() -> list[str]:
    """The names of all bundled robots."""
    return list(_NAMES)


def load(name: str, **options: Any) -> Robot:
    """A bundled robot.

    Args:
        name: one of `names()`.
        options: options of the robot's own function, such as `links=12` of "geared_chain".

    Raises:
        ModelError: for an unknown robot or option; it lists the known ones.
    """
    if not isinstance(name, str) or name not in _NAMES:
        similar = get_close_matches(str(name).lower(), _NAMES, n=1)
        hint = f" did you mean {similar[0]!r}?" if similar else ""
        raise ModelError(
            f"there is no bundled robot {clipped(name)};{hint} there are {listed(_NAMES, most=len(_NAMES))}"
        )
    with imports():
        describe = getattr(import_module(f"coupler.robots.{name}"), name)
    parameters = inspect.signature(describe).parameters
    unknown = [option for option in options if option not in parameters]
    if unknown:
        hint = f"its options are {listed(parameters)}" if parameters else "it has none"
        raise ModelError(f"robot {name!r} has no option {listed(unknown)}; {hint}")
    return describe(**options)
