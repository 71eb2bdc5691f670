"""One suite for every back end that runs in this process: the same programs, the same answers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from coupler.graph import Builder, Executable, View, constants, fields
from machines import BACKENDS
from samples import SAMPLES, Sample

sample = cache(lambda name: SAMPLES[name]())


def relative_error(result: np.ndarray, expected: np.ndarray) -> float:
    return float(np.max(np.abs(result - expected), initial=0) / max(np.max(np.abs(expected), initial=0), 1e-300))


def expected_outputs(s: Sample, inputs: list[np.ndarray]) -> list[np.ndarray]:
    rows = [s.expected(*state) for state in zip(*inputs, strict=True)]
    return [np.stack(column) for column in zip(*rows, strict=True)]


def outputs_of(run: Executable, inputs: list[np.ndarray]) -> list[np.ndarray]:
    result = run(*inputs)
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SAMPLES)
def test_agrees_with_plain_numpy(name: str, backend: str) -> None:
    s = sample(name)
    run = BACKENDS[backend](s.program, np.float64)
    inputs = s.draw(np.random.default_rng(7), 19)  # lanes and a tail
    for result, expected in zip(outputs_of(run, inputs), expected_outputs(s, inputs), strict=False):
        assert relative_error(result, expected) <= s.tolerance


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["chain", "runge_kutta", "mixed_tree", "staircase"])
def test_float32(name: str, backend: str) -> None:
    s = sample(name)
    run = BACKENDS[backend](s.program, np.float32)
    inputs = [x.astype(np.float32) for x in s.draw(np.random.default_rng(8), 35)]
    expected = expected_outputs(s, [x.astype(np.float64) for x in inputs])
    for result, want in zip(outputs_of(run, inputs), expected, strict=False):
        assert result.dtype == np.float32
        # Single precision has 29 bits less; the chain is the one that is ill-conditioned.
        assert relative_error(result, want) <= max(s.tolerance * 2**29, 4e-6 if s.tolerance else 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("backend", [b for b in BACKENDS if b not in ("interpreter", "python")])
@pytest.mark.parametrize("name", SAMPLES)
def test_lanes_and_threads_equal_one_state_bit_for_bit(name: str, backend: str, dtype: type) -> None:
    s = sample(name)
    run = BACKENDS[backend](s.program, dtype)
    inputs = [x.astype(dtype) for x in s.draw(np.random.default_rng(9), 53)]
    together = outputs_of(run, inputs)
    for i in range(53):
        alone = outputs_of(run, [x[i] for x in inputs])
        for batch, one in zip(together, alone, strict=True):
            np.testing.assert_array_equal(batch[i], one)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("states", [0, 1, 2, 7, 8, 9, 16, 31])
def test_every_batch_size(states: int, backend: str) -> None:
    s = sample("runge_kutta")
    run = BACKENDS[backend](s.program, np.float64)
    inputs = s.draw(np.random.default_rng(states), states)
    result = run(*inputs)
    assert result.shape == (states, 4)
    if states:
        assert relative_error(result, expected_outputs(s, inputs)[0]) <= s.tolerance


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_state_of_a_repeat_does_not_depend_on_its_neighbours(backend: str) -> None:
    s = sample("four_bar")
    run = BACKENDS[backend](s.program, np.float64)
    crank, guess = s.draw(np.random.default_rng(1), 24)
    _, rounds = run(crank, guess)
    assert len(np.unique(rounds)) > 2, "the states should end at different rounds"
    for i in range(24):
        for group in (slice(i, i + 1), slice(0, i + 1), slice(i, None)):
            angles, n = run(crank[group], guess[group])
            at = 0 if group.start == i else i
            np.testing.assert_array_equal(n[at], rounds[i])
            np.testing.assert_array_equal(angles[at], run(crank, guess)[0][i])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_state_that_never_settles_stops_at_the_limit(backend: str) -> None:
    s = sample("four_bar")
    run = BACKENDS[backend](s.program, np.float64)
    crank, guess = s.draw(np.random.default_rng(1), 3)
    guess[1] = np.nan
    _, rounds = run(crank, guess)
    assert rounds[1] == 20
    assert rounds[0] < 20 > rounds[2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_constants_beyond_single_precision_are_infinite_there(backend: str) -> None:
    def kernel(s: View) -> None:
        s.y = np.array([np.minimum(s.x, 1e300), np.minimum(s.x, s.c)])

    b = Builder("bound")
    b.loop(kernel, s=fields(x=b.input("x", 1).at(0), y=b.output("y", 2).at(0, 2), c=constants([-1e300])))
    run = BACKENDS[backend](b.build(), np.float32)
    np.testing.assert_array_equal(run(np.array([3.0], np.float32)), [3.0, -np.inf])


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_overwritten_is_read_before(backend: str) -> None:
    """Results are stored early, and what was not needed for long is loaded again: never from where a result went."""

    def kernel(s: View) -> None:
        x, y, z = s.x, s.y, s.x[0]
        for i in range(200):  # between the first use of x and the last
            z = z * 0.5 + y[i % 4]
        s.x, s.y = y, np.array([x[0] + x[3], x[1] * z, x[2] - z, z])  # x is overwritten by what is known from the start

    b = Builder("swap")
    given, memory, result = b.input("given", 8), b.scratch("memory", 8), b.output("result", 8)
    own = fields(x=memory.at(0, 4), y=memory.at(4, 4))
    b.loop(lambda s: setattr(s, "to", s.of + 0.0), s=fields(of=given.at(0, 8), to=memory.at(0, 8)))
    b.loop(kernel, s=own)
    b.loop(lambda s: setattr(s, "to", s.of + 0.0), s=fields(of=memory.at(0, 8), to=result.at(0, 8)))
    run = BACKENDS[backend](b.build(), np.float64)
    values = np.random.default_rng(3).normal(size=(13, 8))
    x, y = values[:, :4].T, values[:, 4:].T
    z = x[0]
    for i in range(200):
        z = z * 0.5 + y[i % 4]
    expected = np.stack([*y, x[0] + x[3], x[1] * z, x[2] - z, z], axis=1)
    assert relative_error(run(values), expected) <= 1e-15
