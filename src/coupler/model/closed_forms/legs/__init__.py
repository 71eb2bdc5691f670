"""The kinds of legs, one per file. A new kind is a subclass of `Leg` in a file of its own, and an entry in `LEGS`."""

from coupler.model.closed_forms.legs.crank import Crank
from coupler.model.closed_forms.legs.elbow import Elbow
from coupler.model.closed_forms.legs.leg import Leg, Limits
from coupler.model.closed_forms.legs.slide import Slide
from coupler.model.closed_forms.legs.sliding_elbow import SlidingElbow
from coupler.model.closed_forms.legs.spherical_elbow import SphericalElbow

__all__ = ["LEGS", "Leg", "Limits", "Slide"]

LEGS: tuple[type[Leg], ...] = (Slide, Elbow, SlidingElbow, Crank, SphericalElbow)
