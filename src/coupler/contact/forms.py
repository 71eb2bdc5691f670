"""A form that only contact knows."""

from __future__ import annotations

from dataclasses import dataclass

from coupler.model.shapes import Geometry

__all__ = ["Point"]


@dataclass(frozen=True, eq=False)
class Point(Geometry):
    """A point, at the origin of its frame."""
