"""A finding of a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True)
class Finding:
    """Something about a robot that its user should know.

    Attributes:
        severity: "error" if dynamics cannot be computed, "warning" if it is probably a mistake, "note" if it may be
            intended.
        what: what was found, and in which parts of the robot.
        hint: what to do about it; may be empty.
    """

    severity: Severity
    what: str
    hint: str
