"""Families of random contact problems of free bodies, for tests of contact solvers.

A problem is w = Z Yᵀ λ + b with Y = Z D⁻¹: Z has the rows of contacts by velocities of bodies, D their masses, and b
the velocities of rows without impulses; a gap g adds g/h to that of its normal. Bodies overlap nowhere by more than
they do in a simulation. All problems of a family have the same rows, so that many can be solved at once, and a seed
gives the same problem always. Units are m, kg, s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from zlib import crc32

import numpy as np

from coupler.contact import Bilateral, Block, Bounded, Cone, ContactProblem, Unilateral

STEP = 1e-3
UP = np.array([0.0, 0.0, 1.0])
Random = np.random.Generator


@dataclass(eq=False)
class Scene:
    """Free bodies, and rows between them. Body −1 is the ground."""

    masses: list[np.ndarray] = field(default_factory=list)  # 6 × 6
    places: list[np.ndarray] = field(default_factory=list)
    velocities: list[np.ndarray] = field(default_factory=list)  # linear, then angular
    rows: list[list[dict[int, np.ndarray]]] = field(default_factory=list)  # of each contact, by body
    others: list[dict[int, np.ndarray]] = field(default_factory=list)  # further rows
    gaps: list[float] = field(default_factory=list)  # of contacts, over the step, m/s
    cones: list[Cone] = field(default_factory=list)  # of contacts
    blocks: list[Block] = field(default_factory=list)  # of further rows

    def body(self, mass: float, inertia: np.ndarray, place: object, velocity: object = 0.0, spin: object = 0.0) -> int:
        """Adds a body that has fallen for a step, with its inertia (3) or (3, 3) about its centre; gives its number."""
        D = np.zeros((6, 6))
        D[:3, :3], D[3:, 3:] = mass * np.eye(3), inertia if np.ndim(inertia) == 2 else np.diag(inertia)
        self.masses.append(D)
        self.places.append(np.array(place, float))
        falling = np.broadcast_to(np.asarray(velocity, float), 3) - 9.81 * STEP * UP
        self.velocities.append(np.concatenate([falling, np.broadcast_to(np.asarray(spin, float), 3)]))
        return len(self.masses) - 1

    def contact(
        self, a: int, b: int, point: object, normal: np.ndarray, friction: float | Cone, gap: float = 0.0
    ) -> None:
        """Adds a contact at a point; the normal points from body a to body b."""
        other = np.eye(3)[np.abs(normal).argmin()]
        x = np.cross(other, normal) / np.linalg.norm(np.cross(other, normal))
        axes, cone = (normal, x, np.cross(normal, x)), friction if isinstance(friction, Cone) else Cone(friction)
        rows = [self._along(a, b, np.array(point, float), axis) for axis in axes]
        rows += [
            {k: s * np.concatenate([np.zeros(3), axis]) for k, s in ((a, -1.0), (b, 1.0)) if k >= 0} for axis in axes
        ]
        self.rows.append(rows[: cone.size])
        self.gaps.append(gap / STEP)
        self.cones.append(cone)

    def hold(self, b: int, block: Block, *, along: np.ndarray | None = None, about: np.ndarray | None = None) -> None:
        """Adds a row: the velocity of a body's centre along an axis, or its angular velocity about one."""
        axis = np.concatenate([np.zeros(3) if x is None else x for x in (along, about)])
        self.others.append({b: axis})
        self.blocks.append(block)

    def _along(self, a: int, b: int, point: np.ndarray, axis: np.ndarray) -> dict[int, np.ndarray]:
        parts = {}
        for k, sign in ((a, -1.0), (b, 1.0)):
            if k >= 0:
                parts[k] = sign * np.concatenate([axis, np.cross(point - self.places[k], axis)])
        return parts


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem, contacts first.

    Attributes:
        Z, Y: (rows, 6 · bodies).
        b: (rows,), m/s.
        cones: of each contact.
        blocks: further rows.
        seen: the bodies of each contact and each further row.
    """

    Z: np.ndarray
    Y: np.ndarray
    b: np.ndarray
    cones: tuple[Cone, ...]
    blocks: tuple[Block, ...]
    seen: tuple[tuple[int, ...], ...]

    def as_matrix(self) -> ContactProblem:
        A = self.Z @ self.Y.T
        return ContactProblem(0.5 * (A + A.T), self.b, [*self.cones, *self.blocks])

    @property
    def friction(self) -> list[float]:
        """The coefficients of all contacts."""
        return [x for cone in self.cones for x in cone.coefficients]


def made(scene: Scene) -> Problem:
    rows, bodies = [*(row for own in scene.rows for row in own), *scene.others], len(scene.masses)
    Z = np.zeros((len(rows), 6 * bodies))
    for i, row in enumerate(rows):
        for k, part in row.items():
            Z[i, 6 * k : 6 * k + 6] = part
    Y = np.zeros_like(Z)
    for k, D in enumerate(scene.masses):
        own = slice(6 * k, 6 * k + 6)
        Y[:, own] = np.linalg.solve(D, Z[:, own].T).T
    b = Z @ np.concatenate(scene.velocities)
    b[np.cumsum([0, *(cone.size for cone in scene.cones)])[:-1]] += scene.gaps
    seen = [tuple(sorted(row)) for row in [*(own[0] for own in scene.rows), *scene.others]]
    return Problem(Z, Y, b, tuple(scene.cones), tuple(scene.blocks), tuple(seen))


def box_inertia(mass: float, size: Sequence[float] | np.ndarray) -> np.ndarray:
    square = np.asarray(size) ** 2
    return mass / 12.0 * (square.sum() - square)


def corners(x: float, y: float) -> list[tuple[float, float]]:
    return [(x, y), (-x, y), (-x, -y), (x, -y)]


# Families


def ratio(count: int, boxes: bool, rng: Random) -> Scene:
    """Bodies on each other whose masses rise or fall by up to 1e6 from the ground to the top."""
    scene, whole, falls, mu = Scene(), 10.0 ** rng.uniform(-6, 6), rng.random() < 0.5, rng.uniform(0, 1.5)
    for k in range(count):
        mass = whole ** (k / (count - 1))
        scene.body(mass, box_inertia(mass, (0.2, 0.2, 0.2)), (0, 0, 0.1 + 0.2 * k), falls * 0.1 * rng.normal(size=3))
        for x, y in corners(0.1, 0.1) if boxes else [(0.0, 0.0)]:
            scene.contact(k - 1, k, (x, y, 0.2 * k), UP, mu)
    return scene


def turning(mu: float, size: float, rng: Random) -> Cone:
    """A contact that resists turning, by what fits a body of a size."""
    return Cone(mu, *(size * 10.0 ** rng.uniform(-3, 0, 2)))


def marbles(rng: Random) -> Scene:
    """Balls of unequal sizes that roll, spin and slide on the ground and along each other."""
    scene, at = Scene(), 0.0
    for k in range(4):
        radius = rng.uniform(0.02, 0.2)
        at += radius
        mass, rolls = 4000.0 * radius**3, rng.random() < 0.5
        velocity, spin = rng.normal(size=3) * (1, 1, 0.1), 3.0 * rng.normal(size=3)
        if rolls:
            spin[:2] = np.array([-velocity[1], velocity[0]]) / radius
        scene.body(mass, np.full(3, 0.4 * mass * radius**2), (at, 0, radius), velocity, spin)
        scene.contact(-1, k, (at, 0, 0), UP, turning(rng.uniform(0, 1), radius, rng))
        if k:
            apart = scene.places[k] - scene.places[k - 1]
            apart /= np.linalg.norm(apart)
            touching = scene.places[k] - radius * apart
            scene.contact(k - 1, k, touching, apart, turning(rng.uniform(0, 1), radius, rng), 1e-5)
        at += radius
    return scene


def turning_plate(points: int, rng: Random) -> Scene:
    """A plate that lands on points which resist turning, some about the normal alone."""
    scene = plate(points, rng)
    for i, cone in enumerate(scene.cones):
        arms = turning(cone.friction, 0.5, rng)
        scene.cones[i] = arms if i % 2 else Cone(arms.friction, arms.torsion)
    turned = [[{0: np.concatenate([np.zeros(3), axis])} for axis in (UP, *np.eye(3)[:2])] for _ in scene.cones]
    scene.rows = [[*rows, *more][: cone.size] for rows, more, cone in zip(scene.rows, turned, scene.cones, strict=True)]
    return scene


def plate(points: int, rng: Random) -> Scene:
    """A plate that lands, sliding, on points of a circle of 1 m, 0.5 m below its centre."""
    scene, mu, angle = Scene(), rng.uniform(0, 2), rng.uniform(0, 2 * np.pi)
    velocity = np.array([np.cos(angle), np.sin(angle), -rng.uniform(0, 2)])
    scene.body(1.0, np.array([0.3, 0.3, 0.5]), (0, 0, 0.5), velocity, rng.uniform(0, 1) * rng.normal(size=3))
    for turn in 2 * np.pi * np.arange(points) / points:
        scene.contact(-1, 0, (np.cos(turn), np.sin(turn), 0), UP, mu)
    return scene


def stack(count: int, rng: Random) -> Scene:
    """Boxes on each other, 4 points an interface: at rest, or moving, with offsets and gaps."""
    scene, mu, rests = Scene(), rng.uniform(0.1, 1), rng.random() < 0.4
    offset, gap, below = 0.02 * (rng.random() < 0.5), 1e-5 * (rng.random() < 0.5), np.zeros(2)
    for k in range(count):
        mass, at = rng.uniform(0.5, 2), below + (offset * rng.uniform(-1, 1, 2) if k else 0.0)
        velocity = 0.0 if rests else 0.02 * rng.normal(size=3)
        scene.body(mass, box_inertia(mass, (0.2, 0.2, 0.1)), (*at, 0.05 + 0.1 * k), velocity)
        half = 0.1 - 0.5 * np.abs(at - below)
        for corner in corners(*half):
            place = (*(0.5 * (at + below) + corner), 0.1 * k)
            scene.contact(k - 1, k, place, UP, mu, gap * rng.uniform(-0.1, 1))
        below = at
    return scene


def wedge(loaded: bool, rng: Random) -> Scene:
    """A box that is pushed between two planes, with 4 points a side, and perhaps one on top of it."""
    scene, mu, half = Scene(), rng.uniform(0, 1.5), rng.uniform(0.05, 1.2)
    push = -rng.uniform(0, 2) * (rng.random() < 0.7)
    scene.body(1.0, box_inertia(1.0, (0.2, 0.2, 0.2)), np.zeros(3), push * UP, 0.3 * rng.normal(size=3))
    for side in (-1.0, 1.0):
        normal, along = (
            np.array([-side * np.cos(half), 0, np.sin(half)]),
            np.array([side * np.sin(half), 0, np.cos(half)]),
        )
        for x, y in corners(0.08, 0.1):
            scene.contact(-1, 0, np.array([0.1 * side, y, 0.0]) + x * along, normal, mu)
    if loaded:
        mass = 10.0 ** rng.uniform(-2, 2)
        scene.body(mass, box_inertia(mass, (0.2, 0.2, 0.2)), (0, 0, 0.2), -0.5 * UP)
        for x, y in corners(0.1, 0.1):
            scene.contact(0, 1, (x, y, 0.1), UP, mu)
    return scene


def grip(rng: Random) -> Scene:
    """Two fingers on rails, with dry friction, that squeeze a box which is pulled away."""
    scene, mu, force = Scene(), rng.uniform(0.1, 1.5), 10.0 ** rng.uniform(0, 3)
    mass, finger = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-2, 1)
    scene.body(mass, box_inertia(mass, (0.1, 0.1, 0.1)), np.zeros(3), 0.1 * rng.normal(size=3))
    for side in (-1.0, 1.0):
        inward = np.array([-side, 0.0, 0.0])
        place = -0.07 * inward
        k = scene.body(finger, box_inertia(finger, (0.04, 0.1, 0.1)), place, STEP * force / finger * inward)
        for y, z in corners(0.05, 0.05):
            scene.contact(k, 0, (0.05 * side, y, z), inward, mu)
        for axis in np.eye(3):
            scene.hold(k, Bilateral(), about=axis)
        for axis in np.eye(3)[1:]:
            scene.hold(k, Bilateral(), along=axis)
        bound = STEP * rng.uniform(0, 10)
        scene.hold(k, Bounded(-bound, bound), along=inward)
    return scene


def painleve(rng: Random) -> Scene:
    """A rod that slides on its tip and along a wall, so that friction presses it down."""
    scene, lean, mu = Scene(), rng.uniform(0.2, 1.5), rng.uniform(0.3, 3)
    axis = np.array([np.cos(lean), 0, np.sin(lean)])
    inertia = 10.0 ** rng.uniform(-2, 0) / 3 * (np.eye(3) - np.outer(axis, axis)) + 1e-3 * np.outer(axis, axis)
    velocity = np.array([rng.uniform(-2, 2), 0.1 * rng.normal(), -rng.uniform(0, 0.3)])
    scene.body(1.0, inertia, axis, velocity, 0.5 * rng.normal(size=3))
    scene.contact(-1, 0, np.zeros(3), UP, mu)
    scene.contact(-1, 0, 2 * axis, np.array([-1.0, 0, 0]), mu, 1e-4 * (rng.random() < 0.5))
    return scene


def scatter(bodies: int, contacts: int, decades: float, rng: Random) -> Scene:
    """Bodies without order that touch each other and the ground at random; some turn only against dry friction."""
    scene = Scene()
    for _ in range(bodies):
        mass, (R, _) = 10.0 ** rng.uniform(-decades, decades), np.linalg.qr(rng.normal(size=(3, 3)))
        inertia, moves = R @ np.diag(box_inertia(mass, rng.uniform(0.05, 0.4, 3))) @ R.T, rng.random() < 0.7
        scene.body(mass, inertia, rng.normal(size=3), moves * rng.normal(size=3), moves * rng.normal(size=3))
    for i in range(contacts):
        a, b = (i % (bodies + 1)) - 1, (3 * i + 1) % bodies  # the same pairs for every seed
        a = -1 if a == b else a
        apart = scene.places[b] - scene.places[a] + 0.3 * rng.normal(size=3) if a >= 0 else UP
        middle = 0.5 * (scene.places[a] + scene.places[b]) if a >= 0 else scene.places[b]
        mu, gap = rng.uniform(0, 2) * (rng.random() < 0.9), 1e-4 * rng.random() * (rng.random() < 0.3)
        scene.contact(a, b, middle + 0.15 * rng.normal(size=3), apart / np.linalg.norm(apart), mu, gap)
    for k in range(0, bodies, 4):
        bound, axis = 10.0 ** rng.uniform(-3, 0), np.eye(3)[k % 3]
        scene.hold(k, Bounded(-bound, bound), about=axis)
        scene.hold(k, Unilateral(), along=axis)
    return scene


def arch(count: int, rng: Random) -> Scene:
    """Blocks of a round arch between two walls: each interface carries the thrust of all, by friction."""
    scene, mu, rests = Scene(), rng.uniform(0.3, 1), rng.random() < 0.6
    angles = np.linspace(0, np.pi, count + 1)
    for middle in 0.5 * (angles[:-1] + angles[1:]):
        mass, velocity = rng.uniform(0.5, 2), 0.0 if rests else 0.05 * rng.normal(size=3)
        place = (-np.cos(middle), 0, np.sin(middle))
        scene.body(mass, box_inertia(mass, (angles[1], 0.3, 0.3)), place, velocity)
    for k, angle in enumerate(angles):
        radial, normal = np.array([-np.cos(angle), 0, np.sin(angle)]), np.array([np.sin(angle), 0, np.cos(angle)])
        for x, y in corners(0.15, 0.15):
            point = (1 + x) * radial + np.array([0.0, y, 0.0])
            scene.contact(k - 1, k if k < count else -1, point, normal, mu)
    return scene


FAMILIES: dict[str, Callable[[Random], Scene]] = {
    "2 balls": partial(ratio, 2, False),
    "6 balls": partial(ratio, 6, False),
    "2 boxes of unequal mass": partial(ratio, 2, True),
    "4 boxes of unequal mass": partial(ratio, 4, True),
    "plate on 4 points": partial(plate, 4),
    "plate on 12 points": partial(plate, 12),
    "plate on 64 points": partial(plate, 64),
    "stack of 2": partial(stack, 2),
    "stack of 5": partial(stack, 5),
    "stack of 20": partial(stack, 20),
    "wedge": partial(wedge, False),
    "loaded wedge": partial(wedge, True),
    "grip": grip,
    "painleve": painleve,
    "few bodies": partial(scatter, 4, 8, 0.3),
    "few unequal bodies": partial(scatter, 5, 14, 2.0),
    "many bodies": partial(scatter, 16, 24, 0.3),
    "small arch": partial(arch, 3),
    "large arch": partial(arch, 9),
    "marbles": marbles,
    "turning plate on 4 points": partial(turning_plate, 4),
    "turning plate on 12 points": partial(turning_plate, 12),
}


def make(family: str, seed: int) -> Problem:
    """The problem of a family with a seed."""
    return made(FAMILIES[family](np.random.default_rng([crc32(family.encode()), seed])))
