"""`coupler check`: everything about a robot that is suspicious."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from coupler.cli.checks import SEVERITIES, Finding, examine
from coupler.cli.loading import load_robot
from coupler.cli.output import complain, fitted, heading, print_json
from coupler.cli.parser import Verb, add_file, add_json
from coupler.model import ModelError
from coupler.model.words import counted

__all__ = ["VERB"]

FINE, SUSPICIOUS, UNREADABLE = range(3)  # exit statuses


def _add(parser: ArgumentParser) -> None:
    add_file(parser)
    add_json(parser)


def _run(given: Namespace) -> int:
    try:
        robot = load_robot(given)
    except (ModelError, OSError) as error:
        complain(error)
        return UNREADABLE
    found = examine(robot)
    suspicious = any(finding.severity != "note" for _, finding in found)
    if given.json:
        told = [{"check": check, **vars(finding)} for check, finding in found]
        print_json({"name": robot.name, "suspicious": suspicious, "findings": told})
    else:
        print(_text(robot.name, [finding for _, finding in found]))
    return SUSPICIOUS if suspicious else FINE


def _text(name: str, found: list[Finding]) -> str:
    counts = [counted(sum(finding.severity == severity for finding in found), severity) for severity in SEVERITIES]
    lines = [heading(f"{name}: {', '.join(counts)}")]
    for finding in found:
        lines += ["", fitted(finding.what, "  ", f"{finding.severity}: "), fitted(finding.hint, "    ", "  → ")]
    return "\n".join(lines)


VERB = Verb(
    "check",
    "say what is suspicious about a robot",
    "coupler check robot.urdf --json",
    _add,
    _run,
    ("exit status: 0 nothing, or notes only; 1 something is suspicious; 2 the file cannot be loaded", ""),
)
