"""Bodies: what can have mass, and what cannot."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.model import Body, ModelError

BOX = np.diag([0.13, 0.10, 0.05])


def test_a_body_knows_its_inertia_about_its_origin() -> None:
    body = Body("box", 2.0, (0.0, 0.0, 0.5), BOX)
    inertia = body.spatial_inertia()
    np.testing.assert_allclose(inertia.I, np.diag([0.13 + 0.5, 0.10 + 0.5, 0.05]))
    np.testing.assert_allclose(inertia.h, [0, 0, 1.0])
    assert not body.massless


def test_a_body_may_have_no_mass() -> None:
    assert Body("hinge").massless
    np.testing.assert_array_equal(Body("hinge").spatial_inertia().matrix(), np.zeros((6, 6)))


def test_a_point_mass_and_a_thin_rod_are_possible() -> None:
    for moments in (np.zeros(3), [0.1, 0.1, 0.0], [0.1, 0.1, 0.2]):  # a point, a rod, a disc
        np.testing.assert_array_equal(Body("b", 1.0, inertia=np.diag(moments)).inertia, np.diag(moments))


def test_rounding_in_files_is_forgiven() -> None:
    rounded = np.diag([0.1, 0.1, 0.2000001])
    np.testing.assert_array_equal(Body("disc", 1.0, inertia=rounded).inertia, rounded)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("",), "a body needs a name"),
        (("b", -1.0), "body 'b': its mass must be a finite number, 0 or more, got -1.0"),
        (("b", np.nan), "its mass must be a finite number"),
        (("b", np.inf), "its mass must be a finite number"),
        (("b", 1.0, (0, 0)), "its centre must be 3 finite numbers"),
        (("b", 1.0, (0, 0, np.nan)), "its centre must be 3 finite numbers"),
        (("b", 1.0, (0, 0, 0), np.eye(2)), "if not given by its three moments, must be 3 × 3 finite numbers"),
        (("b", 1.0, (0, 0, 0), np.full((3, 3), np.inf)), "if not given by its three moments, must be 3 × 3 finite"),
        (
            ("b", 1.0, (0, 0, 0), np.diag([1.0, 1.0, -0.1])),
            "moments are -0.1, 1, 1 kg m²; none can be negative",
        ),
        (("b", 1.0, (0, 0, 0), np.diag([1.0, 1.0, 2.5])), "the largest exceeds the sum of the other two"),
        (("b", 1.0, (0, 0, 0), [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), "its inertia is not symmetric"),
        (("b", 0.0, (0, 0, 0), BOX), "it has an inertia .* but no mass"),
        (("b", 1.0, (0, 0, 0), BOX, {}, {"toe": (0, 0)}), "contact point 'toe' must be 3 finite numbers"),
    ],
)
def test_what_a_body_cannot_be(arguments, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Body(*arguments)


def test_ideal_bodies_may_be_what_no_real_one_is() -> None:
    Body("planar link", 1.0, (0.5, 0, 0), np.diag([0.0, 0.0, 1.0]), ideal=True)
    Body("rotor", inertia=np.diag([0.0, 0.0, 1e-4]), ideal=True)
    with pytest.raises(ModelError, match="none can be negative"):
        Body("impossible", 1.0, inertia=np.diag([0.0, -1.0, 1.0]), ideal=True)


def test_rounded_symmetry_is_made_exact() -> None:
    body = Body("box", 2.0, inertia=[[0.13, 1e-8, 0], [0, 0.10, 0], [0, 0, 0.05]])
    np.testing.assert_array_equal(body.inertia, body.inertia.T)


def test_frames_are_transforms() -> None:
    with pytest.raises(ModelError, match="its frame 'f' must be a Transform, got str"):
        Body("box", frames={"f": "here"})  # type: ignore[dict-item]


def test_a_body_is_frozen() -> None:
    body = Body("box", 2.0, (0, 0, 0), BOX)
    with pytest.raises(ValueError, match="read-only"):
        body.inertia[0, 0] = 1.0
    with pytest.raises(AttributeError):
        body.mass = 1.0  # type: ignore[misc]
