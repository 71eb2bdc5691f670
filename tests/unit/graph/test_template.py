"""Functions with their numbers taken out."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coupler.graph import GraphError, symbol, symbols, template
from coupler.mechanisms import FourBar, gear


def polynomial(c: float) -> Callable[[Any], Any]:
    return lambda x: np.array([c * x[0] * x[0] + x[1], np.sin(x[0]) - 2.0 * c])


def test_functions_that_differ_in_numbers_look_alike() -> None:
    one, other = template(polynomial(3.0), 2), template(polynomial(-0.7), 2)
    assert one.text == other.text
    np.testing.assert_array_equal(one.numbers, [3.0, 6.0])
    x = np.array([0.4, 1.5])
    np.testing.assert_allclose([float(y) for y in one(x, other.numbers)], polynomial(-0.7)(x), rtol=1e-15)


def test_functions_that_compute_something_else_do_not() -> None:
    assert template(gear(6.0), 1).text != template(gear(6.0, offset=0.5), 1).text
    assert template(FourBar(0.2, 0.5, 0.4, 0.6), 1).text != template(FourBar(0.2, 0.5, 0.4, 0.6, crossed=True), 1).text


def test_ones_and_zeros_are_structure() -> None:
    found = template(gear(1.0), 1)
    assert not found.numbers.size
    assert found.text != template(gear(6.0), 1).text


def test_a_four_bar_is_what_it_was() -> None:
    bars = FourBar(0.21, 0.52, 0.43, 0.64)
    found = template(bars, 1)
    assert found.text == template(FourBar(0.2, 0.5, 0.4, 0.6), 1).text
    for angle in np.linspace(-3, 3, 7):
        y = np.array([angle])
        np.testing.assert_allclose([float(q) for q in found(y, found.numbers)], bars(y), rtol=0, atol=1e-15)


def test_nodes_can_be_put_in() -> None:
    found = template(gear(6.0), 1)
    y = symbols("y", 1)
    assert found(y, [symbol("ratio")])[0] is y[0]


def test_numbers_go_to_the_function_itself() -> None:
    seen: list[np.ndarray] = []

    def product(c: float) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            seen.append(x)
            return np.array([c * x[0]])

        return function

    one, other = template(product(3.0), 1), template(product(5.0), 1)
    seen.clear()
    np.testing.assert_array_equal(one(np.array([2.0]), other.numbers), [10.0])  # one text serves both
    assert [x.dtype for x in seen] == [float]
    np.testing.assert_array_equal(one(np.array([2.0]), np.array([7.0])), [14.0])  # nobody's numbers
    assert len(seen) == 1


def test_what_a_template_cannot_be() -> None:
    stray = symbol("stray")
    with pytest.raises(GraphError, match="which is none of its 1 arguments"):
        template(lambda x: x * stray, 1)
    with pytest.raises(GraphError, match="computes with inf"):
        template(lambda x: np.where(x > 0, x, np.inf), 1)


def test_a_template_is_read_back_from_its_text() -> None:
    def function(x: Any) -> Any:
        """Operations of every kind, constants that stay, an input that is not used, an output twice, and one alone."""
        inside = (x[0] < 2.5) & ~(x[1] <= -1.0)
        first = np.where(inside, np.arctan2(x[0], x[1]), -np.sqrt(x[0] + 7.5))
        return np.array([[first, first], [x[0], 1.0], [np.abs(x[1]) ** 3, -0.25]])

    functions: list[tuple[Callable[[Any], Any], int]] = [(function, 3), (FourBar(0.2, 0.5, 0.4, 0.6), 1)]
    functions += [(polynomial(3.0), 2), (lambda x: 2.0 * x[0], 1)]
    for original, size in functions:
        one = template(original, size)
        other = pickle.loads(pickle.dumps(one))
        assert (other.text, other.shape) == (one.text, one.shape)
        np.testing.assert_array_equal(other.numbers, one.numbers)
        assert template(lambda x, other=other: other(x, other.numbers), size).text == one.text
        x = np.linspace(0.3, 0.9, size)
        np.testing.assert_array_equal(np.array(other(x, one.numbers), float), np.array(one(x, one.numbers), float))
    alike = pickle.loads(pickle.dumps([template(gear(ratio), 1) for ratio in (2.0, 3.0)]))
    assert alike[0].text is alike[1].text
