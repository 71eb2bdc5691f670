"""Contacts with height fields against brute force over all of their triangles."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from coupler.contact.collision.faces import Faces
from coupler.contact.collision.geometry import Point, contacts, count, tangents
from coupler.contact.collision.terrain.surface import highest
from coupler.model import Box, Capsule, Cylinder, Ellipsoid, HeightField, Hull, Plane, Sphere
from coupler.spatial import Transform
from terrain_samples import clearance, distance_from_triangles, height, random_field, triangles
from transforms import random_transform

HERE = Transform.identity()
HULL = Hull(np.random.default_rng(5).normal(size=(9, 3)) * [0.12, 0.1, 0.06])
BAR = Box((0.1, 0.1, 0.3))


def at(x: float, y: float, z: float) -> Transform:
    return Transform.translation(np.array([x, y, z]))


def test_the_highest_place_over_a_rectangle_is_that_of_many_places_in_it() -> None:
    rng, many = np.random.default_rng(3), 12
    for _ in range(12):
        field = HeightField(rng.normal(size=rng.integers(2, 5, size=2)), rng.uniform(1.0, 3.0, size=2))
        low = rng.uniform(-0.45, 0.3, size=2) * field.size
        high = np.minimum(low + rng.uniform(0.0, 1.0, size=2), 0.5 * field.size)
        top, (xs, ys) = highest(field, low, high), np.linspace(low, high, many).T
        found = max(height(field, x, y) for x in xs for y in ys)
        rises = [np.abs(np.diff(field.heights, axis=k)).max() / field.grid[2 + k] for k in range(2)]
        assert found - 1e-12 < top < found + rises @ (high - low) / (many - 1) + 1e-12
        assert highest(field, 0.6 * field.size, field.size) == -np.inf
        assert highest(field, -field.size, field.size + 2.0) == pytest.approx(field.heights.max(), abs=1e-12)


def polyhedron(shape: Box | Hull, X: Transform) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corners, planes and edges of a shape in the world."""
    signs = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, -1).T
    corners = signs * shape.size if isinstance(shape, Box) else shape.vertices
    faces = Faces.of(corners)
    offsets = [normal @ polygon[0] for normal, polygon in zip(faces.normals, faces.polygons, strict=True)]
    sets = [{tuple(c) for c in polygon} for polygon in faces.polygons]
    edges = [np.array([*a & b]) for a, b in combinations(sets, 2) if len(a & b) == 2]
    place = lambda p: X.r + p @ X.E  # noqa: E731
    normals = faces.normals @ X.E
    planes = np.column_stack([normals, np.array(offsets) + normals @ X.r])
    return place(corners), planes, np.array([place(edge) for edge in edges])


def test_a_ball_is_as_far_from_a_field_as_from_the_nearest_of_its_triangles() -> None:
    rng, ball, seen = np.random.default_rng(0), Sphere(0.13), 0
    for _ in range(4):
        field = random_field(rng)
        for _ in range(8):
            x, y = rng.uniform(-0.42, 0.42, 2) * field.size
            z = height(field, x, y) + rng.uniform(0.01, 0.17)
            expected = distance_from_triangles(field, np.array([x, y, z])) - ball.radius
            found = min(contact.gap for contact in contacts(ball, field, at(x, y, z), HERE))
            if expected < 0.25 * ball.radius:  # what is further away is not looked at
                seen += 1
                assert found == pytest.approx(expected, abs=1e-12)
    assert seen > 20


@pytest.mark.parametrize("shape", [Box((0.3, 0.2, 0.1)), Box((0.06, 0.9, 0.1)), HULL], ids=["box", "bar", "hull"])
def test_what_has_flat_sides_touches_where_it_is_lowered_to_the_ground(shape: Box | Hull) -> None:
    rng = np.random.default_rng(1)
    for _ in range(6):
        field, turn = random_field(rng, (7, 7)), random_transform(rng).E
        X = Transform(turn, np.array([*rng.uniform(-0.2, 0.2, 2), 1.0]))
        down = clearance(field, *polyhedron(shape, X))
        for depth in (0.0, 1e-5):
            found = contacts(shape, field, Transform(turn, X.r - [0.0, 0.0, down + depth]), HERE)
            assert len(found) == count(shape, field)
            deepest = min(found, key=lambda contact: contact.gap)
            assert deepest.gap == pytest.approx(-depth * deepest.frame[0, 2], abs=1e-11 + 3e-3 * depth)


