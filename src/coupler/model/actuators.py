"""Actuators: motors, servos and dampers, each on joints, through gears, or on bodies, through a cable. [003, §II]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import check_unmasked, numbers
from coupler.model.transmissions import SliderCrank, Transmission
from coupler.model.wording import clipped, listed

if TYPE_CHECKING:
    from coupler.model.robot import Robot

KINDS = ("motor", "position", "velocity", "damper")

UNLIMITED = (-np.inf, np.inf)

Term = tuple[int, int, float]  # a link, an entry of its joint's velocity, and the gear


@dataclass(frozen=True, repr=False)
class Actuator:
    """What drives joints: a motor, a servo that follows a target, or a damper.

    Its coordinate is u = Σ gear q over joints of the tree, dependent ones included: with a gear of n, the angle of a
    rotor behind a transmission of ratio n. A force f along u acts on each of these joints with gear · f. Where gears
    depend on the pose, as those of cables do, a `Transmission` takes the place of the gears, and says what u is.

    It is controlled by one number:

    - "motor": the force f;
    - "position": the target u* of a servo, f = k (u* − u) + d (u̇* − u̇);
    - "velocity": the target u̇* of a servo, f = d (u̇* − u̇);
    - "damper": how far it is switched on, c ≥ 0, f = −c d u̇.

    Forces saturate at the effort limits. Beyond the speed limit, no force drives it any faster.

    Attributes:
        name: unique among the actuators of its robot.
        gears: by joint, its gear; of a joint with several freedoms, one gear for each. Empty for a transmission, which
            may be given in their place.
        kind: "motor", "position", "velocity" or "damper".
        effort: smallest and largest f, N m or N. One number stands for both directions.
        speed: the largest |u̇| at which it still drives, rad/s or m/s.
        stiffness: k, N m/rad or N/m.
        damping: d, N m s/rad or N s/m.
        control: smallest and largest control; it saturates beyond them.
        along: a transmission whose gear depends on the pose; None for gears.
    """

    name: str
    gears: Any
    kind: str = "motor"
    effort: Any = np.inf
    speed: float = np.inf
    stiffness: float = 0.0
    damping: float = 0.0
    control: Any = np.inf
    along: Transmission | None = None

    def __post_init__(self) -> None:
        what = f"actuator {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            raise ModelError(f"an actuator needs a name, got {self.name!r}")
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise ModelError(f"{what}: its kind must be one of {listed(KINDS)}, got {clipped(self.kind)}")
        values: dict[str, Any] = self._way(what)
        pulls = self._is_adhesion(what, values.get("along"))
        for name in ("effort", "control"):
            values[name] = _interval(f"{what}: its {name}", getattr(self, name), from_zero=pulls)
        if not values["effort"][0] <= 0.0 <= values["effort"][1]:
            raise ModelError(f"{what}: its effort must be free to be zero, got limits {values['effort']}")
        for name in ("stiffness", "damping"):
            values[name] = float(numbers(f"{what}: its {name}", getattr(self, name), (), least=0.0))
        values["speed"] = float(numbers(f"{what}: its speed", self.speed, (), least=0.0, finite=False))
        if values["speed"] == 0.0:
            raise ModelError(f"{what}: its speed must be above zero")
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_gains(what)

    def _way(self, what: str) -> dict[str, Any]:
        """What it moves: the gears of joints, or a transmission and no gears."""
        given = self.gears if self.along is None else self.along
        if not isinstance(given, Transmission):
            return {"gears": _gears(what, given)}
        if self.kind == "position" and not (given.has_position or given.by_contact):
            raise ModelError(
                f"{what}: a {type(given).__name__} that is against no other body has no position that a servo follows"
            )
        return {"gears": MappingProxyType({}), "along": given}

    def _is_adhesion(self, what: str, along: Transmission | None) -> bool:
        """Whether it acts on contacts, which takes a plain motor."""
        pulls = along is not None and along.by_contact
        if pulls and self.kind != "motor":
            raise ModelError(f'{what}: an adhesion has no position and no velocity; its kind must be "motor"')
        if pulls and self.speed != np.inf:
            raise ModelError(f"{what}: an adhesion has no velocity that its speed could limit")
        return pulls

    def _check_gains(self, what: str) -> None:
        if self.kind == "motor" and (self.stiffness or self.damping):
            raise ModelError(f'{what}: a motor has no gains; kind="position" or "velocity" makes it a servo')
        if self.kind == "position" and not self.stiffness:
            raise ModelError(f"{what}: a position servo needs a stiffness above zero")
        if self.kind in ("velocity", "damper") and (self.stiffness or not self.damping):
            name = "a velocity servo" if self.kind == "velocity" else "a damper"
            raise ModelError(f"{what}: {name} needs a damping above zero, and has no stiffness")

    @property
    def servo(self) -> bool:
        """Whether its force depends on its motion: true for servos and dampers."""
        return self.kind != "motor"

    @property
    def most_damping(self) -> float:
        """The damping d, N m s/rad or N s/m; of a damper, c d at its largest control (c = 1 if that is unlimited)."""
        if self.kind == "damper" and 0.0 < self.control[1] < np.inf:
            return self.damping * self.control[1]
        return self.damping

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints that it has gears for."""
        return tuple(self.gears)

    def position_servo(self, stiffness: float, damping: float = 0.0) -> Actuator:
        """This actuator as a servo that follows positions, with unlimited control."""
        return replace(self, kind="position", stiffness=stiffness, damping=damping, control=np.inf)

    def velocity_servo(self, damping: float) -> Actuator:
        """This actuator as a servo that follows velocities, with unlimited control."""
        return replace(self, kind="velocity", stiffness=0.0, damping=damping, control=np.inf)

    def __repr__(self) -> str:
        """The actuator's name, its gears, and the attributes that differ from their defaults."""
        usual = (("kind", "motor"), ("effort", UNLIMITED), ("speed", np.inf), ("stiffness", 0.0), ("damping", 0.0))
        attributes = [(name, getattr(self, name), value) for name, value in (*usual, ("control", UNLIMITED))]
        more = [(name, is_) for name, is_, value in attributes if is_ != value]
        way = dict(self.gears) if self.along is None else self.along
        return f"Actuator({self.name!r}, {way}{''.join(f', {name}={value!r}' for name, value in more)})"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "gears": dict(self.gears)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, gears=MappingProxyType(state["gears"]))


