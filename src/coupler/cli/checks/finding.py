"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["SEVERITIES", "Finding", "Severity"]

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True)
class Finding:
    """Something about a robot that its user should know.

    Attributes:
        severity: "error" if dynamics cannot be computed, "warning" if it is probably a mistake, "note" if it may be
            meant so.
        what: the thing, and the parts that it is about.
        hint: the way out.
    """

    severity: Severity
    what: str
    hint: str
