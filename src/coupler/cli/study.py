"""`coupler study`: reproduces tables and figures of the papers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from coupler.cli.output import unknown
from coupler.cli.parser import Verb
from coupler.model import ModelError
from coupler.studies import STUDIES, run

__all__ = ["VERB"]

_LISTING = ("studies:", *(f"  {name:12} {about}" for name, (_, about) in STUDIES.items()), "")


def _add(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="the study to run; without a name, all are listed")
    parser.add_argument(
        "--out", type=Path, default=Path("studies"), help="the folder for data and pictures (default: studies)"
    )


def _run(given: Namespace) -> int:
    if given.name is None:
        print("\n".join(_LISTING[:-1]))
        return 0
    if given.name not in STUDIES:
        raise ModelError(unknown("study", given.name, STUDIES))
    run(given.name, given.out)
    return 0


VERB = Verb(
    "study",
    "reproduce a table or figure of the papers",
    "coupler study 001-fig14 --out results",
    _add,
    _run,
    _LISTING,
)