def least_of_triangles(corners: np.ndarray, distance: Callable[[np.ndarray], np.ndarray]) -> float:
    """The least of a convex function over triangles, k × 3 × 3: thirds of thirds, in all of them at once."""
    a, b, c = (corners[:, k] for k in range(3))

    def least(f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        low, high = np.zeros(len(a)), np.ones(len(a))
        for _ in range(50):
            s, t = low + (high - low) / 3.0, high - (high - low) / 3.0
            left = f(s) < f(t)
            low, high = np.where(left, low, s), np.where(left, t, high)
        return f(0.5 * (low + high))

    def row(s: np.ndarray) -> np.ndarray:
        start, end = a + s[:, None] * (b - a), a + s[:, None] * (c - a)
        return least(lambda t: distance(start + t[:, None] * (end - start)))

    return float(least(row).min())


def from_capsule(x: np.ndarray, shape: Capsule) -> np.ndarray:
    axial = np.maximum(np.abs(x[:, 2]) - 0.5 * shape.length, 0.0)
    return np.sqrt(x[:, 0] ** 2 + x[:, 1] ** 2 + axial**2) - shape.radius


def from_cylinder(x: np.ndarray, shape: Cylinder) -> np.ndarray:
    out = np.array([np.hypot(x[:, 0], x[:, 1]) - shape.radius, np.abs(x[:, 2]) - 0.5 * shape.length])
    return np.hypot(*np.maximum(out, 0.0)) + np.minimum(out.max(axis=0), 0.0)


@pytest.mark.parametrize(
    ("shape", "distance"),
    [(Capsule(0.06, 0.3), from_capsule), (Cylinder(0.12, 0.08), from_cylinder), (Cylinder(0.04, 0.4), from_cylinder)],
    ids=["capsule", "disc", "rod"],
)
def test_what_is_round_is_as_far_from_a_field_as_from_its_nearest_point(
    shape: Capsule | Cylinder, distance: Callable[[np.ndarray, Any], np.ndarray]
) -> None:
    rng = np.random.default_rng(2)
    for _ in range(4):
        field, turn = random_field(rng, (6, 6)), random_transform(rng).E
        r = np.array([*rng.uniform(-0.15, 0.15, 2), 0.3])
        near = np.array([own for own in triangles(field) if np.linalg.norm(own.mean(axis=0)[:2] - r[:2]) < 0.4])

        def gap(r: np.ndarray = r, near: np.ndarray = near, turn: np.ndarray = turn) -> float:
            return least_of_triangles(near, lambda x: distance((x - r) @ turn.T, shape))

        r[2] -= gap() - 0.01  # nearly down
        found = min(contact.gap for contact in contacts(shape, field, Transform(turn, r), HERE))
        assert found == pytest.approx(gap(), abs=1e-9)


SHAPES = {
    "point": Point(),
    "sphere": Sphere(0.1),
    "capsule": Capsule(0.06, 0.3),
    "box": Box((0.3, 0.2, 0.1)),
    "cylinder": Cylinder(0.1, 0.2),
    "ellipsoid": Ellipsoid((0.06, 0.1, 0.15)),
    "hull": HULL,
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_slope_of_a_field_is_a_plane(name: str) -> None:
    shape, slope, rng = SHAPES[name], np.array([0.3, -0.2]), np.random.default_rng(3)
    x, y = np.linspace(-2.0, 2.0, 25), np.linspace(-1.5, 1.5, 17)
    field = HeightField(slope[0] * x[:, None] + slope[1] * y[None, :] + 0.1, (4.0, 3.0))
    n = np.array([*-slope, 1.0]) / np.sqrt(1.0 + slope @ slope)
    upright = Transform(np.stack([*tangents(n), n]), np.array([0.0, 0.0, 0.1]))
    for _ in range(5):
        ground = random_transform(rng)
        X = Transform(random_transform(rng).E, upright.r + upright.E.T @ [*rng.uniform(-0.5, 0.5, 2), 0.15]) @ ground
        on_field = contacts(shape, field, X, ground)
        assert len(on_field) == count(shape, field)
        for other in contacts(shape, Plane(), X, upright @ ground):
            if other.gap < 0.1 or name in ("point", "box", "hull"):
                one = min(on_field, key=lambda own: float(np.linalg.norm(own.point - other.point)))
                assert one.gap == pytest.approx(other.gap, abs=1e-12)
                np.testing.assert_allclose(one.frame, other.frame, rtol=0, atol=1e-12)
                np.testing.assert_allclose(one.point, other.point, rtol=0, atol=1e-12)


def test_cells_are_cut_from_their_first_corner_to_their_last() -> None:
    field = HeightField([[0.0, 1.0, 4.0], [2.0, 3.0, 7.0]], (1.0, 4.0))
    for x, y in np.random.default_rng(4).uniform(-0.5, 0.5, (20, 2)) * [1.0, 4.0]:
        (contact,) = contacts(Point(), field, at(x, y, 9.0), HERE)
        assert 9.0 - contact.gap / contact.frame[0, 2] == pytest.approx(height(field, x, y), abs=1e-12)
    ridge = HeightField([[1.0, 0.0], [0.0, 1.0]], (2.0, 2.0))
    (contact,) = contacts(Point(), ridge, at(0.0, 0.0, 1.5), HERE)
    assert 1.5 - contact.gap / contact.frame[0, 2] == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize(
    ("place", "gap", "normal"),
    [
        ((1.2, 0.0, -0.5), 0.2, (1, 0, 0)),  # beside a wall
        ((0.95, 0.2, -0.5), -0.05, (1, 0, 0)),  # inside, next to it
        ((0.3, -0.98, -3.0), -0.02, (0, -1, 0)),
        ((0.3, 0.2, -0.1), -0.1, (0, 0, 1)),
        ((1.3, 0.0, 0.4), 0.5, (0.6, 0, 0.8)),  # above, and beyond the rim
        ((1.3, 1.4, -7.0), 0.5, (0.6, 0.8, 0)),
    ],
)
def test_the_rim_of_a_field_is_an_edge(place: Any, gap: float, normal: Any) -> None:
    field = HeightField(np.zeros((5, 6)), (2.0, 2.0))
    (found,) = contacts(Point(), field, at(*place), HERE)
    assert found.gap == pytest.approx(gap, abs=1e-14)
    np.testing.assert_allclose(found.frame[0], normal, rtol=0, atol=1e-14)
    ball = min(contacts(Sphere(0.15), field, at(*place), HERE), key=lambda own: own.gap)
    if gap - 0.15 < 0.15:
        assert ball.gap == pytest.approx(gap - 0.15, abs=1e-14)
        np.testing.assert_allclose(ball.frame[0], normal, rtol=0, atol=1e-12)


@pytest.mark.parametrize("x", [0.9, 1.01, 1.1])
@pytest.mark.parametrize("shape", [Cylinder(0.05, 0.3), Capsule(0.05, 0.3), BAR])
def test_what_lies_over_the_rim_touches_from_above(shape: Any, x: float) -> None:
    """Its inner end is far behind the wall, and just below the surface."""
    field, lying = HeightField(np.zeros((5, 6)), (2.0, 2.0)), np.array([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]])
    for depth in (0.0, 1e-12, 1e-9, 1e-6):
        X = Transform(lying, np.array([x, 0.03, 0.05 - depth]))
        found = min(contacts(shape, field, X, HERE), key=lambda own: own.gap)
        assert found.gap == pytest.approx(-depth, abs=1e-9)
        np.testing.assert_allclose(
            found.frame[0], [0, 0, 1], rtol=0, atol=0.2 if isinstance(shape, Ellipsoid) else 1e-6
        )


def test_a_finer_grid_of_the_same_surface_is_the_same_ground() -> None:
    rng = np.random.default_rng(6)
    x = np.linspace(-1.0, 1.0, 5)
    coarse = rng.uniform(-0.1, 0.1, (5, 1)) + 0.2 * x[None, :] * rng.normal()  # bent along x alone
    fine = np.array([np.interp(np.linspace(-1.0, 1.0, 13), x, column) for column in coarse.T]).T
    fine = np.array([np.interp(np.linspace(-1.0, 1.0, 17), x, row) for row in fine])
    fields = HeightField(coarse, (2.0, 2.0)), HeightField(fine, (2.0, 2.0))
    for name, shape in SHAPES.items():
        for _ in range(3):
            X = Transform(random_transform(rng).E, np.array([*rng.uniform(-0.5, 0.5, 2), 0.15]))
            gaps = [min(own.gap for own in contacts(shape, field, X, HERE)) for field in fields]
            if max(gaps) < 0.08:
                assert gaps[0] == pytest.approx(gaps[1], abs=1e-9), name


@pytest.mark.parametrize("name", ["sphere", "capsule"])
def test_shapes_are_as_deep_in_a_field_as_mujoco_says(name: str) -> None:
    mujoco = pytest.importorskip("mujoco", reason="it is compared with")
    rng = np.random.default_rng(11)
    shares = rng.uniform(0.0, 1.0, (8, 7)).astype(np.float32)  # as MuJoCo has them
    shares.flat[:2] = 0.0, 1.0
    field, shape = HeightField(0.1 * shares.astype(float), (1.4, 1.2)), SHAPES[name]
    geom = {"sphere": "0.1", "capsule": "0.06 0.15"}[name]
    numbers = " ".join(f"{x:.9g}" for x in shares.T.ravel())
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><hfield name="h" nrow="7" ncol="8" size="0.7 0.6 0.1 1" elevation="{numbers}"/></asset>'
        f'<worldbody><geom type="hfield" hfield="h"/><body><freejoint/><geom type="{name}" size="{geom}"/></body>'
        "</worldbody></mujoco>"
    )
    model.hfield_data[:] = shares.T.ravel()
    data = mujoco.MjData(model)
    for _ in range(12):
        X = Transform(random_transform(rng).E, np.array([*rng.uniform(-0.3, 0.3, 2), 0.3]))
        for _ in range(6):  # down, until it is 0.1 mm deep
            X = Transform(X.E, X.r - [0.0, 0.0, min(own.gap for own in contacts(shape, field, X, HERE)) + 1e-4])
        data.qpos[:3] = X.r
        mujoco.mju_mat2Quat(data.qpos[3:7], X.E.T.ravel())
        mujoco.mj_fwdPosition(model, data)
        assert data.ncon
        deepest = min(contacts(shape, field, X, HERE), key=lambda own: own.gap)
        assert data.contact.dist.min() == pytest.approx(deepest.gap, abs=2e-5)
        found = data.contact.frame[np.argmin(data.contact.dist), :3]
        assert abs(found @ deepest.frame[0]) > 0.98
