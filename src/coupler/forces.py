"""What joints, loops and couplings of a robot transmit: to size bearings, rods, gears and actuators.

Leading dimensions of q, v, a are a batch, computed in lanes and threads. Numbers are float64, or float32 where q is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.algorithms.joint_forces import joint_forces_layout, joint_forces_program
from coupler.compiled import on_bodies, remembered, run, run_on_state
from coupler.model import ModelError, Robot
from coupler.model.wording import listed

__all__ = ["JointForces", "joint_forces"]


@dataclass(frozen=True, eq=False)
class JointForces:
    """Forces by name. A spatial force is (..., 6): moment, then force, N m and N.

    A joint's force is split by what causes it:

        joints[j] = constraints[j] + Tᵃ (actuators[j] + passive[j] + couplings[...][j]),        Sᵀ constraints[j] = 0,

    with the motion subspace S of the joint and Tᵃ = S (SᵀS)⁻¹, so that Sᵀ joints[j] is the sum in brackets. For a screw
    this split of moment and force between thread and drive is a convention [001, eq. 9]; for all others it is physical.

    Where rows of loops follow from others, as the out-of-plane rows of a planar loop do, forces are not unique: those
    given are for rows that are kept, and the others transmit nothing.

    Attributes:
        joints: of each moving joint, what it transmits to its child body, about the origin and along the axes of the
            child's frame. Fixed joints are part of a body and left out.
        constraints: of each moving joint, the part of that which does no work on it: the load of its bearings.
        actuators: of each driven joint, the actuator's force along its freedoms: (...), or (..., nv) where it has
            several; zero along freedoms that depend on others. At a floating base it is what the motion lacks.
        passive: of each moving joint, in the same way, what its springs and dampers give, less what its armature takes.
        loops: of each loop joint, what it transmits to its successor body, about the origin and along the axes of its
            frame there; the predecessor feels the opposite. A rod that is pressed pushes its successor away.
        couplings: of each coupling, by joint, its force along that joint's freedoms. It acts between the joint's two
            bodies as a motor there would: where teeth meet or belts run is not known. A γ that solves loops or other
            couplings is zero; those transmit.
    """

    joints: Mapping[str, np.ndarray]
    constraints: Mapping[str, np.ndarray]
    actuators: Mapping[str, np.ndarray]
    passive: Mapping[str, np.ndarray]
    loops: Mapping[str, np.ndarray]
    couplings: Mapping[str, Mapping[str, np.ndarray]]


class _Parts(Mapping[str, Any]):
    """Parts of a vector by name, taken out when they are asked for: a robot has many, and a caller needs few."""

    def __init__(self, values: np.ndarray, places: Mapping[str, Any]) -> None:
        self._values, self._places = values, places

    def __getitem__(self, name: str) -> Any:
        place = self._places.get(name)
        if place is None:
            raise KeyError(f"there is no {name!r}; there are {listed(self._places)}")
        return _Parts(self._values, place) if isinstance(place, Mapping) else self._values[..., place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return repr(dict(self))


def joint_forces(
    robot: Robot, q: Any, v: Any, a: Any, f_ext: Any = None, actuators: Sequence[str] | None = None
) -> JointForces:
    """The forces in every joint and every loop for a motion, actuators and constraints apart. [001, §V-D]

    Args:
        robot: the robot.
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints.
        a: (..., nv), accelerations of independent joints.
        f_ext: (..., bodies, 6), as in `forward_dynamics`.
        actuators: names of the joints that actuators drive, as many as freedoms in each cluster that has some of them.
            In the others, and if not given, the independent joints are driven, with the forces of `inverse_dynamics`. A
            gear between a rotor and its link carries the load of the link where the rotor is named, and the inertia of
            the rotor alone where the link is.
    """
    if isinstance(actuators, str) or not all(isinstance(joint, str) for joint in actuators or ()):
        raise ModelError(f"actuators must be a list of names of joints, got {actuators!r}")
    names = tuple(actuators or ())
    layout = remembered(robot, (joint_forces_layout, names), joint_forces_layout, names)
    if f_ext is None and not names:
        forces = run_on_state(robot, joint_forces_program, q, v, a)
    elif f_ext is None:
        forces = run(robot, joint_forces_program, q, v, a, options=(False, names))
    else:
        forces = run(robot, joint_forces_program, q, v, a, on_bodies(robot, f_ext), options=(True, names))
    parts = (layout.joints, layout.constraints, layout.actuators, layout.passive, layout.loops, layout.couplings)
    return JointForces(*(_Parts(forces, places) for places in parts))
