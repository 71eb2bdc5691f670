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
from coupler.model.transmissions import Transmission
from coupler.model.tree import TreeJoint

# What joints of the tree may have, and joints that close loops may not
_OF_TREES = {"stiffness": "spring", "damping": "damping", "friction": "friction", "armature": "armature"}
_OF_TREES |= {"lower": "limits", "upper": "limits", "velocity_limit": "limits", "effort_limit": "limits"}


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
        """Adds a joint on which a parent body carries a child body.

        Args:
            name: the joint's name.
            kind: how the joint moves, such as `Revolute(axis=...)`, with its limits and passive properties.
            parent: name of a body, or "ground".
            child: name of a body.
            at: where the joint is on the parent.
            turned: its orientation relative to the parent.
            independent: whether its velocity must be an entry of v where loops leave a choice.
            actuated: whether an actuator drives it; such joints are made independent where possible.
            start: (nq,), a position near which to close loops that can be closed in several ways; neutral if None.
            meets, meets_turned: place and orientation of the joint on the child; the child's own frame if None.
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
        alike = meets is None and meets_turned is None
        ends = None if alike else placed(what, (0.0, 0.0, 0.0) if meets is None else meets, meets_turned)
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
        """Adds a joint between two bodies of the tree, which closes a loop.

        Args:
            kind: what holds the two bodies together: `Spherical()` for a point on a point, `Fixed()` for a weld, any
                other joint, a `Rod` that keeps a distance, or `Held` along some axes. It has no position of its own,
                and hence no limits, spring, damper, friction or armature.
            first, second: names of the two bodies; one may be "ground".
            at: where the joint is on the first body.
            meets: where it is on the second body.
            turned, meets_turned: its orientation relative to the first and to the second body.
        """
        what = f"loop {named('a loop', name)!r}"
        if isinstance(kind, Joint):
            odd = [word for name, word in _OF_TREES.items() if np.any(getattr(kind, name) != getattr(Joint, name))]
            if odd:
                raise ModelError(
                    f"{what}: a joint that closes a loop has no {' and no '.join(dict.fromkeys(odd))}; describe it as "
                    "a joint of the tree, and let another joint of the loop close it"
                )
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
        """Couples the positions of joints of one freedom each: gears, belts, differentials, any function.

        Args:
            name: the coupling's name.
            joints: names of all joints that it relates.
            function: either γ, which returns the positions of all joints for those of the independent ones, or φ, which
                takes the positions of all joints and is zero where they fit together. It is written with NumPy and
                without branches on positions; `coupler.mechanisms` has many.
            independent: for a γ, names of the independent joints, in the order in which γ takes their positions.
            solves: for a γ, names of loops and couplings of which it is the solution. `build` checks that it is.
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
        """Adds a spring, a damper or both between points of two bodies; see `PointElement` for its tension.

        Args:
            name: the spring's name.
            first, second: names of the two bodies; one may be "ground".
            at: 3, the point on the first body, m.
            meets: 3, the point on the second body, m.
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
        gears: Mapping[str, Any] | Transmission | str,
        kind: str = "motor",
        *,
        effort: Any = np.inf,
        speed: float = np.inf,
        stiffness: float = 0.0,
        damping: float = 0.0,
        control: Any = np.inf,
    ) -> None:
        """Adds an actuator; see `Actuator`. A joint that is only marked as actuated gets a motor of its own name.

        Args:
            name: the actuator's name.
            gears: for each joint that it drives, its gear ratio, or one ratio for each freedom of the joint. A joint's
                name alone means a ratio of 1. Or a transmission whose gear depends on the pose: `coupler.Cable`,
                `coupler.SliderCrank`, `coupler.Wrench`.
            kind: "motor", "position", "velocity" or "damper".
            effort: smallest and largest force, or one number for both directions, N m or N. The effort limits of its
                joints hold as well.
            speed: rad/s or m/s; beyond this velocity it does not drive any further.
            stiffness, damping: the gains of a servo.
            control: smallest and largest control that it accepts; beyond them it saturates.
        """
        if name in self._actuators:
            raise ModelError(f"there is an actuator {name!r} already")
        self._actuators[name] = Actuator(name, gears, kind, effort, speed, stiffness, damping, control)
