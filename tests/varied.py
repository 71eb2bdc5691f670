"""Robots built anew with other numbers, to compare with those that are given them as parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.model import Robot, Rod
from coupler.model.compose import compose
from coupler.rotation import matrix_from_quaternion, quaternion_exp
from coupler.spatial import Transform

__all__ = ["drawn", "rebuilt"]


def rebuilt(robot: Robot, values: Mapping[str, Any]) -> Robot:
    """The robot made once more of all its parts, some of them with other numbers, by name as in `Robot.parameters`."""

    def own(name: str, *quantities: str) -> dict[str, Any]:
        return {x: values[f"{x}:{name}"] for x in quantities if f"{x}:{name}" in values}

    def moved(frame: Transform, name: str, turned: str = "") -> Transform:
        E = frame.E @ matrix_from_quaternion(quaternion_exp(values[turned])).T if turned in values else frame.E
        return Transform(E, np.asarray(values[name]) if name in values else frame.r)

    bodies = {name: replace(body, **own(name, "mass", "centre", "inertia")) for name, body in robot.bodies.items()}
    joints = [
        replace(
            joint,
            kind=replace(joint.kind, **own(joint.name, "stiffness", "damping", "armature", "friction")),
            placement=moved(joint.placement, f"at:{joint.name}", f"turned:{joint.name}"),
        )
        for joint in robot.joints
    ]
    loops = [
        replace(
            loop,
            kind=replace(loop.kind, **own(loop.name, "length")) if isinstance(loop.kind, Rod) else loop.kind,
            predecessor_frame=moved(loop.predecessor_frame, f"at:{loop.name}", f"turned:{loop.name}"),
            successor_frame=moved(loop.successor_frame, f"meets:{loop.name}", f"meets_turned:{loop.name}"),
        )
        for loop in robot.loops
    ]
    couplings = []
    for coupling in robot.couplings:
        function: Any = coupling.function
        given = own(coupling.name, *getattr(function, "__dataclass_fields__", ()))
        couplings.append(replace(coupling, function=replace(function, **given)) if given else coupling)
    ends = ("first_point", "second_point")
    springs = [
        replace(spring, **own(spring.name, "stiffness", "free_length", "pretension", "damping", *ends))
        for spring in robot.elements
    ]
    shapes = [replace(shape, **own(shape.name, "friction", "torsion", "rolling")) for shape in robot.shapes]
    pairs = [replace(pair, **own(pair.name, "friction", "torsion", "rolling")) for pair in robot.contact_pairs]
    gravity = values.get("gravity", robot.gravity)
    made = compose(robot.name, gravity, bodies, joints, loops, couplings, springs, closure=dict(robot.closure))
    touching = {"shapes": tuple(shapes), "contact_pairs": tuple(pairs), "exclusions": robot.exclusions}
    return replace(made, actuators=robot.actuators, **touching)


def drawn(robot: Robot, rng: np.random.Generator, count: int, *quantities: str) -> dict[str, np.ndarray]:
    """So many values of all parameters of some quantities (of all, if none is named), each near what it is."""
    found = {}
    kept = ["offset", "friction", "G:", "at:", "meets:"]
    kept += ["turned:", "meets_turned:"] if robot.loops else []  # which would not close
    for name, value in robot.parameters.items():
        if not quantities or name.partition(":")[0] in quantities:
            one_factor = name.startswith(("mass", "inertia"))  # which keeps an inertia one that a body can have
            size = (count, *(1 for _ in value.shape)) if one_factor else (count, *value.shape)
            found[name] = value * rng.uniform(0.95, 1.05, size)
            if not one_factor and not value.any() and not name.startswith(tuple(kept)):
                found[name] = rng.uniform(0.0, 0.05, (count, *value.shape))
    return found
