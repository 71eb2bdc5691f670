"""What may be wrong with a robot: each check is a small function that yields its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from coupler.cli.checks.actuation import actuators, gravity, limits, motors_without_effect
from coupler.cli.checks.closures import idle_freedoms, open_loops, remarks, singular_loops, warnings
from coupler.cli.checks.finding import SEVERITIES, Finding
from coupler.cli.checks.masses import centres, dummies, gyration, ideal_inertias, mass_matrix, massless
from coupler.model import Robot

__all__ = ["CHECKS", "SEVERITIES", "Finding", "examine"]

CHECKS: tuple[Callable[[Robot], Iterator[Finding]], ...] = (
    warnings,
    ideal_inertias,
    gyration,
    centres,
    massless,
    dummies,
    mass_matrix,
    remarks,
    open_loops,
    singular_loops,
    idle_freedoms,
    limits,
    motors_without_effect,
    actuators,
    gravity,
)


def examine(robot: Robot) -> list[tuple[str, Finding]]:
    """The findings of all checks, the most severe first, each with the name of its check."""
    findings = [(check.__name__, finding) for check in CHECKS for finding in check(robot)]
    return sorted(findings, key=lambda pair: SEVERITIES.index(pair[1].severity))
