"""Transmissions whose gear depends on the pose; a new one is a class in a file of its own."""

from coupler.model.transmissions.cable import Around, Cable
from coupler.model.transmissions.slider_crank import SliderCrank
from coupler.model.transmissions.transmission import End, Transmission, displaced
from coupler.model.transmissions.wrench import Wrench

__all__ = ["Around", "Cable", "End", "SliderCrank", "Transmission", "Wrench", "displaced"]
