"""How bundled robots are named and loaded, and what is said of names and options that do not exist."""

from __future__ import annotations

from typing import Any

import pytest

from coupler.model import ModelError
from coupler.robots import load, names


def test_names() -> None:
    assert len(set(names())) == len(names()) == 13
    names().clear()
    assert names()


@pytest.mark.parametrize(
    ("asked", "near"),
    [("mini_cheeta", "mini_cheetah"), ("MIT_Humanoid", "mit_humanoid"), ("gear_chain", "geared_chain")],
)
def test_an_unknown_robot(asked: str, near: str) -> None:
    with pytest.raises(ModelError, match=f"no bundled robot '{asked}'; did you mean '{near}'") as caught:
        load(asked)
    assert all(repr(name) in str(caught.value) for name in names())


@pytest.mark.parametrize("asked", ["xyz", "", None, 3])
def test_a_robot_that_is_like_no_other(asked: Any) -> None:
    with pytest.raises(ModelError, match=r"no bundled robot .*; there are 'mini_cheetah'"):
        load(asked)


def test_unknown_options() -> None:
    with pytest.raises(ModelError, match="'geared_chain' has no option 'link'; its options are 'links', 'seed'"):
        load("geared_chain", link=3)
    with pytest.raises(ModelError, match="'mini_cheetah' has no option 'links'; it has none"):
        load("mini_cheetah", links=3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("geared_chain", {"links": 0}, "links must be a whole number from 1 on, got 0"),
        ("geared_chain", {"links": 2.5}, "links must be a whole number"),
        ("geared_chain", {"links": True}, "links must be a whole number"),
        ("geared_chain", {"seed": -1}, "seed must be a whole number from 0 on, got -1"),
        ("geared_chain", {"seed": "one"}, "seed must be a whole number"),
        ("belt_chain", {"links": 0}, "links must be a whole number from 1 on"),
        ("belt_chain", {"links": 5}, "links must be a multiple of per_cluster, 2, got 5"),
        ("belt_chain", {"links": 4, "per_cluster": 3}, "multiple of per_cluster, 3, got 4"),
        ("belt_chain", {"per_cluster": 4}, "per_cluster must be 2 or 3, got 4"),
    ],
)
def test_wrong_values(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load(name, **options)
