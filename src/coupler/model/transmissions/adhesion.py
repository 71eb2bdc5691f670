"""Adhesion: a body that is pulled towards what it touches, as by a suction cup, a gecko's pad or a magnet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coupler.model.errors import ModelError
from coupler.model.names import named
from coupler.model.numbers import numbers
from coupler.model.transmissions.transmission import Array, End, Transmission
from coupler.model.wording import clipped
from coupler.spatial import Transform


class Adhesion(Transmission):
    """The pull of a body towards whatever it touches.

    The contacts at which its shapes touch when a step begins share the force equally: each gets a part along its
    normal, which presses both bodies together. What presses a contact also holds it against sliding, by its friction.
    Where nothing touches there is no force.

    Contacts alone say where it acts. So it has neither a position nor a Jacobian, and no force outside of simulations;
    it is a motor without speed limit, whose force and control are at least zero.

    Args:
        body: the body, or "ground"; its own shapes count, not those of bodies that it carries.
        gear: the pull by unit of the actuator's force.
    """

    has_position = False
    by_contact = True

    def __init__(self, body: str, gear: float = 1.0) -> None:
        factor = float(numbers("an adhesion: its gear", gear, (), least=0.0))
        if not factor:
            raise ModelError(f"an adhesion: its gear must be above zero, got {clipped(gear)}")
        super().__init__([End(named("an adhesion: its body", body), Transform.identity())], [factor])

    @property
    def body(self) -> str:
        """The body that is pulled."""
        return self.ends[0].body

    @property
    def gear(self) -> float:
        """The pull by unit of the actuator's force."""
        return float(self.numbers[0])

    def position(self, frames: Sequence[Transform], numbers: Array) -> Array:
        raise ModelError("an adhesion has no position")

    def wrenches(self, frames: Sequence[Transform], numbers: Array) -> list[Array]:
        raise ModelError("an adhesion acts on contacts, and on no fixed frames")

    def scaled(self, factor: float) -> Adhesion:
        """The same with this factor on its force."""
        return Adhesion(self.body, factor * self.gear)

    def moved(self, name: Callable[[str], str], place: Callable[[str, Transform], Transform]) -> Adhesion:
        return Adhesion(name(self.body), self.gear)

    def __repr__(self) -> str:
        return f"Adhesion({self.body!r}{'' if self.gear == 1.0 else f', gear={self.gear!r}'})"
