"""The forces in the joints, loops and couplings of a robot, for sizing bearings, rods, gears and actuators.

Leading dimensions of q, v, a are a batch, computed in lanes and threads. Numbers are float64, or float32 if q is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coupler.algorithms.force_layout import ForceLayout
from coupler.algorithms.joint_forces import joint_forces_layout, joint_forces_program
from coupler.algorithms.reaction_rules import COMPONENTS, MinimumNorm, Rule, Share, Shares, StiffnessWeighted, rule_of
from coupler.algorithms.sharing import Sharings
from coupler.algorithms.sharing_plan import ROUNDED, meeting, planned
from coupler.compiled import on_bodies, remembered, run, run_on_state
from coupler.model import Robot
from coupler.model.names import names_given
from coupler.model.robot import check_robot
from coupler.model.wording import aligned, clipped, counted, listed

__all__ = ["JointForces", "MinimumNorm", "Share", "Shares", "StiffnessWeighted", "determinate_forces", "joint_forces"]

_SAMPLES = 3  # states at which determinate forces are told from others
_ROUNDING = 1e-13  # of the largest entry of a force: smaller ones are printed as 0
_OPEN = 1e-8  # N and N m: a force that changes by more when 1 N is shared differently is not determinate


@dataclass(frozen=True, eq=False)
class JointForces:
    """Forces by name. A spatial force is (..., 6): moment, then force, N m and N.

    A joint's force is split by what causes it:

        joints[j] = constraints[j] + Tᵃ (actuators[j] + passive[j] + couplings[...][j]),        Sᵀ constraints[j] = 0,

    with the motion subspace S of the joint and Tᵃ = S (SᵀS)⁻¹, so that Sᵀ joints[j] is the sum in brackets. For a screw
    this split of moment and force between thread and drive is a convention [001, eq. 9]; for all others it is physical.

    Where rows of loops follow from others, as the out-of-plane rows of a planar loop do, forces are not unique, and a
    rule decides; see `joint_forces`. `determinate_forces` says which forces are unique.

    Attributes:
        joints: for each moving joint, the force that it transmits to its child body, about the origin and along the
            axes of the child's frame. Fixed joints are part of a body and have no entry.
        constraints: for each moving joint, the part of that force that does no work on it: the load of its bearings.
        actuators: for each driven joint, the actuator's force along its freedoms: (...), or (..., nv) if it has
            several; zero along dependent freedoms. At a floating base, it is the force that the motion lacks.
        passive: for each moving joint, likewise, the force of its springs and dampers minus that of its armature.
        loops: for each loop joint, the force that it transmits to its successor body, about the origin and along the
            axes of its frame there; the opposite force acts on the predecessor. A compressed rod pushes its successor
            away.
        couplings: for each coupling and joint, its force along that joint's freedoms. It acts between the joint's two
            bodies as a motor there would, because where teeth mesh or belts run is not known. The forces of a γ that
            solves loops or other couplings are zero; these transmit them.
    """

    joints: Mapping[str, np.ndarray]
    constraints: Mapping[str, np.ndarray]
    actuators: Mapping[str, np.ndarray]
    passive: Mapping[str, np.ndarray]
    loops: Mapping[str, np.ndarray]
    couplings: Mapping[str, Mapping[str, np.ndarray]]

    def __str__(self) -> str:
        """A table of the forces; of a batch, each entry where it is largest."""
        spatial = [("joint", self.joints), ("loop", self.loops)]
        couplings = {f"{name}: {joint}": f for name, joints in self.couplings.items() for joint, f in joints.items()}
        along = [("actuator", self.actuators), ("passive", self.passive), ("coupling", couplings)]
        states = next((np.shape(force)[:-1] for _, forces in spatial for force in forces.values()), ())
        rows = [[kind, name, *_shown(force, states)] for kind, forces in spatial for name, force in forces.items()]
        lines = ["moments about x, y, z (N m) and forces along them (N), and forces along freedoms (N m or N)"]
        if states:
            lines.append(f"of {counted(math.prod(states), 'state')}, each entry where it is largest")
        for kind, forces in along:
            for name, force in forces.items():
                if kind != "passive" or np.any(force):
                    texts = _shown(force, states)
                    rows.append([kind, name, *texts, *[""] * (6 - len(texts))])
        return "\n".join([*lines, aligned([["", "", *COMPONENTS], *rows], left=2)])

    def __repr__(self) -> str:
        return f"<JointForces: {counted(len(self.joints), 'joint')}, {counted(len(self.loops), 'loop')}>"


def _shown(force: np.ndarray, states: tuple[int, ...]) -> list[str]:
    """The entries of a force, one or several, for a table."""
    entries = np.asarray(force)
    entries = entries.reshape(math.prod(states), math.prod(entries.shape[len(states) :]))
    if entries.dtype == bool:
        return ["yes" if entry else "no" for entry in entries[0]]
    if not len(entries):
        return ["-"] * entries.shape[1]
    largest = entries[np.abs(entries).argmax(axis=0), np.arange(entries.shape[1])]
    rounding = _ROUNDING * np.abs(largest).max(initial=0.0)
    return [f"{x:.4g}" if abs(x) > rounding else "0" for x in largest.tolist()]


class _Parts(Mapping[str, Any]):
    """Parts of a vector by name, extracted when they are asked for: a robot has many, and a caller needs few."""

    def __init__(self, values: np.ndarray, places: Mapping[str, Any]) -> None:
        self._values, self._places = values, places

    def __getitem__(self, name: str) -> Any:
        place = self._places.get(name) if isinstance(name, str) else None
        if place is None:
            raise KeyError(f"there is no {clipped(name)}; there are {listed(self._places, like=name)}")
        return _Parts(self._values, place) if isinstance(place, Mapping) else self._values[..., place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return repr(dict(self))


def joint_forces(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    f_ext: Any = None,
    actuators: Iterable[str] | None = None,
    rule: Rule | Share | Sequence[Share] | str = "kept_rows",
) -> JointForces:
    """The forces in every joint and every loop for a motion, actuators and constraints apart. [001, §V-D]

    In over-constrained loops, statics do not determine how joints share a load, and a rule decides. Under each rule,
    the forces on every body are balanced, and determinate forces are the same:

    - "kept_rows": rows of loops that follow from others transmit nothing. The robot chooses which rows these are.
    - "minimum_norm" or `MinimumNorm(length)`: the loads of all joints are as small as possible.
    - `StiffnessWeighted({joint or loop: stiffness})`: joints yield elastically.
    - a `Share(body, {joint or loop: part}, along)`, or a list of them: these shares are given, and the remaining loads
      are as small as possible; with `Shares`, another rule applies to the remaining loads.

    Args:
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints.
        a: (..., nv), accelerations of independent joints.
        f_ext: (..., bodies, 6), as in `forward_dynamics`.
        actuators: names of the joints that actuators drive: in each cluster with such joints, as many as it has
            freedoms. In all other clusters, the independent joints are driven, with the forces of `inverse_dynamics`. A
            gear between a rotor and its link carries the load of the link if the rotor is driven, and only the inertia
            of the rotor if the link is.
        rule: how joints of over-constrained loops share loads.
    """
    check_robot(robot)
    names, chosen = _driven(actuators), rule_of(rule)
    layout = remembered(robot, (joint_forces_layout, names), joint_forces_layout, names)
    plan = None if chosen is None else remembered(robot, (_plan, names, chosen), _plan, names, chosen)
    if f_ext is None and not names and plan is None:
        forces = run_on_state(robot, joint_forces_program, q, v, a)
    elif f_ext is None:
        forces = run(robot, joint_forces_program, q, v, a, options=(False, names, plan))
    else:
        forces = run(robot, joint_forces_program, q, v, a, on_bodies(robot, f_ext), options=(True, names, plan))
    return _by_name(layout, forces)


def determinate_forces(robot: Robot, actuators: Iterable[str] | None = None) -> JointForces:
    """Tells which forces of `joint_forces` statics determine, whatever the rule: a record of True and False.

    An entry is False if the force depends, in some generic configuration, on how joints of an over-constrained loop
    share their load. The forces of springs, dampers and actuators are always determinate.

    Args:
        actuators: as in `joint_forces`.
    """
    check_robot(robot)
    names = _driven(actuators)
    layout = remembered(robot, (joint_forces_layout, names), joint_forces_layout, names)
    return _by_name(layout, remembered(robot, (_determinate, names), _determinate, names).copy())


def _driven(actuators: Iterable[str] | None) -> tuple[str, ...]:
    return () if actuators is None else names_given("actuators", actuators)


def _by_name(layout: ForceLayout, forces: np.ndarray) -> JointForces:
    parts = (layout.joints, layout.constraints, layout.actuators, layout.passive, layout.loops, layout.couplings)
    return JointForces(*(_Parts(forces, places) for places in parts))


def _plan(robot: Robot, names: tuple[str, ...], rule: Rule) -> Sharings | None:
    """How redundant rows of loops share loads under a rule; None if there are none."""
    sharings = planned(robot, rule)
    if not any(sharings):
        return None
    if not any(sharing.conditions for sharing in sharings if sharing):
        return tuple(sharing and replace(sharing, met=()) for sharing in sharings)
    forces, residuals = _tried(robot, names, sharings)
    return meeting(sharings, residuals, np.abs(forces[:, 0]).max(axis=-1), robot.precision)


def _determinate(robot: Robot, names: tuple[str, ...]) -> np.ndarray:
    """For each entry of the result, whether no share changes it."""
    sharings = planned(robot, MinimumNorm())
    if not any(sharings):
        return np.ones(joint_forces_layout(robot, names).size, bool)
    forces, _ = _tried(robot, names, sharings)
    return np.abs(forces[:, 1:] - forces[:, :1]).max(axis=(0, 1)) < max(_OPEN, ROUNDED * robot.precision)


def _tried(robot: Robot, names: tuple[str, ...], sharings: Sharings) -> tuple[np.ndarray, np.ndarray]:
    """Forces, and residuals of conditions, samples × (1 + Σ z) × entries: for z = 0, and for each unit vector z."""
    if robot.given is not None and robot.given.packed.ndim > 1:  # what follows from structure is the same for all
        robot = robot.given.base
    rng, rows = np.random.default_rng(0), sum(len(sharing.spare) for sharing in sharings if sharing)
    states = [robot.random_state(seed) for seed in range(_SAMPLES)]
    q, v = (np.array(part)[:, None] for part in zip(*states, strict=True))
    z = np.concatenate([np.zeros((1, rows)), np.eye(rows)])
    has_conditions = any(sharing.conditions for sharing in sharings if sharing)
    options = (False, names, sharings)
    interpreted = robot.with_backend("interpreter")  # for a few states, compiling would take longer
    forces = run(interpreted, joint_forces_program, q, v, rng.normal(size=v.shape), z, options=options)
    return forces if has_conditions else (forces, np.zeros((*forces.shape[:-1], 0)))
