"""`coupler check`: reports everything about a robot that is suspicious."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from coupler.cli.checks import SEVERITIES, Finding, examine
from coupler.cli.loading import load_robot
from coupler.cli.output import complain, fitted, heading, print_json
from coupler.cli.parser import Verb, add_file, add_json
from coupler.model import ModelError
from coupler.model.wording import counted

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
    findings = examine(robot)
    suspicious = any(finding.severity != "note" for _, finding in findings)
    if given.json:
        rows = [{"check": check, **vars(finding)} for check, finding in findings]
        print_json({"name": robot.name, "suspicious": suspicious, "findings": rows})
    else:
        print(_text(robot.name, [finding for _, finding in findings]))
    return SUSPICIOUS if suspicious else FINE


def _text(name: str, findings: list[Finding]) -> str:
    counts = [(sum(finding.severity == severity for finding in findings), severity) for severity in SEVERITIES]
    summary = ", ".join(counted(count, severity) for count, severity in counts if count)
    lines = [heading(f"{name}: {summary or 'nothing to report'}")]
    for finding in findings:
        lines += ["", fitted(finding.what, "  ", f"{finding.severity}: ")]
        lines += [fitted(finding.hint, "    ", "  → ")] if finding.hint else []
    return "\n".join(lines)


VERB = Verb(
    "check",
    "report what is suspicious about a robot",
    "coupler check robot.urdf --json",
    _add,
    _run,
    ("exit status: 0 nothing suspicious; 1 errors or warnings; 2 the file cannot be loaded", ""),
)
