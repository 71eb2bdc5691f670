"""Contacts on nodes of a trace: the same numbers as on floats, compiled, and derivatives that agree with the normal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from coupler.contact.collision.geometry import Point, contacts, count
from coupler.graph import Builder, View, compile, fields, jacobian, symbols
from coupler.model import Box, Capsule, Cylinder, Ellipsoid, Geometry, HeightField, Hull, ModelError, Plane, Sphere
from coupler.spatial import Transform
from transforms import random_transform

RNG = np.random.default_rng(12)
CAPSULE, BOX, CYLINDER = Capsule(0.2, 0.7), Box((0.5, 0.8, 1.1)), Cylinder(0.35, 0.6)
ELLIPSOID, HULL = Ellipsoid((0.3, 0.5, 0.8)), Hull(RNG.normal(size=(6, 3)))
FIELD = HeightField(RNG.normal(size=(5, 4)), (3.0, 2.0))
PAIRS: list[tuple[Geometry, Geometry]] = [
    *((Plane(), shape) for shape in (Point(), Sphere(0.3), CAPSULE, BOX, CYLINDER, ELLIPSOID, HULL)),
    (FIELD, Point()),
    *((Sphere(0.3), shape) for shape in (Point(), Sphere(0.2), CAPSULE, BOX, CYLINDER, ELLIPSOID)),
    *((Point(), shape) for shape in (Point(), CAPSULE, BOX, CYLINDER, ELLIPSOID)),
    (CAPSULE, Capsule(0.1, 0.4)),
    (CAPSULE, BOX),
]


def named(value: object) -> str:
    return type(value).__name__


def transform(numbers: np.ndarray) -> Transform:
    return Transform(numbers[:9].reshape(3, 3), numbers[9:])


def flat(X: Transform) -> np.ndarray:
    return np.concatenate([X.E.ravel(), X.r])


def on_floats(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform) -> np.ndarray:
    found = contacts(one, other, X_one, X_other)
    return np.array([[c.gap, *c.point, *c.frame.ravel()] for c in found], dtype=float)


def compiled(one: Geometry, other: Geometry) -> Callable[..., np.ndarray]:
    """The contacts as one program."""
    many = count(one, other)

    def find(at: View) -> None:
        found = contacts(one, other, transform(at.one), transform(at.other))
        at.found = np.stack([np.concatenate([np.stack([c.gap]), c.point, c.frame.ravel()]) for c in found])

    b = Builder("contacts")
    X_one, X_other, found = b.input("one", 12), b.input("other", 12), b.output("found", 13 * many)
    b.loop(find, at=fields(one=X_one.at([0], 12), other=X_other.at([0], 12), found=found.at([0], (many, 13))))
    program = compile(b.build())
    return lambda one, other: np.asarray(program(one=flat(one), other=flat(other))).reshape(many, 13)


def test_every_pair_that_has_a_closed_form_is_here() -> None:
    kinds = {frozenset((type(a), type(b))) for a, b in PAIRS}
    assert len(kinds) == 7 + 1 + 6 + 5 + 2


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=named)
def test_a_compiled_program_finds_the_contacts_that_floats_do(one: Geometry, other: Geometry) -> None:
    programs = compiled(one, other), compiled(other, one)
    rng = np.random.default_rng(13)
    for _ in range(20):
        X_one, X_other = random_transform(rng), random_transform(rng)
        X_one = Transform(X_one.E, rng.uniform(0.1, 0.6) * X_one.r)
        X_other = Transform(X_other.E, 0.1 * X_other.r)
        np.testing.assert_allclose(
            programs[0](X_one, X_other), on_floats(one, other, X_one, X_other), rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(
            programs[1](X_other, X_one), on_floats(other, one, X_other, X_one), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=named)
def test_a_compiled_program_is_finite_where_directions_are_lost(one: Geometry, other: Geometry) -> None:
    """All centres coincide and all axes are parallel."""
    here = Transform.identity()
    found = compiled(one, other)(here, here)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, on_floats(one, other, here, here), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("one", "other"), [pair for pair in PAIRS if FIELD not in pair], ids=named)
def test_the_derivative_of_every_gap_is_its_normal(one: Geometry, other: Geometry) -> None:
    rng = np.random.default_rng(14)
    for _ in range(4):
        X_one, X_other = random_transform(rng), random_transform(rng)

        def gaps(r: np.ndarray, X_one: Transform = X_one, X_other: Transform = X_other) -> np.ndarray:
            return np.stack([c.gap for c in contacts(one, other, Transform(X_one.E, r), X_other)])

        normals = [c.frame[0] for c in contacts(one, other, X_one, X_other)]
        np.testing.assert_allclose(jacobian(gaps, X_one.r), normals, rtol=0, atol=1e-11)


def test_arrays_that_mix_numbers_and_nodes_are_taken() -> None:
    x = symbols("x", 1)[0]
    X = Transform(np.eye(3).astype(object), np.array([x, 0.0, 0.5]))
    (contact,) = contacts(Sphere(0.1), BOX, X, Transform.identity())
    assert np.shape(contact.frame) == (3, 3)
    assert contact.gap is not None


def test_convex_pairs_without_a_closed_form_are_refused_on_nodes() -> None:
    X = transform(symbols("X", 12))
    with pytest.raises(ModelError, match=r"between a box and a cylinder have no closed form to trace"):
        contacts(BOX, CYLINDER, X, Transform.identity())


def test_a_large_height_field_is_looked_up_and_shapes_on_it_are_searched_for() -> None:
    field = HeightField(np.arange(1600.0).reshape(40, 40), (39.0, 39.0))
    find = compiled(Point(), field)
    X = Transform.translation(np.array([3.0, -4.25, 9000.0]))
    np.testing.assert_allclose(
        find(X, Transform.identity()), on_floats(Point(), field, X, Transform.identity()), rtol=1e-15
    )
    with pytest.raises(ModelError, match=r"a sphere and a height field have no closed form to trace"):
        compiled(Sphere(0.1), field)
