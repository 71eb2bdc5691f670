"""The parts of a robot, one by one, as they are described: each checked by itself, and by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.model.actuators import Actuator
from coupler.model.bodies import Body
from coupler.model.closed_forms.choice import Closing
from coupler.model.elements import PointElement
from coupler.model.errors import ModelError
from coupler.model.joint import Joint
from coupler.model.loops import Coupling, LoopJoint, LoopKind
from coupler.model.numbers import numbers
from coupler.model.places import Place, placed
from coupler.model.shapes import ContactPair, Geometry, Shape
from coupler.model.tree import GROUND, TreeJoint
from coupler.model.wording import listed
from coupler.spatial import Transform

Taken = dict[str, str]  # names, and what has them


class Parts:
    """Collects the parts of a robot; see `RobotBuilder`."""

    def __init__(self, name: str, gravity: Any = (0.0, 0.0, -9.81)) -> None:
        """Begins a robot of this name, under this gravity, 3, m/s², in the world's frame."""
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
        self._precision, self._lock_idle = 0.0, False  # of robots that are attached
        self._closure: dict[str, Closing] = {}
        self._warnings: list[str] = []
        self._remarks: list[str] = []
        self._keep = False  # whether independent joints are chosen as if no closed form were asked for
        # What names are taken by: places that can be asked for, what binds bodies, and springs.
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
        """A rigid body.

        Args:
            mass: kg.
            centre: 3, the centre of mass in the body's frame, m.
            inertia: about the centre of mass, in the axes of the body's frame, kg m²: 3 × 3, or the three moments.
            ideal: whether the inertia may be one that no real body has; see `Body`.
        """
        body = Body(named("a body", name), mass, centre, inertia, ideal=ideal)
        take(self._places, name, "a body")
        self._bodies[name] = body

    def frame(self, name: str, body: str, at: Place = (0.0, 0.0, 0.0), turned: Any = None) -> None:
        """A named frame on a body."""
        what = f"frame {named('a frame', name)!r}"
        place = named(f"{what}: its body", body), placed(what, at, turned)
        take(self._places, name, f"a frame on {body!r}")
        self._frames[name] = place

    def contact(self, name: str, body: str, at: Any) -> None:
        """A named point on a body, 3, m, that may touch shapes."""
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
        """A shape by which a body, or the ground, is drawn and touches; see `Shape`."""
        what = f"shape {name!r} on body {named('a shape: its body', body)!r}"
        place = placed(what, at, turned)
        touching = group, meets, friction, colour, priority, restitution, torsion, rolling
        self._shapes.append(Shape(name, body, geometry, place, visible, *touching))

    def exclude(self, first: str, second: str) -> None:
        """Keeps two bodies, of which one may be the ground, from touching each other."""
        bodies = [named("an exclusion: its body", body) for body in (first, second)]
        self._exclusions[min(bodies), max(bodies)] = None

    def contact_pair(
        self, first: str, second: str, friction: float, torsion: float | None = None, rolling: float | None = None
    ) -> None:
        """Lets two shapes touch, whatever their groups say, with a friction of their own; see `ContactPair`."""
        self._contact_pairs.append(ContactPair(first, second, friction, torsion, rolling))

    def keyframe(self, name: str, positions: Mapping[str, Any], velocities: Mapping[str, Any] | None = None) -> None:
        """A state with a name: positions and velocities by joint, as `Robot.pack_q` and `Robot.pack_v` take them."""
        named("a keyframe", name)
        if name in self._keyframes:
            raise ModelError(f"there is a keyframe {name!r} already")
        self._keyframes[name] = dict(positions), dict(velocities or {})

    def warn(self, text: str) -> None:
        """Something that users of the robot should know, such as what of its file is left out."""
        self._warnings.append(text)

    def remark(self, text: str) -> None:
        """Something that is worth knowing about the robot, and no reason to worry."""
        self._remarks.append(text)

    def joint(
        self,
        name: str,
        kind: Joint,
        parent: str,
        child: str,
        at: Place = (0.0, 0.0, 0.0),
        turned: Any = None,
        *,
        independent: bool = False,
        actuated: bool = False,
        start: Any = None,
        meets: Place = None,
        meets_turned: Any = None,
    ) -> None:
        """A joint by which a parent carries a child.

        Args:
            kind: how it moves, with its passive properties and limits.
            parent: name of a body, or "ground".
            child: name of a body.
            at: where it is on the parent.
            turned: how it is turned against the parent.
            independent: whether its velocity must be one of the robot's, where loops leave a choice.
            actuated: whether an actuator drives it; such joints are independent where possible.
            start: a position of nq entries near which loops are closed, where there are several ways to close them;
                neutral if not given.
            meets, meets_turned: where it is on the child, and how it is turned against it; the child's own frame if
                not given.
        """
        what = f"joint {named('a joint', name)!r}"
        if not isinstance(kind, Joint):
            raise ModelError(f"{what}: its kind must be a joint such as Revolute(...), got {kind!r}")
        if not isinstance(kind.damping, np.ndarray):
            raise ModelError(f"{what}: {type(kind).__name__} does not call super().__post_init__() or its __init__")
        if kind.nv == 0 and (independent or actuated):
            raise ModelError(f"{what}: a fixed joint can be neither independent nor actuated")
        bodies = named(f"{what}: its parent", parent), named(f"{what}: its child", child)
        place = placed(what, at, turned)
        own = meets is None and meets_turned is None
        ends = None if own else placed(what, (0.0, 0.0, 0.0) if meets is None else meets, meets_turned)
        begin = kind.valid_position(f"{what}: its start", start)
        if begin is None:
            raise ModelError(f"{what}: its start has no quaternion of finite length")
        take(self._bonds, name, "a joint")
        self._joints[name] = TreeJoint(name, kind, *bodies, place, independent, actuated, begin, ends)

    def loop(
        self,
        name: str,
        kind: LoopKind,
        first: str,
        second: str,
        at: Place = (0.0, 0.0, 0.0),
        meets: Place = (0.0, 0.0, 0.0),
        *,
        turned: Any = None,
        meets_turned: Any = None,
    ) -> None:
        """A joint that closes a loop: it leaves two bodies of the tree the freedoms of its kind.

        Args:
            kind: `Spherical()` for point to point, `Fixed()` for a weld, any other joint, a `Rod`, which keeps a
                distance, or `Held` along some axes.
            first, second: names of bodies, or "ground".
            at: where it is on the first body.
            meets: where it is on the second body.
            turned, meets_turned: how its frame is turned against each body.
        """
        what = f"loop {named('a loop', name)!r}"
        ends = placed(what, at, turned), placed(what, meets, meets_turned)
        loop = LoopJoint(
            name, kind, named(f"{what}: its first body", first), named(f"{what}: its second body", second), *ends
        )
        take(self._bonds, name, "a loop")
        self._loops[name] = loop

    def couple(
        self,
        name: str,
        joints: Sequence[str],
        function: Callable[[Any], Any],
        independent: Sequence[str] = (),
        solves: Sequence[str] = (),
    ) -> None:
        """A relation between the positions of joints of one freedom each.

        Args:
            joints: names of all joints that it relates.
            function: γ, which gives the positions of all joints from those of the independent ones, or φ, which takes
                all positions and is zero when they fit together. See `coupler.mechanisms`.
            independent: for a γ, names of the independent joints, in the order in which it takes them.
            solves: for a γ, names of loops and couplings that it is the solution of. They are checked against it, and
                add nothing to it.
        """
        coupling = Coupling(named("a coupling", name), joints, independent, function, solves)  # type: ignore[arg-type]
        take(self._bonds, name, "a coupling")
        self._couplings[name] = coupling

    def spring(
        self,
        name: str,
        first: str,
        second: str,
        at: Any = (0.0, 0.0, 0.0),
        meets: Any = (0.0, 0.0, 0.0),
        *,
        stiffness: float = 0.0,
        free_length: float = 0.0,
        pretension: float = 0.0,
        damping: float = 0.0,
    ) -> None:
        """A spring, a damper or both between a point of one body and one of another; see `PointElement`.

        Args:
            first, second: names of bodies, or "ground".
            at: the point on the first body, 3, m.
            meets: the point on the second body, 3, m.
            stiffness: N/m.
            free_length: m.
            pretension: N.
            damping: N s/m.
        """
        what = f"spring {named('a spring', name)!r}"
        bodies = named(f"{what}: its first body", first), named(f"{what}: its second body", second)
        spring = PointElement(name, *bodies, at, meets, stiffness, free_length, pretension, damping)
        take(self._elements, name, "a spring")
        self._springs[name] = spring

    def actuator(
        self,
        name: str,
        gears: Mapping[str, Any] | str,
        kind: str = "motor",
        *,
        effort: Any = np.inf,
        speed: float = np.inf,
        stiffness: float = 0.0,
        damping: float = 0.0,
        control: Any = np.inf,
    ) -> None:
        """An actuator; see `Actuator`. A joint that is only marked as actuated has a motor of its own name.

        Args:
            gears: by joint a number, or one for each of its freedoms; the name of a joint stands for a gear of 1.
            kind: "motor", "position", "velocity" or "damper".
            effort: the least and the largest force, or a number for both sides, N m or N. Limits of its joints hold,
                too.
            speed: the largest velocity up to which it drives, rad/s or m/s.
            stiffness, damping: the gains of a servo.
            control: the least and the largest number that controls it.
        """
        if name in self._actuators:
            raise ModelError(f"there is an actuator {name!r} already")
        self._actuators[name] = Actuator(name, gears, kind, effort, speed, stiffness, damping, control)

    def _equipped(self) -> dict[str, Body]:
        """The bodies with their frames and contact points."""
        frames: dict[str, dict[str, Transform]] = {}
        contacts: dict[str, dict[str, np.ndarray]] = {}
        for kind, places, on_body in (("frame", self._frames, frames), ("contact point", self._contacts, contacts)):
            for name, (body, place) in places.items():
                if body not in self._bodies:
                    raise ModelError(f"{kind} {name!r}: there is no body {body!r}; there are {listed(self._bodies)}")
                on_body.setdefault(body, {})[name] = place  # type: ignore[arg-type]
        return {
            name: replace(body, frames=frames.get(name, {}), contacts=contacts.get(name, {}))
            if name in frames or name in contacts
            else body
            for name, body in self._bodies.items()
        }


def named(what: str, name: Any) -> str:
    """A name, refused unless it is one."""
    if not isinstance(name, str) or not name:
        raise ModelError(f"{what} needs a name, got {name!r}")
    return name


def take(taken: Taken, name: str, user: str) -> None:
    """Takes a name that is not taken yet."""
    if name in taken:
        raise ModelError(f"the name {name!r} is taken already, by {taken[name]}; choose another for {user}")
    taken[name] = user
