"""`coupler study`: reproduces tables and figures of the papers."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from coupler.cli.output import unknown
from coupler.cli.parser import Verb
from coupler.model import ModelError
from coupler.studies import STUDIES, run, run_all

_LISTING = ("studies:", *(f"  {name:12} {about}" for name, (_, about) in STUDIES.items()), "")


def _add(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="the study to run; without a name, all are listed")
    parser.add_argument("--all", action="store_true", help="run all studies, and write one page of them, report.html")
    parser.add_argument("--full", action="store_true", help="longer runs where there are any: more, and larger, robots")
    parser.add_argument(
        "--out", type=Path, default=Path("studies"), help="the folder for data and pictures (default: studies)"
    )


def _run(given: Namespace) -> int:
    if given.all:
        return _run_all(given)
    if given.name is None:
        print("\n".join(_LISTING[:-1]))
        return 0
    if given.name not in STUDIES:
        raise ModelError(unknown("study", given.name, STUDIES))
    run(given.name, given.out, full=given.full)
    return 0


def _run_all(given: Namespace) -> int:
    """Runs all studies; returns 1 if one failed, else 0."""
    if given.name is not None:
        raise ModelError(f"study --all runs every study; leave out {given.name!r}, or --all")
    failed = [record.name for record in run_all(given.out, full=given.full) if record.failure]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


VERB = Verb(
    "study", "reproduce tables and figures of the papers", "coupler study 001-fig14 --out results", _add, _run, _LISTING
)
