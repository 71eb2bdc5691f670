"""Masses and inertias that are probably not meant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coupler.cli.checks.finding import Finding
from coupler.model import Body, ModelError, Robot
from coupler.model.bodies import check_inertia
from coupler.model.words import listed

__all__ = ["centres", "dummies", "gyration", "ideal_inertias", "mass_matrix", "massless", "size_of"]

_LONG = 2.0  # m, a radius of gyration that few robots have
_FAR = 2.0  # sizes of the robot, beyond which centres of mass and radii of gyration are suspicious
_HUGE, _NOT_SHORT = 100.0, 1.0  # so is a radius of gyration of so many sizes and metres
_LIGHT = 1e-6  # part of the robot's mass
_ILL = 1e12  # condition number at which a few digits are left
_ROUNDING = 1e-14  # an eigenvalue that may be zero, of a matrix with ones on its diagonal


def size_of(robot: Robot) -> float:
    """About how large the robot is, m: the longest way from its base through joints to points on its bodies.

    Where all of those are at one place, it is as large as most of its bodies are by their centres of mass.
    """
    points: dict[str, list[float]] = {name: [0.0] for name in robot.bodies}
    for name, body in robot.bodies.items():
        points[name] += [float(np.linalg.norm(frame.r)) for frame in body.frames.values()]
        points[name] += [float(np.linalg.norm(point)) for point in body.contacts.values()]
    ends = [(loop.predecessor, loop.predecessor_frame) for loop in robot.loops]
    ends += [(loop.successor, loop.successor_frame) for loop in robot.loops]
    ends += [(shape.body, shape.at) for shape in robot.shapes]
    for body, frame in ends:
        if body in points:
            points[body].append(float(np.linalg.norm(frame.r)))
    on: dict[str, list[tuple[str, float]]] = {}
    for joint in robot.joints:
        start = 0.0 if joint.parent not in robot.bodies else float(np.linalg.norm(joint.placement.r))
        end = 0.0 if joint.meets is None else float(np.linalg.norm(joint.meets.r))
        on.setdefault(joint.parent, []).append((joint.child, start + end))
    longest, waiting = 0.0, list(on.get("ground", []))
    while waiting:
        body, way = waiting.pop()
        longest = max(longest, way + max(points[body]))
        waiting += [(child, way + step) for child, step in on.get(body, [])]
    centres = sorted(float(np.linalg.norm(body.centre)) for body in robot.bodies.values() if body.mass)
    return max(longest, centres[(len(centres) - 1) // 2] if centres else 0.0)


def _gyration(body: Body) -> float:
    """The largest radius of gyration of a body with mass, m."""
    return float(np.sqrt(max(np.linalg.eigvalsh(body.inertia)[-1], 0.0) / body.mass))


def ideal_inertias(robot: Robot) -> Iterator[Finding]:
    """Inertias that no real body has, where the description says that they are meant; else it is warned of."""
    found = [name for name, body in robot.bodies.items() if body.ideal and not _real(body)]
    if found and not any("no real body has" in warning for warning in robot.warnings):
        yield Finding(
            "note",
            f"no real body has the inertia of {listed(found)}",
            "right for planar models and for rotors of which only the spin counts; else give all three moments",
        )


def _real(body: Body) -> bool:
    try:
        check_inertia(body.name, body.mass, body.inertia)
    except ModelError:
        return False
    return True


def gyration(robot: Robot) -> Iterator[Finding]:
    """Inertias that are too large for the mass."""
    size = size_of(robot)
    limit = min(max(_LONG, _FAR * size), max(_NOT_SHORT, _HUGE * size))
    for name, body in robot.bodies.items():
        radius = _gyration(body) if body.mass else 0.0
        if radius > limit:
            yield Finding(
                "warning",
                f"body {name!r}: its inertia is that of {body.mass:.3g} kg at a distance of {radius:.3g} m, on a robot "
                f"of about {size:.2g} m",
                "inertias are in kg m² about the centre of mass; are these in other units, or about another point?",
            )


def centres(robot: Robot) -> Iterator[Finding]:
    """Centres of mass far from their bodies."""
    size = size_of(robot)
    places = {joint.child: 0.0 if joint.meets is None else joint.meets.r for joint in robot.joints}
    for name, body in robot.bodies.items():
        away = float(np.linalg.norm(body.centre - places[name]))
        if body.mass and away > _FAR * size:
            yield Finding(
                "warning",
                f"body {name!r}: its centre of mass is {away:.3g} m from its joint, on a robot of about {size:.2g} m",
                "centres are in m in the body's own frame; is this one in mm, or in the frame of an assembly?",
            )


def massless(robot: Robot) -> Iterator[Finding]:
    """Links that move and have no mass."""
    links = robot.tree.links
    mass = [sum(robot.bodies[name].mass for name in link.bodies if name in robot.bodies) for link in links]
    empty = [i for i in range(1, len(links)) if not mass[i] and not np.any(links[i].inertia.matrix())]
    carries = [bool(x) for x in mass]
    for i in reversed(range(1, len(links))):
        carries[links[i].parent] |= carries[i]
    dangling = [links[i].name for i in empty if not carries[i]]
    between = [links[i].name for i in empty if carries[i]]
    if dangling:
        yield Finding(
            "warning",
            f"body {listed(dangling)} moves, has no mass, and carries nothing that has",
            "give it mass and inertia, or make it a frame of the body that carries it",
        )
    if between:
        yield Finding(
            "note",
            f"body {listed(between)} moves and has no mass",
            "right for links that only separate joints; else give it mass and inertia",
        )


def dummies(robot: Robot) -> Iterator[Finding]:
    """Links with a mass that is there for the sake of another program."""
    masses = {link.name: sum(robot.bodies[name].mass for name in link.bodies) for link in robot.tree.links[1:]}
    light = {name: mass for name, mass in masses.items() if 0.0 < mass < _LIGHT * robot.mass}
    if light:
        yield Finding(
            "warning",
            f"body {listed(light)} moves and has a mass of only {max(light.values()):.3g} kg, of {robot.mass:.3g} kg",
            "if the mass is a dummy, leave it out: what only separates joints needs none, and a frame is no body",
        )


def mass_matrix(robot: Robot) -> Iterator[Finding]:
    """A mass matrix that is singular, or so nearly that few digits are left."""
    from coupler.inertia import mass_matrix as compute

    H = compute(robot, robot.neutral())
    diagonal = np.diag(H)
    positive = bool((diagonal > 0.0).all())
    scaled = np.linalg.eigvalsh(H / np.sqrt(np.outer(diagonal, diagonal))) if positive else np.zeros(1)
    if not scaled[0] > _ROUNDING:  # freedoms have different units; scaled, they can be compared
        yield Finding(
            "error",
            "the mass matrix is singular at the neutral configuration: some motion moves no mass",
            "give the bodies that it moves mass and inertia, or its joints an armature",
        )
    elif np.linalg.cond(H) > _ILL:
        yield Finding(
            "warning",
            f"the mass matrix has the condition number {np.linalg.cond(H):.2g} at the neutral configuration",
            "masses or inertias differ by too much for exact results; are some of them dummies, or in other units?",
        )
