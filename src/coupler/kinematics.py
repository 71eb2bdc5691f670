"""Poses and motions of the bodies and frames of a robot; its momentum and energy.

A frame is given by the name of a named frame, a contact point (with its body's axes) or a body. Motions are (angular,
linear): the angular velocity of the frame and the velocity of its origin, along the frame's own axes or the world's.
Leading dimensions of q, v, ... are a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from coupler.algorithms.kinematics import (
    body_poses_program,
    frame_acceleration_program,
    frame_jacobian_program,
    frame_jacobian_rate_program,
    frame_pose_program,
    frame_velocity_program,
)
from coupler.algorithms.totals import (
    centre_of_mass_program,
    kinetic_energy_program,
    momentum_program,
    potential_energy_program,
)
from coupler.compiled import attempted, remembered, run
from coupler.model import ModelError, Robot
from coupler.model.wording import listed
from coupler.spatial import Transform

__all__ = [
    "body_poses",
    "centre_of_mass",
    "energies",
    "frame_acceleration",
    "frame_jacobian",
    "frame_jacobian_rate",
    "frame_place",
    "frame_pose",
    "frame_velocity",
    "kinetic_energy",
    "momentum",
    "potential_energy",
]

Axes = Literal["frame", "world"]


def frame_pose(robot: Robot, q: Any, frame: str) -> np.ndarray:
    """The pose of a frame: the homogeneous matrix that takes coordinates in the frame to those in the world.

    Args:
        q: (..., nq), a closed configuration.
        frame: name of a frame, contact point or body.

    Returns:
        (..., 4, 4): the rotation in its first three rows and columns, the frame's origin in its last column, m.
    """
    T = run(robot, _of_frame, q, options=(frame_pose_program, frame))
    return T.reshape(*T.shape[:-1], 4, 4)


def body_poses(robot: Robot, q: Any) -> np.ndarray:
    """The poses of all bodies, (..., bodies, 4, 4), in the order of `robot.body_names`; see `frame_pose`."""
    T = run(robot, body_poses_program, q)
    return T.reshape(*T.shape[:-1], len(robot.bodies), 4, 4)


def frame_velocity(robot: Robot, q: Any, v: Any, frame: str, axes: Axes = "frame") -> np.ndarray:
    """The velocity of a frame, J(q) v.

    Args:
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints, rad/s or m/s.
        frame: name of a frame, contact point or body.
        axes: "frame" for components along the frame's own axes, "world" for the world's.

    Returns:
        (..., 6): the angular velocity, rad/s, then the velocity of the frame's origin, m/s.
    """
    return run(robot, _of_frame, q, v, options=(frame_velocity_program, frame, axes))


def frame_acceleration(robot: Robot, q: Any, v: Any, a: Any, frame: str, axes: Axes = "frame") -> np.ndarray:
    """The acceleration of a frame, J(q) a + J̇ v, without gravity.

    It is the time derivative of the velocity along the world's axes, expressed along the axes asked for. An
    accelerometer would measure its linear part minus gravity.

    Args:
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints, rad/s or m/s.
        a: (..., nv), accelerations of independent joints, rad/s² or m/s².
        frame: name of a frame, contact point or body.
        axes: "frame" for components along the frame's own axes, "world" for the world's.

    Returns:
        (..., 6): the angular acceleration, rad/s², then the acceleration of the frame's origin, m/s².
    """
    return run(robot, _of_frame, q, v, a, options=(frame_acceleration_program, frame, axes))


def frame_jacobian(robot: Robot, q: Any, frame: str, axes: Axes = "frame") -> np.ndarray:
    """The Jacobian J(q) of a frame, (..., 6, nv), angular rows first: J v is its velocity, and Jᵀ f what a force does.

    Args:
        q: (..., nq), a closed configuration.
        frame: name of a frame, contact point or body.
        axes: "frame" for rows along the frame's own axes, "world" for the world's; both are at the frame's origin.
    """
    J = run(robot, _of_frame, q, options=(frame_jacobian_program, frame, axes))
    return J.reshape(*J.shape[:-1], 6, robot.nv)


def frame_jacobian_rate(robot: Robot, q: Any, v: Any, frame: str, axes: Axes = "frame") -> np.ndarray:
    """The rate J̇ of a frame's Jacobian, (..., 6, nv), angular rows first: J a + J̇ v is the frame's acceleration.

    Along the world's axes it is the time derivative of J. Along the frame's axes it is the same matrix expressed along
    them: as in `frame_acceleration`, whose arguments it shares, the rotation of these axes does not count.
    """
    J = run(robot, _of_frame, q, v, options=(frame_jacobian_rate_program, frame, axes))
    return J.reshape(*J.shape[:-1], 6, robot.nv)


def centre_of_mass(robot: Robot, q: Any) -> np.ndarray:
    """The centre of mass of all bodies in the world, (..., 3), m."""
    return run(robot, centre_of_mass_program, q)


def momentum(robot: Robot, q: Any, v: Any) -> np.ndarray:
    """The momentum of all bodies, (..., 6): angular about the world's origin, kg m²/s, then linear, kg m/s.

    Args:
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints, rad/s or m/s.
    """
    return run(robot, momentum_program, q, v)


def kinetic_energy(robot: Robot, q: Any, v: Any, loop_velocities: Any = None) -> np.ndarray:
    """The kinetic energy, (...), J: ½ vᵀ H v, that is ½ Σ vᵀ I v over all bodies and ½ Σ A q̇² over armatures A.

    Args:
        q: (..., nq), configurations.
        v: (..., nv), velocities there.
        loop_velocities: velocities of all joints in loops without a solution γ, in the order of
            `robot.embedding.unsolved_links`; needed at dead points, where v does not determine them.
    """
    if loop_velocities is None:
        return run(robot, kinetic_energy_program, q, v)[..., 0]
    return run(robot, kinetic_energy_program, q, v, loop_velocities, options=(True,))[..., 0]


def potential_energy(robot: Robot, q: Any) -> np.ndarray:
    """The potential energy, (...), J: of all bodies in gravity, and of springs at joints and between points."""
    return run(robot, potential_energy_program, q)[..., 0]


def energies(robot: Robot, q: np.ndarray, v: np.ndarray, loop_velocities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic and potential energy, (...) each, J, of states as for `kinetic_energy`; NaN for invalid states."""
    has_loops = bool(loop_velocities.shape[-1])
    vectors, options = (q, v, loop_velocities)[: 2 + has_loops], (True,) if has_loops else ()
    kinetic = attempted(robot, kinetic_energy_program, *vectors, options=options)
    return kinetic[..., 0], attempted(robot, potential_energy_program, q)[..., 0]