def _gears(what: str, given: Any) -> Mapping[str, Any]:
    """Gears by joint; a joint's name alone means a gear of 1."""
    given = {given: 1.0} if isinstance(given, str) else given
    if not isinstance(given, Mapping) or not given or not all(isinstance(joint, str) for joint in given):
        raise ModelError(f"{what}: its gears must go by names of joints, got {clipped(given)}")
    gears: dict[str, Any] = {}
    for joint, gear in given.items():
        values = numbers(f"{what}: its gear at joint {joint!r}", gear, np.shape(gear)[:1])
        gears[joint] = float(values) if values.ndim == 0 else tuple(values.tolist())
        if not values.any():
            raise ModelError(f"{what}: its gear at joint {joint!r} is zero; leave the joint out")
    return MappingProxyType(gears)


def _interval(what: str, given: Any, *, from_zero: bool = False) -> tuple[float, float]:
    """Lower and upper limit; one number stands for both directions, or for the range `from_zero`."""
    if np.ndim(given) == 0:
        size = float(numbers(what, given, (), least=0.0, finite=False))
        return (0.0 if from_zero else -size), size
    low, high = numbers(what, given, (2,), finite=False).tolist()
    if low > high:
        raise ModelError(f"{what} must be a range from low to high, got {low:g} to {high:g}")
    if from_zero and low < 0.0:
        raise ModelError(f"{what} must be at least zero, as an adhesion only pulls, got {low:g} to {high:g}")
    return low, high


# Actuators of a robot


