"""Masses and inertias that are probably not intended."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coupler.cli.checks.finding import Finding
from coupler.grouping import grouped
from coupler.model import Body, ModelError, Robot
from coupler.model.bodies import check_inertia
from coupler.model.tree import GROUND
from coupler.model.wording import clause, listed

# A radius of gyration is suspicious if it exceeds 2 m and twice the size of the robot, or 1 m and 100 times its size; a
# centre of mass, if it is more than twice the size of the robot away from its joint.
_LONG, _FAR = 2.0, 2.0  # m, sizes of the robot
_NOT_SHORT, _HUGE = 1.0, 100.0  # m, sizes of the robot
_LIGHT = 1e-6  # of the robot's mass: lighter links are dummies
_ILL = 1e12  # condition number that leaves about four of 16 digits
_ROUNDING = 1e-14  # smaller eigenvalues of a matrix with ones on its diagonal may be rounded zeros


def size_of(robot: Robot) -> float:
    """The approximate size of the robot, m: the longest path from its base through joints to a point on a body.

    It is at least the median distance of a centre of mass from the origin of its body.
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
    carried = grouped(robot.joints, lambda joint: joint.parent)
    longest, pending = 0.0, [(joint, 0.0) for joint in carried.get(GROUND, [])]
    while pending:
        joint, length = pending.pop()
        length += 0.0 if joint.parent == GROUND else float(np.linalg.norm(joint.placement.r))
        length += 0.0 if joint.meets is None else float(np.linalg.norm(joint.meets.r))
        longest = max(longest, length + max(points[joint.child]))
        pending += [(other, length) for other in carried.get(joint.child, [])]
    centres = sorted(float(np.linalg.norm(body.centre)) for body in robot.bodies.values() if body.mass)
    return max(longest, centres[(len(centres) - 1) // 2] if centres else 0.0)


def _gyration(body: Body) -> float:
    """The largest radius of gyration of a body with mass, m."""
    return float(np.sqrt(max(np.linalg.eigvalsh(body.inertia)[-1], 0.0) / body.mass))


def ideal_inertias(robot: Robot) -> Iterator[Finding]:
    """Inertias that no real body has, but that are marked as ideal; for others, building the robot warns."""
    ideal = [name for name, body in robot.bodies.items() if body.ideal and not _real(body)]
    warned = ("no real body has", "inertia but no mass")
    if ideal and not any(words in warning for warning in robot.warnings for words in warned):
        yield Finding(
            "note",
            f"no real body has the inertia of {listed(ideal)}",
            "fine for planar models, and for rotors of which only the spin matters; otherwise give all three moments",
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
                f"body {name!r}: its radius of gyration is {radius:.3g} m, on a robot of about {size:.2g} m",
                "inertias are in kg m² about the centre of mass; are these in other units, or about another point?",
            )


def centres(robot: Robot) -> Iterator[Finding]:
    """Centres of mass far from their bodies."""
    size = size_of(robot)
    joint_positions = {joint.child: 0.0 if joint.meets is None else joint.meets.r for joint in robot.joints}
    for name, body in robot.bodies.items():
        distance = float(np.linalg.norm(body.centre - joint_positions[name]))
        if body.mass and distance > _FAR * size:
            yield Finding(
                "warning",
                f"body {name!r}: its centre of mass is {distance:.3g} m from its joint, on a robot of about "
                f"{size:.2g} m",
                "centres of mass are in m in the body's own frame; is this one in mm, or in the frame of the assembly?",
            )


def massless(robot: Robot) -> Iterator[Finding]:
    """Links that move without mass."""
    links = robot.tree.links
    mass = [sum(robot.bodies[name].mass for name in link.bodies if name in robot.bodies) for link in links]
    empty = [i for i in range(1, len(links)) if not mass[i] and not np.any(links[i].inertia.matrix())]
    carries = [bool(x) for x in mass]
    for i in reversed(range(1, len(links))):
        carries[links[i].parent] |= carries[i]
    clusters = robot.cluster_tree
    held = {k for k, cluster in enumerate(clusters.clusters) if any(carries[i] for i in cluster.bodies)}
    dangling = [links[i].name for i in empty if not carries[i] and clusters.cluster_of[i] not in held]
    between = [links[i].name for i in empty if links[i].name not in dangling]
    if dangling:
        yield Finding(
            "warning",
            clause(
                dangling, "body {} moves, has no mass and carries none", "bodies {} move, have no mass and carry none"
            ),
            "give it mass and inertia, or make it a frame of the body that carries it",
        )
    if between:
        yield Finding(
            "note",
            clause(between, "body {} moves without mass", "bodies {} move without mass"),
            "fine between joints, and for struts in loops; otherwise give mass and inertia",
        )


def dummies(robot: Robot) -> Iterator[Finding]:
    """Moving links with a tiny mass, which was given to please another program."""
    masses = {link.name: sum(robot.bodies[name].mass for name in link.bodies) for link in robot.tree.links[1:]}
    light = {name: mass for name, mass in masses.items() if 0.0 < mass < _LIGHT * robot.mass}
    if light:
        yield Finding(
            "warning",
            clause(light, "body {} weighs", "bodies {} weigh")
            + f" only {max(light.values()):.3g} kg on a robot of {robot.mass:.3g} kg",
            "if the mass is a dummy, leave it out: links between joints need none, and frames need no body",
        )


def mass_matrix(robot: Robot) -> Iterator[Finding]:
    """A mass matrix that is singular, or so ill-conditioned that few digits are left."""
    from coupler.inertia import mass_matrix as compute

    if not robot.nv:
        return
    H = compute(robot, robot.neutral())
    diagonal = np.diag(H)
    positive = bool((diagonal > 0.0).all())
    scaled = np.linalg.eigvalsh(H / np.sqrt(np.outer(diagonal, diagonal))) if positive else np.zeros(1)
    if not scaled[0] > _ROUNDING:  # scaled, since freedoms have different units
        yield Finding(
            "error",
            "the mass matrix is singular in the neutral configuration: some motion moves no mass",
            "give the bodies that move mass and inertia, or their joints an armature",
        )
    elif np.linalg.cond(H) > _ILL:
        yield Finding(
            "warning",
            f"the condition number of the mass matrix is {np.linalg.cond(H):.2g} in the neutral configuration",
            "masses or inertias differ too much for accurate results; are some of them dummies, or in other units?",
        )
