"""Bodies and what is on them, as they are described: frames, contact points, shapes, named states, notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.model.actuators import Actuator
from coupler.model.bodies import Body
from coupler.model.closed_forms.choice import Closing
from coupler.model.elements import PointElement
from coupler.model.errors import ModelError
from coupler.model.loops import Coupling, LoopJoint
from coupler.model.names import Taken, named, take
from coupler.model.numbers import numbers
from coupler.model.places import Place, placed
from coupler.model.shapes import ContactPair, Geometry, Shape
from coupler.model.tree import GROUND, TreeJoint
from coupler.model.wording import listed
from coupler.spatial import Transform


class Parts:
    """Collects bodies and what is on them; see `RobotBuilder`."""

    def __init__(self, name: str, gravity: Any = (0.0, 0.0, -9.81)) -> None:
        """Args: the robot's name, and gravity, 3, m/s², in the world's axes."""
        self.name, self.gravity = named("a robot", name), numbers("gravity", gravity, (3,))
        self._bodies: dict[str, Body] = {}
        self._joints: dict[str, TreeJoint] = {}
        self._loops: dict[str, LoopJoint] = {}
        self._couplings: dict[str, Coupling] = {}
        self._springs: dict[str, PointElement] = {}
        self._actuators: dict[str, Actuator] = {}
        self._frames: dict[str, tuple[str, Transform]] = {}
        self._contacts: dict[str, tuple[str, np.ndarray]] = {}
        self._shapes: list[Shape] = []
        self._exclusions: dict[tuple[str, str], None] = {}
        self._contact_pairs: list[ContactPair] = []
        self._keyframes: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        self._precision, self._lock_idle = 0.0, False  # inherited from attached robots
        self._closure: dict[str, Closing] = {}
        self._warnings: list[str] = []
        self._remarks: list[str] = []
        self._keep = False  # whether to choose independent joints as if no closed form were asked for
        # Names in use, with what uses them. Frames, contact points and bodies share one space of names, as all of them
        # are frames of `frame_pose`; joints, loops and couplings share another; springs have their own.
        self._places: Taken = {GROUND: "the ground"}
        self._bonds: Taken = {}
        self._elements: Taken = {}

    def body(
        self,
        name: str,
        mass: float = 0.0,
        centre: Any = (0.0, 0.0, 0.0),
        inertia: Any = (0.0, 0.0, 0.0),
        *,
        ideal: bool = False,
    ) -> None:
        """Adds a rigid body.

        Args:
            mass: kg.
            centre: 3, the centre of mass in the body's frame, m.
            inertia: about the centre of mass, along the axes of the body's frame, kg m²: 3 × 3, or the three moments.
            ideal: whether to accept an inertia that no real body can have; see `Body`.
        """
        body = Body(named("a body", name), mass, centre, inertia, ideal=ideal)
        take(self._places, name, "a body")
        self._bodies[name] = body

    def frame(self, name: str, body: str, at: Place = (0.0, 0.0, 0.0), turned: Any = None) -> None:
        """Adds a named frame to a body."""
        what = f"frame {named('a frame', name)!r}"
        place = named(f"{what}: its body", body), placed(what, at, turned)
        take(self._places, name, f"a frame on {body!r}")
        self._frames[name] = place

    def contact(self, name: str, body: str, at: Any) -> None:
        """Adds a named point of a body, 3, m, that can touch shapes."""
        what = f"contact point {named('a contact point', name)!r}"
        place = named(f"{what}: its body", body), numbers(what, at, (3,))
        take(self._places, name, f"a contact point on {body!r}")
        self._contacts[name] = place

    def shape(
        self,
        body: str,
        geometry: Geometry,
        at: Place = (0.0, 0.0, 0.0),
        turned: Any = None,
        *,
        name: str = "",
        visible: bool = True,
        group: int = 1,
        meets: int = 1,
        friction: float | None = None,
        colour: Any = None,
        priority: int = 0,
        restitution: float | None = None,
        torsion: float | None = None,
        rolling: float | None = None,
    ) -> None:
        """Adds a shape with which a body, or the ground, is drawn and touches others; see `Shape`."""
        what = f"shape {name!r} on body {named('a shape: its body', body)!r}"
        place = placed(what, at, turned)
        touching = group, meets, friction, colour, priority, restitution, torsion, rolling
        self._shapes.append(Shape(name, body, geometry, place, visible, *touching))

    def exclude(self, first: str, second: str) -> None:
        """Rules out contacts between two bodies, one of which may be the ground."""
        bodies = [named("an exclusion: its body", body) for body in (first, second)]
        self._exclusions[min(bodies), max(bodies)] = None

    def contact_pair(
        self, first: str, second: str, friction: float, torsion: float | None = None, rolling: float | None = None
    ) -> None:
        """Lets two shapes touch whatever their groups are, with a friction of their own; see `ContactPair`."""
        self._contact_pairs.append(ContactPair(first, second, friction, torsion, rolling))

    def keyframe(self, name: str, positions: Mapping[str, Any], velocities: Mapping[str, Any] | None = None) -> None:
        """Names a state: positions and velocities by joint, as `Robot.pack_q` and `Robot.pack_v` take them."""
        named("a keyframe", name)
        if name in self._keyframes:
            raise ModelError(f"there is a keyframe {name!r} already")
        self._keyframes[name] = dict(positions), dict(velocities or {})

    def warn(self, text: str) -> None:
        """Adds a warning to the robot: something its users should know, such as what its file says and is ignored."""
        self._warnings.append(text)

    def remark(self, text: str) -> None:
        """Adds a remark to the robot: something worth knowing that is no reason to worry."""
        self._remarks.append(text)

    def _equipped(self) -> dict[str, Body]:
        """The bodies with their frames and contact points."""
        frames: dict[str, dict[str, Transform]] = {}
        contacts: dict[str, dict[str, np.ndarray]] = {}
        for kind, places, on_body in (("frame", self._frames, frames), ("contact point", self._contacts, contacts)):
            for name, (body, place) in places.items():
                if body not in self._bodies:
                    raise ModelError(
                        f"{kind} {name!r}: there is no body {body!r}; there are {listed(self._bodies, like=body)}"
                    )
                on_body.setdefault(body, {})[name] = place  # type: ignore[arg-type]
        return {
            name: replace(body, frames=frames.get(name, {}), contacts=contacts.get(name, {}))
            if name in frames or name in contacts
            else body
            for name, body in self._bodies.items()
        }