def by_actuator(robot: Robot, what: str, given: Any) -> Any:
    """Numbers of all actuators, (..., actuators), from an array, or from numbers by actuator name.

    Raises:
        ModelError: for an unknown or a missing actuator, and for shapes that do not fit together.
    """
    if isinstance(given, np.ndarray) or not isinstance(given, Mapping):  # the first is quicker to ask
        return given
    for name in given:
        if name not in robot.actuator_names:
            names = listed(robot.actuator_names, like=name)
            raise ModelError(f"{what}: there is no actuator {clipped(name)}; there are {names}")
    missing = [name for name in robot.actuator_names if name not in given]
    if missing:
        raise ModelError(f"{what}: no value is given for actuator {listed(missing)}")
    for name, value in given.items():
        check_unmasked(f"{what} of {name!r}", value)
    try:
        return np.stack(
            np.broadcast_arrays(*(np.asarray(given[name], float) for name in robot.actuator_names)), axis=-1
        )
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what}: {error}") from None


def terms_of(robot: Robot, actuator: Actuator) -> list[Term]:
    """The entries of joint velocities of which an actuator's velocity is the sum, with their gears.

    Gears that depend on the pose are NaN here; programs compute them. An adhesion has no terms.

    Raises:
        ModelError: for an unknown or a fixed joint, or one with another number of freedoms, and for unknown bodies.
    """
    what, terms = f"actuator {actuator.name!r}", list[Term]()
    if actuator.along is not None and actuator.along.by_contact:
        _check_ends(robot, actuator.along, what)
        return terms
    if actuator.along is not None:
        links = path_of(robot, actuator.along, what)
        return [(link, j, np.nan) for link in links for j in range(robot.tree.links[link].kind.nv)]
    for joint, gear in actuator.gears.items():
        link = robot.tree.number.get(joint)
        if link is None and joint in robot.joint_names:
            raise ModelError(f"{what}: joint {joint!r} is fixed, and cannot be driven")
        if link is None:
            raise ModelError(f"{what}: there is no joint {joint!r}; there are {listed(robot.joint_names, like=joint)}")
        kind = robot.tree.links[link].kind
        freedoms, values = kind.nv, np.atleast_1d(gear)
        if len(values) != freedoms:
            wanted = "a number" if freedoms == 1 else f"{freedoms} numbers"
            raise ModelError(f"{what}: its gear at joint {joint!r} must be {wanted}, got {gear}")
        if actuator.kind == "position" and kind.nq != freedoms:
            raise ModelError(f"{what}: joint {joint!r} turns as a ball does, and has no position that a servo follows")
        terms += [(link, j, float(values[j])) for j in range(freedoms) if values[j]]
    return terms


def path_of(robot: Robot, along: Transmission, what: str) -> dict[int, list[int]]:
    """The links whose joints move a transmission, in order of clusters, each with the numbers of the ends it carries.

    Raises:
        ModelError: for ends on unknown bodies, and if no joint moves it.
    """
    tree, carried = robot.tree, dict[int, list[int]]()
    _check_ends(robot, along, what)
    for number, (body, _) in enumerate(along.ends):
        link = tree.place[body][0]
        while link:
            carried.setdefault(link, []).append(number)
            link = tree.links[link].parent
    if along.is_balanced:
        carried = {link: ends for link, ends in carried.items() if len(ends) < len(along.ends)}
    if not carried:
        names = listed(dict.fromkeys(end.body for end in along.ends))
        raise ModelError(f"{what}: it can drive nothing, as no joint moves {names} relative to each other")
    return dict(sorted(carried.items(), key=lambda way: (robot.cluster_tree.cluster_of[way[0]], way[0])))


def _check_ends(robot: Robot, along: Transmission, what: str) -> None:
    for body, _ in along.ends:
        if body not in robot.tree.place:
            raise ModelError(f"{what}: there is no body {body!r}; there are {listed(robot.body_names, like=body)}")


def adhesions(robot: Robot) -> list[str]:
    """The names of actuators that act on contacts."""
    return [actuator.name for actuator in robot.actuators if actuator.along and actuator.along.by_contact]


def too_short_rods(robot: Robot) -> str:
    """A suspicion for messages about results that are not finite: slider-cranks have no position out of their reach."""
    rods = [actuator.name for actuator in robot.actuators if isinstance(actuator.along, SliderCrank)]
    return f" the rod of {listed(rods)} too short," if rods else ""
