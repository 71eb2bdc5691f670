"""Shapes: what bodies are drawn with, and what they touch with."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.tolerances import TINY
from coupler.model.wording import clipped
from coupler.spatial import Transform

_FLAT = 1e-9  # of its size: a hull that is thinner has no volume


class Geometry:
    """The geometry of a shape, without its place; its frame is at its centre."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            shape = {"size": (3,), "radii": (3,), "scale": (3,)}.get(field.name, ())
            what = f"{type(self).__name__.lower()}: its {field.name}"
            if field.name != "path":
                value = numbers(what, getattr(self, field.name), shape, spread=field.name == "scale")
                if field.name != "scale" and not (value > 0.0).all():
                    raise ModelError(f"{what} must be above zero, got {getattr(self, field.name)!r}")
                object.__setattr__(self, field.name, value if shape else float(value))


@dataclass(frozen=True, eq=False)
class Sphere(Geometry):
    """A ball, given by its radius, m."""

    radius: float


@dataclass(frozen=True, eq=False)
class Capsule(Geometry):
    """A cylinder along z with a half ball at each end.

    Attributes:
        radius: m.
        length: length of the cylinder alone, m.
    """

    radius: float
    length: float


@dataclass(frozen=True, eq=False)
class Cylinder(Geometry):
    """A cylinder along z, given by its radius and length, m."""

    radius: float
    length: float


@dataclass(frozen=True, eq=False)
class Box(Geometry):
    """A box, given by the lengths of its sides along x, y and z, m."""

    size: Any


@dataclass(frozen=True, eq=False)
class Ellipsoid(Geometry):
    """An ellipsoid, given by its radii along x, y and z, m."""

    radii: Any


@dataclass(frozen=True, eq=False)
class Plane(Geometry):
    """The half space below z = 0 of its frame."""


@dataclass(frozen=True, eq=False)
class Mesh(Geometry):
    """A surface that is read from a file.

    Attributes:
        path: the file, which need not exist until the mesh is used.
        scale: factors along x, y and z.
    """

    path: Path
    scale: Any = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.path, str | Path):
            raise ModelError(f"mesh: its path must be a path, got {clipped(self.path)}")
        object.__setattr__(self, "path", Path(self.path))


@dataclass(frozen=True, eq=False)
class Hull(Geometry):
    """The convex hull of points.

    Attributes:
        vertices: n × 3, m, which must span a volume. Points inside the hull are harmless but cost time.
    """

    vertices: Any

    def __post_init__(self) -> None:
        what = "hull: its vertices"
        vertices = numbers(what, self.vertices, (3,), batch=True)
        spread = vertices - vertices.mean(axis=0) if vertices.ndim == 2 and len(vertices) else np.zeros((1, 3))
        if np.linalg.matrix_rank(spread, tol=_FLAT * max(float(np.abs(spread).max()), TINY)) < 3:
            raise ModelError(f"{what} must be n × 3 numbers that span a volume, got the shape {vertices.shape}")
        object.__setattr__(self, "vertices", vertices)


@dataclass(frozen=True, eq=False)
class Shape:
    """A geometry on a body.

    Attributes:
        name: its name, which may be empty.
        body: the name of its body, or "ground".
        geometry: its geometry.
        at: transform from the body's frame to the geometry's.
        visible: whether it is drawn.
        group: bits of the groups that it belongs to.
        meets: bits of the groups that it touches. Two shapes can touch if a bit of one's group is among the bits that
            the other meets.
        friction: coefficient of sliding friction; None if unknown: the other shape's counts then.
        restitution: rebound velocity over impact velocity, 0 to 1; None leaves it to the simulation.
        colour: red, green, blue and opacity, from 0 to 1 each; None if unknown.
        priority: of two shapes, the one with the higher priority determines the friction of their contacts; of equal
            ones, the one with the larger friction.
        torsion: torsional friction: the largest moment about the normal over the normal force, m; None for none.
        rolling: rolling friction: the largest moment about a tangent over the normal force, m; None for none.
    """

    name: str
    body: str
    geometry: Geometry
    at: Transform
    visible: bool = True
    group: int = 1
    meets: int = 1
    friction: float | None = None
    colour: Any = None
    priority: int = 0
    restitution: float | None = None
    torsion: float | None = None
    rolling: float | None = None

    def __post_init__(self) -> None:
        what = f"shape {self.name!r} on body {self.body!r}"
        if not isinstance(self.geometry, Geometry):
            raise ModelError(f"{what}: its geometry must be one such as Sphere(0.1), got {self.geometry!r}")
        for name in ("friction", "restitution", "torsion", "rolling"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, float(numbers(f"{what}: its {name}", value, (), least=0.0)))
        for name in ("group", "meets", "priority"):
            if not isinstance(getattr(self, name), int | np.integer):
                raise ModelError(f"{what}: its {name} must be a whole number, got {clipped(getattr(self, name))}")
        if self.restitution is not None and self.restitution > 1.0:
            raise ModelError(
                f"{what}: its restitution must be 0 to 1, got {self.restitution:g}: more would feed energy"
            )
        if self.colour is not None:
            object.__setattr__(self, "colour", numbers(f"{what}: its colour", self.colour, (4,), least=0.0))

    @property
    def touches(self) -> bool:
        """Whether it can touch anything."""
        return bool(self.group or self.meets)


@dataclass(frozen=True)
class ContactPair:
    """Two shapes that may touch whatever their groups, joints and exclusions are, with a friction of their own.

    Attributes:
        first, second: names of the shapes.
        friction: the coefficient of sliding friction.
        torsion: torsional friction: the largest moment about the normal over the normal force, m; None for none.
        rolling: rolling friction: the largest moment about a tangent over the normal force, m; None for none.
    """

    first: str
    second: str
    friction: float
    torsion: float | None = None
    rolling: float | None = None

    @property
    def name(self) -> str:
        """The names of both shapes."""
        return f"{self.first} on {self.second}"

    def __post_init__(self) -> None:
        what = f"contact pair {self.first!r}, {self.second!r}"
        if self.first == self.second:
            raise ModelError(f"{what}: a shape cannot touch itself")
        for name in ("friction", "torsion", "rolling"):
            value = getattr(self, name)
            if value is not None or name == "friction":
                object.__setattr__(self, name, float(numbers(f"{what}: its {name}", value, (), least=0.0)))
