"""Design: what becomes of a robot when its numbers change, for many numbers, on one machine or on many."""

from coupler.design.designs import Designs
from coupler.design.sweep import sweep

__all__ = ["Designs", "sweep"]
