"""Design: measures a robot for many values of its parameters, on one machine or on many."""

from coupler.design.designs import Designs
from coupler.design.sweep import sweep

__all__ = ["Designs", "sweep"]
