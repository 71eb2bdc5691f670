"""Writing actuators as MJCF: at a joint, at a tendon, at a site or two of bodies, or at a slider-crank."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from coupler.io.actuators import limits_beyond_joints
from coupler.io.mjcf.attributes import NO_LIMIT
from coupler.io.mjcf.joints import Step
from coupler.io.mjcf.write_transmissions import SiteWriter, transmission
from coupler.io.taken_names import TakenNames
from coupler.io.writing import put
from coupler.model import Actuator, Adhesion, Robot
from coupler.model.tree import GROUND, TreeJoint
from coupler.spatial import Transform

Steps = Sequence[tuple[TreeJoint, Step, str]]  # joints of MJCF: the joint that each is of, its step, and its name


def add_actuators(
    robot: Robot,
    actuators: ET.Element,
    tendons: ET.Element,
    steps: Steps,
    names: TakenNames,
    sites: SiteWriter,
) -> Iterator[tuple[str, str]]:
    """Writes all actuators; for each part that MJCF cannot express, yields its name in singular and plural.

    Args:
        actuators, tendons: the elements of the file that get the actuators and their tendons.
        steps: the joints of MJCF; see `_Writer`.
        names: the names of joints and tendons that are taken.
        sites: adds sites to bodies.
    """
    floating = {joint.name: joint for joint in robot.joints if joint.kind.floats}
    for actuator in robot.actuators:
        limits = limits_beyond_joints(robot, actuator)
        if limits["speed"] is not None:
            yield "speed limit of an actuator", "speed limits of actuators"
        terms = list(_terms(actuator, steps))
        if actuator.along is not None:
            target = transmission(actuator.name, actuator.along, tendons, names, sites)
            if target is None:
                yield "cable whose shares have both signs", "cables whose shares have both signs"
                continue
        elif any(joint in floating for joint in actuator.gears):
            joint = floating.get(actuator.joints[0])
            if len(actuator.gears) > 1 or joint is None or joint.parent != GROUND or actuator.servo:
                yield "servo of a free joint, or actuator of one and others", "actuators of free joints and others"
                continue
            gear = np.roll(actuator.gears[joint.name], 3)  # MuJoCo's are linear first
            at = Transform.identity() if joint.meets is None else joint.meets
            target = {"site": sites.at(joint.child, actuator.name, at), "gear": gear}
        elif len(terms) == 1:
            (name, gear), others = terms[0], {}
            target = {"joint": name, "gear": None if np.array_equal(gear, [1.0]) else gear}
        elif all(np.size(gear) == 1 for _, gear in terms):
            tendon, target, others = names.new(f"{actuator.name}_sum"), {}, dict(terms)
            target = {"tendon": tendon}
            element = put(tendons, "fixed", name=tendon)
            for name, gear in others.items():
                put(element, "joint", joint=name, coef=gear)
        else:
            yield "actuator of a ball joint and others", "actuators of ball joints and others"
            continue
        if isinstance(actuator.along, Adhesion):
            put(actuators, "adhesion", name=actuator.name, **target, **_pull(actuator, actuator.along.gear))
            continue
        put(actuators, _TAGS[actuator.kind], name=actuator.name, **target, **_law(actuator, limits["effort"]))


_TAGS = {"motor": "motor", "position": "position", "velocity": "velocity", "damper": "damper"}


def _terms(actuator: Actuator, steps: Steps) -> Iterator[tuple[str, np.ndarray]]:
    """The joints of MJCF that an actuator acts on, with the gear of each of their freedoms."""
    for joint, step, name in steps:
        if joint.name in actuator.gears and step.entries:
            gear = np.atleast_1d(actuator.gears[joint.name])[step.entries]
            if gear.any():
                yield name, gear


def _pull(actuator: Actuator, gain: float) -> dict[str, Any]:
    """The limits of an adhesion, which must have a range of control in MuJoCo."""
    law: dict[str, Any] = {"ctrlrange": np.minimum(actuator.control, NO_LIMIT)}
    if actuator.effort[1] < np.inf and actuator.effort != actuator.control:
        law["forcerange"] = 0.0, gain * actuator.effort[1]
    return law


def _law(actuator: Actuator, effort: Any) -> dict[str, Any]:
    """The attributes of an MJCF actuator for an actuator's gains and limits."""
    law: dict[str, Any] = {"kp": actuator.stiffness or None, "kv": actuator.damping or None}
    low, high = actuator.control
    if actuator.kind == "damper":
        low, high = max(low, 0.0), high if high < np.inf else NO_LIMIT
    if np.isfinite([low, high]).any():
        law["ctrlrange"] = max(low, -NO_LIMIT), min(high, NO_LIMIT)
    if effort is not None and not (actuator.kind == "motor" and effort == actuator.control):
        law["forcerange"] = max(effort[0], -NO_LIMIT), min(effort[1], NO_LIMIT)
    return law
