"""Sub-mechanisms whose loops have a closed form: functions γ from independent joint positions to all of them."""

from coupler.mechanisms.four_bar import FourBar
from coupler.mechanisms.transmissions import (
    Linear,
    Polynomial,
    belt,
    differential,
    gear,
    linear,
    polynomial,
    rack_and_pinion,
)

__all__ = ["FourBar", "Linear", "Polynomial", "belt", "differential", "gear", "linear", "polynomial", "rack_and_pinion"]
