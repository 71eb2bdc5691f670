"""What connects and drives the bodies of a robot, as it is described: joints, loops, couplings, springs, actuators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.model.actuators import Actuator
from coupler.model.elements import PointElement
from coupler.model.errors import ModelError
from coupler.model.joint import Joint
from coupler.model.loops import Coupling, LoopJoint, LoopKind
from coupler.model.names import named, take
from coupler.model.parts import Parts
from coupler.model.places import Place, placed
from coupler.model.tree import TreeJoint


class Bonds(Parts):
    """Collects what connects and drives bodies; see `RobotBuilder`."""

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
