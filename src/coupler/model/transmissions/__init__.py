"""What actuators move in place of joints with gears; a new transmission is a class in a file of its own."""

from coupler.model.transmissions.adhesion import Adhesion
from coupler.model.transmissions.cable import Around, Cable
from coupler.model.transmissions.slider_crank import SliderCrank
from coupler.model.transmissions.transmission import End, Transmission, displaced
from coupler.model.transmissions.wrench import Wrench

__all__ = ["Adhesion", "Around", "Cable", "End", "SliderCrank", "Transmission", "Wrench", "displaced"]
