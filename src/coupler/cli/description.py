"""A robot as plain data for `coupler info`; docs/command_line.md lists the keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model import Robot
from coupler.model.text import notes_of


def described(robot: Robot) -> dict[str, Any]:
    """A robot as plain data."""
    errors = robot.loop_errors(robot.neutral())
    return {
        "name": robot.name,
        "mass": robot.mass,
        "gravity": robot.gravity,
        "positions": robot.nq,
        "freedoms": robot.nv,
        "bodies": [{"name": name, "mass": body.mass} for name, body in robot.bodies.items()],
        "joints": _joints(robot),
        "independent": robot.independent_joints,
        "actuated": robot.actuated_joints,
        "actuators": _actuators(robot),
        "clusters": _clusters(robot),
        "loops": _loops(robot, errors),
        "couplings": _couplings(robot, errors),
        "springs": [{"name": x.name, "first": x.first, "second": x.second} for x in robot.elements],
        "frames": robot.frame_names,
        "keyframes": list(robot.keyframes),
        "shapes": {
            "count": len(robot.shapes),
            "visible": sum(shape.visible for shape in robot.shapes),
            "touching": sum(shape.touches for shape in robot.shapes),
        },
        "notes": notes_of(robot),
        "warnings": robot.warnings,
    }


def _joints(robot: Robot) -> list[dict[str, Any]]:
    return [
        {"name": joint.name, "kind": joint.kind.kind, "parent": joint.parent, "child": joint.child}
        for joint in robot.joints
    ]


def _actuators(robot: Robot) -> list[dict[str, Any]]:
    """The robot's actuators as plain data; a missing limit is null."""
    return [
        {
            "name": actuator.name,
            "kind": actuator.kind,
            "gears": dict(actuator.gears),
            "along": None if actuator.along is None else repr(actuator.along),
            "effort": [limit if np.isfinite(limit) else None for limit in actuator.effort],
            "speed": actuator.speed if np.isfinite(actuator.speed) else None,
        }
        for actuator in robot.actuators
    ]


def _clusters(robot: Robot) -> list[dict[str, Any]]:
    """All clusters but the ground as plain data; they count from 1, and parent 0 is the ground."""
    links = robot.tree.links
    return [
        {
            "parent": cluster.parent,
            "bodies": [body for link in cluster.bodies for body in links[link].bodies],
            "joints": [links[link].joint for link in cluster.bodies],
        }
        for cluster in robot.cluster_tree.clusters[1:]
    ]


def _loops(robot: Robot, errors: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": loop.name,
            "kind": loop.kind.kind,
            "predecessor": loop.predecessor,
            "successor": loop.successor,
            "error": errors[loop.name],
        }
        for loop in robot.loops
    ]


def _couplings(robot: Robot, errors: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": coupling.name,
            "joints": coupling.joints,
            "independent": coupling.independent,
            "error": errors[coupling.name],
        }
        for coupling in robot.couplings
    ]
