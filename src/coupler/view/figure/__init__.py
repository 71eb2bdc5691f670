"""What a robot looks like, as solids on its bodies: no browser and no plotting library is needed for this."""

from coupler.view.figure.colours import Colouring
from coupler.view.figure.figure import Figure, Solid
from coupler.view.figure.surface import Surface

__all__ = ["Colouring", "Figure", "Solid", "Surface"]
