"""What tests of saved robots share: a robot with something of everything, and the same robot from its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import coupler
from coupler.io.load import load
from coupler.io.save import save
from coupler.mechanisms import gear
from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Cylindrical,
    Ellipsoid,
    Fixed,
    Free,
    Helical,
    Joint,
    Mesh,
    Planar,
    Plane,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Sphere,
    Spherical,
    Universal,
)
from coupler.rotation import about_axis
from coupler.spatial import Transform
from peers import gap
from random_robots import place, unit

__all__ = ["ODD", "dynamics_gap", "every_kind", "everything", "reloaded"]

ODD = "knee/left <\"é\" & 'ß'>"  # a name that XML has to escape


def reloaded(robot: Robot, folder: Path, suffix: str = ".urdf") -> Robot:
    """A robot that has been saved and loaded again."""
    return load(save(robot, folder / f"saved{suffix}"))


def dynamics_gap(first: Robot, second: Robot, seeds: int = 2) -> float:
    """How far mass matrix, bias force and accelerations of two robots with the same freedoms differ, relatively.

    On the interpreter: what is compiled would run a few times only.
    """
    worst, first, second = 0.0, first.with_backend("interpreter"), second.with_backend("interpreter")
    for seed in range(seeds):
        q, v = first.random_state(seed)
        p, tau = second.pack_q(first.joint_positions(q)), np.random.default_rng(seed).normal(size=first.nv)
        for function, *rest in (
            (coupler.mass_matrix,),
            (coupler.bias_force, v),
            (coupler.forward_dynamics, v, tau),
        ):
            worst = max(worst, gap(function(second, p, *rest), function(first, q, *rest)))
    return worst


def every_kind(rng: np.random.Generator, *, meets: bool, floating: bool = False) -> Robot:
    """A chain of branches with a joint of every kind, if wanted with joints that end off their children's frames."""
    kinds: list[Joint] = [
        Revolute(axis=unit(rng), lower=-1.0, effort_limit=3.0),
        Prismatic(axis=unit(rng), upper=0.5, velocity_limit=2.0),
        Helical(axis=unit(rng), pitch=0.1, armature=0.02),
        Cylindrical(axis=unit(rng), lower=(-np.inf, -0.3), upper=(1.0, 0.4), damping=(0.1, 0.2)),
        Universal(first=unit(rng), second=unit(rng), friction=(0.3, 0.4), stiffness=(1.0, 2.0), rest=(0.1, -0.2)),
        Planar(normal=unit(rng), armature=(0.1, 0.2, 0.3), velocity_limit=4.0),
        Spherical(damping=0.3, stiffness=2.0),
        Free(damping=0.2),
        Fixed(),
    ]
    b = RobotBuilder("every kind", 5.0 * rng.normal(size=3))
    parents = ["ground"]
    if floating:
        kinds.insert(0, Free())
    for i, kind in enumerate(kinds):
        axes, moments = about_axis(unit(rng), 1.0), rng.uniform(0.01, 0.02, 3)
        b.body(f"b{i}", rng.uniform(0.5, 2.0), rng.uniform(-0.2, 0.2, 3), axes @ np.diag(moments) @ axes.T)
        parent = parents[0] if i < 2 and not floating else parents[rng.integers(1, len(parents))] if i else "ground"
        b.joint(f"j{i}", kind, parent, f"b{i}", place(rng), meets=place(rng) if meets else None)
        b.frame(f"tool{i}", f"b{i}", place(rng))
        parents.append(f"b{i}")
    return b.build()


def everything(mesh: Path) -> RobotBuilder:
    """A robot with shapes, frames, contact points, springs, a loop, a coupling, marks, limits and a named state."""
    b = RobotBuilder("everything & more", (0.0, 0.5, -9.0))
    seat = Transform(about_axis(np.array([0.6, 0.0, 0.8]), 0.7), np.array([0.1, -0.2, 0.3]))
    for name in ("base", "thigh", ODD, "rotor", "crank", "rod"):
        b.body(name, 1.5, (0.1, 0.0, -0.2), (0.03, 0.04, 0.05))
    b.joint("floating", Free(), "ground", "base")
    b.joint("hip", Revolute(axis=(0, 1, 0), lower=-1.0, upper=2.0, damping=0.1, velocity_limit=9.0), "base", "thigh")
    knee = Revolute(axis=(0, 1, 0), stiffness=3.0, rest=0.4, friction=0.2, armature=0.01, effort_limit=7.0)
    b.joint(ODD, knee, "thigh", ODD, (0, 0, -0.4), meets=seat, actuated=True)
    b.joint("spin", Revolute(axis=(0, 1, 0)), "base", "rotor", (0, 0.1, 0))
    b.joint("turn", Revolute(axis=(0, 1, 0)), "base", "crank", (0.3, 0, 0), independent=True)
    b.joint("bend", Revolute(axis=(0, 1, 0)), "crank", "rod", (0, 0, -0.4), start=-0.3)
    b.loop("pin", Revolute(axis=(0, 1, 0)), "rod", "thigh", (-0.3, 0, 0), (0, 0, -0.4))
    b.couple("gears", ["hip", "spin"], gear(6.0, 0.3), ["hip"])
    b.frame("tool", ODD, seat)
    b.contact("heel", ODD, (0.0, 0.1, -0.4))
    b.spring("calf", "thigh", ODD, (0, 0, -0.1), (0.1, 0, -0.2), stiffness=50.0, free_length=0.2, damping=0.5)
    b.shape("ground", Plane(), friction=0.8)
    b.shape("base", Box((0.1, 0.2, 0.3)), (0, 0, 0.1), name="trunk", colour=(1, 0, 0, 1))
    b.shape("thigh", Capsule(0.05, 0.4), group=2, meets=4)
    b.shape("thigh", Cylinder(0.05, 0.4), visible=False)
    b.shape(ODD, Sphere(0.05), seat, group=0, meets=0, colour=(0, 1, 0, 0.5))
    b.shape(ODD, Ellipsoid((0.1, 0.2, 0.05)))
    b.shape("crank", Mesh(mesh, (1.0, 2.0, 1.0)))
    b.keyframe("bent", {"hip": 0.2, ODD: 0.5, "floating": [1, 2, 3, 1, 0, 0, 0]}, {ODD: 0.7})
    return b


def shapes_of(robot: Robot) -> list[tuple[Any, ...]]:
    """Shapes, in a form that can be compared."""
    return [
        (s.name, s.body, type(s.geometry).__name__, s.visible, s.group, s.meets, s.friction, str(s.colour))
        for s in robot.shapes
    ]