def frame_place(robot: Robot, name: str) -> tuple[int, Transform]:
    """The number of the link that a frame is on, and the transform from the link's frame to it."""
    places = remembered(robot, _places, _places)
    if not isinstance(name, str) or name not in places:
        named = listed([*robot.frame_names, *robot.body_names], like=name)
        raise ModelError(f"robot {robot.name!r} has no frame, contact point or body {name!r}; it has {named}")
    return places[name]


def _places(robot: Robot) -> dict[str, tuple[int, Transform]]:
    """By name, the link and place of each frame, contact point and body."""
    places = dict(robot.tree.place)
    for body in robot.bodies.values():
        link, place = robot.tree.place[body.name]
        places |= {frame: (link, X @ place) for frame, X in body.frames.items()}
        places |= {point: (link, Transform.translation(r) @ place) for point, r in body.contacts.items()}
    return places


def _along_world(axes: str) -> bool:
    if not isinstance(axes, str) or axes not in ("frame", "world"):
        raise ModelError(f"axes must be 'frame' or 'world', got {axes!r}")
    return axes == "world"


def _of_frame(robot: Robot, make: Callable[..., Any], frame: str, *axes: str) -> Any:
    """The program that `make` returns for a frame, with results along the given axes where it takes axes."""
    return make(robot, *frame_place(robot, frame), *map(_along_world, axes))
