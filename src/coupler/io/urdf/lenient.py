"""Harmless mistakes of files, mended before the robot is built, with a warning."""

from __future__ import annotations

import numpy as np

from coupler.io.reading import ground_renamed
from coupler.io.taken_names import TakenNames
from coupler.io.urdf.description import Description
from coupler.io.urdf.parts import LinkPart
from coupler.io.xml import Element
from coupler.model import Transmission
from coupler.model.tree import GROUND
from coupler.model.wording import counted, listed

_WORLD = "world"
_NO_MOTION = ("sensor", "ros2_control", "safety_controller", "calibration", "verbose", "self_collision_checking")
_NO_MEANING = {  # attributes; those of limits bound what a controller asks for
    "link": ("type",),
    "joint": ("dont_collapse",),
    "geometry": ("name",),
    "limit": ("acceleration", "deceleration", "jerk"),
}
_NOTHING = 1e-15  # kg m²: a negative moment below this is a rounding error
_LITTLE = 1e-3  # so is one below this part of the moment that the link is welded to
_HEAVY, _HEAVIER = 500.0, 200.0  # kg, and times the median: a heavier body was probably given in another unit


def pass_over(root: Element) -> None:
    """Ignores what does not change the motion: sensors, drivers, and limits that controllers keep."""
    for element in (root, *root.walk()):
        if element.tag in _NO_MOTION or element.tag.startswith(("sensor:", "controller:")):
            element.ignore()
        for name in _NO_MEANING.get(element.tag, ()):
            element.get(name)


def add_world(d: Description) -> None:
    """Adds the link `world` if joints hang on it and it is not declared, as in files for some simulators."""
    joints = [joint for joint in d.joints.values() if joint.parent == _WORLD]
    if joints and _WORLD not in d.links:
        d.links = {_WORLD: LinkPart(joints[0].element)} | d.links
        d.warnings.append(f"link {_WORLD!r} is added: joints hang on it, but the file does not declare it")


def rename_ground(d: Description, *, floating: bool) -> None:
    """Renames a link that has the name of the ground, unless it is the root, and so the ground itself.

    A root with mass that is to float is not the ground.
    """
    is_root = all(joint.child != GROUND for joint in d.joints.values())
    if GROUND not in d.links or (is_root and not (floating and d.links[GROUND].mass)):
        return
    name = TakenNames(d.links).new(f"{GROUND}_link")
    d.links = {name if link == GROUND else link: part for link, part in d.links.items()}
    for joint in d.joints.values():
        joint.parent, joint.child = (name if link == GROUND else link for link in (joint.parent, joint.child))
    d.renamed[GROUND] = name
    d.warnings.append(ground_renamed(name))


def mend_inertias(d: Description) -> None:
    """Sets negative principal moments to zero if they are rounding, or negligible beside what the link is welded to."""
    group = {link: link for link in d.links}

    def first(link: str) -> str:
        while group[link] != link:
            link = group[link]
        return link

    for joint in d.joints.values():
        if joint.kind == "fixed":
            group[first(joint.child)] = first(joint.parent)
    largest: dict[str, float] = {}
    for name, link in d.links.items():
        largest[first(name)] = max(largest.get(first(name), 0.0), float(np.linalg.eigvalsh(link.inertia)[-1]))
    mended = []
    for name, link in d.links.items():
        if not link.mass and np.abs(link.inertia).max() < _NOTHING:
            link.inertia = np.zeros((3, 3))
        moments, axes = np.linalg.eigh(link.inertia)
        welded = largest[first(name)]  # the largest moment of all links that it is welded to
        allowed = max(_NOTHING, _LITTLE * welded) if welded > moments[-1] else _NOTHING
        if -allowed <= moments[0] < 0.0:
            link.inertia = axes * np.maximum(moments, 0.0) @ axes.T
            mended += [name] if moments[0] < -_NOTHING else []
    if mended:
        d.warnings.append(
            f"negative principal moments of {listed(mended)} are taken as 0: they are small beside what is welded to it"
        )


def lock_massless(d: Description) -> None:
    """Fixes joints that move nothing but links without mass, unless something else holds on to them."""
    bound = {link for loop in d.loops for link in (loop.first, loop.second)}
    bound |= {d.joints[joint].child for coupling in d.couplings for joint in coupling.joints if joint in d.joints}
    bound |= {str(spring[end]) for _, spring in d.springs for end in ("first", "second")}
    transmissions = [actuator["gears"] for _, actuator in d.actuators if isinstance(actuator["gears"], Transmission)]
    bound |= {end.body for transmission in transmissions for end in transmission.ends}
    heavy = {name for name, link in d.links.items() if link.mass or link.inertia.any()} | bound
    for name in list(heavy):
        heavy |= {joint.parent for joint in d.path(name)}
    locked = [joint for joint in d.joints.values() if joint.child not in heavy and joint.kind != "fixed"]
    for joint in locked:
        joint.fix()
    if locked:
        names = listed(joint.name for joint in locked)
        d.warnings.append(f"{counted(len(locked), 'joint')} locked, which move nothing but links without mass: {names}")


def warn_of_masses(d: Description) -> None:
    """Warns of bodies that weigh tonnes while the others weigh kilograms."""
    masses = {name: link.mass for name, link in d.links.items() if link.mass > 0.0}
    usual = float(np.median(list(masses.values()))) if masses else 0.0
    heavy = [name for name, mass in masses.items() if mass > max(_HEAVY, _HEAVIER * usual)]
    if heavy:
        d.warnings.append(
            f"{listed(f'{name} ({masses[name]:g} kg)' for name in heavy)} beside bodies of some {usual:g} kg: are "
            "these masses in kg?"
        )
