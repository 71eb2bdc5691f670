"""The user's choice of how loops are closed: analytically or numerically. [003, §III-B]"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from coupler.model.errors import ModelError
from coupler.model.wording import clipped, listed

Closing = Literal["auto", "analytical", "numerical"]
ClosureChoice = Closing | Mapping[str, Closing]


def chosen_closure(choice: Any, names: Iterable[str]) -> dict[str, Closing]:
    """For each loop and coupling, by name, how it is to be closed.

    Args:
        choice: one word for all, or words by name; what is not named is "auto".
        names: names of all loops and couplings.

    Raises:
        ModelError: for an unknown word or name.
    """
    words, known = get_args(Closing), list(names)
    by_name = dict(choice) if isinstance(choice, Mapping) else {}
    default = "auto" if isinstance(choice, Mapping) else choice
    for word in (default, *by_name.values()):
        if not isinstance(word, str) or word not in words:
            raise ModelError(f"closure must be one of {listed(words)}, got {clipped(word)}")
    for name in by_name:
        if name not in known:
            names = listed(known, like=name)
            raise ModelError(f"closure: there is no loop or coupling {clipped(name)}; there are {names}")
    return {name: by_name.get(name, default) for name in known}
