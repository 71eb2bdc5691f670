"""Programs for the tests of every back end, each with what it must compute, written independently in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coupler.graph import Builder, Program, Table, View, constants, fields, jacobian, symmetric
from geared_chain import Chain, forward_dynamics, random_chain


@dataclass(frozen=True)
class Sample:
    """A program, inputs for it and their results.

    Attributes:
        program: what is run.
        draw: random inputs for a number of states, float64 of shape (states, size) each.
        expected: the outputs for the inputs of one state.
        tolerance: of the result, relative to its largest element, in float64.
    """

    program: Program
    draw: Callable[[np.random.Generator, int], list[np.ndarray]]
    expected: Callable[..., list[np.ndarray]]
    tolerance: float = 1e-14


def _normal(*sizes: int) -> Callable[[np.random.Generator, int], list[np.ndarray]]:
    return lambda rng, states: [rng.normal(size=(states, size)) for size in sizes]


# A chain with rotors: three passes over a tree. Expected: solve the equation of motion, inertia column by column.


def _skew(x: np.ndarray) -> np.ndarray:
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def _inverse_dynamics(chain: Chain, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Newton and Euler body by body, with 6 x 6 matrices, rotors as bodies of their own."""

    def cross(v: np.ndarray) -> np.ndarray:
        return np.block([[_skew(v[:3]), np.zeros((3, 3))], [_skew(v[3:]), _skew(v[:3])]])

    axis = np.array([0, 0, 1.0, 0, 0, 0])
    v, a = [np.zeros(6)], [np.array([0, 0, 0, 0, 0, 9.81])]
    bodies = []  # (link index, ratio, transform, force)
    for i in range(len(q)):
        # The rotor comes first: both hang on the link before, and what is appended last is the next link's parent.
        for kind, ratio in ((chain.rotors, chain.ratio[i]), (chain.links, 1.0)):
            c, s = np.cos(ratio * q[i]), np.sin(ratio * q[i])
            E = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) @ kind.E[i]
            X = np.block([[E, np.zeros((3, 3))], [-E @ _skew(kind.r[i]), E]])
            h = _skew(kind.h[i])
            inertia = np.block([[kind.I[i], h], [h.T, kind.m[i] * np.eye(3)]])
            vi = X @ v[i] + axis * ratio * qd[i]
            ai = X @ a[i] + axis * ratio * qdd[i] + cross(vi) @ axis * ratio * qd[i]
            bodies.append((i, ratio, X, inertia @ ai - cross(vi).T @ inertia @ vi))
            if kind is chain.links:
                v.append(vi)
                a.append(ai)
    tau, carried = np.zeros(len(q)), np.zeros((len(q) + 1, 6))
    for i, ratio, X, force in reversed(bodies):
        total = force + (carried[i + 1] if ratio == 1.0 else 0.0)
        tau[i] += ratio * axis @ total
        carried[i] += X.T @ total
    return tau


def chain_acceleration(chain: Chain, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> np.ndarray:
    bias = _inverse_dynamics(chain, q, qd, np.zeros_like(q))
    H = np.stack([_inverse_dynamics(chain, q, qd, unit) - bias for unit in np.eye(len(q))], axis=1)
    return np.linalg.solve(H, tau - bias)


def chain(n: int = 5) -> Sample:
    model = random_chain(n, seed=n)

    def expected(q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> list[np.ndarray]:
        return [chain_acceleration(model, q, qd, tau)]

    return Sample(forward_dynamics(model), _normal(n, n, n), expected, tolerance=1e-11)


# Newton's closure of a four-bar: a repeat that every state leaves at its own round.

CRANK, COUPLER, ROCKER, GROUND = 0.3, 1.0, 0.8, 1.1  # m


def _four_bar_closure(angles, crank):
    """The loop's opening for angles of coupler and rocker against the ground line."""
    joint = [CRANK * np.cos(crank) + COUPLER * np.cos(angles[0]), CRANK * np.sin(crank) + COUPLER * np.sin(angles[0])]
    return np.array([joint[0] - GROUND - ROCKER * np.cos(angles[1]), joint[1] - ROCKER * np.sin(angles[1])])


def _start(loop: View) -> None:
    loop.angles = loop.guess
    loop.rounds = np.array(0.0)
    loop.residual = _four_bar_closure(loop.guess, loop.crank)


def _closed(loop: View):
    return np.all(np.abs(loop.residual) < 1e-13)


def _newton(loop: View) -> None:
    (a, b), (c, d) = jacobian(lambda x: _four_bar_closure(x, loop.crank), loop.angles)
    determinant = a * d - b * c
    e, f = loop.residual
    loop.angles = loop.angles - np.array([(d * e - b * f) / determinant, (a * f - c * e) / determinant])
    loop.residual = _four_bar_closure(loop.angles, loop.crank)
    loop.rounds += 1.0


def four_bar() -> Sample:
    b = Builder("four_bar")
    crank, guess = b.input("crank", 1), b.input("guess", 2)
    angles, rounds = b.output("angles", 2), b.output("rounds", 1)
    state = fields(crank=crank.at(0), guess=guess.at(0, 2), angles=angles.at(0, 2), rounds=rounds.at(0))
    loop = b.records("loop", 1, residual=2)[:] | state
    b.loop(_start, loop=loop)
    with b.repeat(until=_closed, at_most=20, loop=loop):
        b.loop(_newton, loop=loop)

    def draw(rng: np.random.Generator, states: int) -> list[np.ndarray]:
        crank = rng.uniform(-3, 3, (states, 1))
        exact = np.stack([_four_bar_solution(x) for x in crank[:, 0]])
        return [crank, exact + 10.0 ** rng.uniform(-9, -1, (states, 1)) * rng.normal(size=(states, 2))]

    def expected(crank: np.ndarray, guess: np.ndarray) -> list[np.ndarray]:
        angles, rounds = guess, 0
        while rounds < 20 and np.abs(_four_bar_closure(angles, crank[0])).max() >= 1e-13:
            J = np.array(
                [
                    [-COUPLER * np.sin(angles[0]), ROCKER * np.sin(angles[1])],
                    [COUPLER * np.cos(angles[0]), -ROCKER * np.cos(angles[1])],
                ]
            )
            angles = angles - np.linalg.solve(J, _four_bar_closure(angles, crank[0]))
            rounds += 1
        assert np.allclose(angles, _four_bar_solution(crank[0]), rtol=0, atol=1e-11)
        return [angles]

    return Sample(b.build(), draw, expected, tolerance=1e-12)


def _four_bar_solution(crank: float) -> np.ndarray:
    """Closed form: the rocker's tip is where two circles meet."""
    x, y = CRANK * np.cos(crank) - GROUND, CRANK * np.sin(crank)
    distance = np.hypot(x, y)
    inner = np.arccos((ROCKER**2 + distance**2 - COUPLER**2) / (2 * ROCKER * distance))
    rocker = np.arctan2(y, x) - inner
    tip = np.array([GROUND + ROCKER * np.cos(rocker), ROCKER * np.sin(rocker)])
    return np.array([np.arctan2(tip[1] - y, tip[0] - CRANK * np.cos(crank)), rocker])


# Projected Gauss-Seidel: loops of products and updates interleaved, inside a repeat inside another.


def _clear(row: View) -> None:
    row.sum = row.b


def _product(row: View, column: View, entry: View) -> None:
    row.sum += entry.a * column.x


def _project(row: View, entry: View, worst: View) -> None:
    new = np.maximum(row.x - row.sum / entry.a, 0.0)
    worst.change = np.maximum(worst.change, np.abs(new - row.x))
    row.x = new


def _zero(row: View) -> None:
    row.x = np.array(0.0)


def _unsettled(worst: View) -> None:
    worst.change = np.array(1.0)


def _idle(worst: View) -> None:
    worst.change = worst.change


def _fresh(worst: View) -> None:
    worst.change = np.array(0.0)


def _settled(worst: View):
    return worst.change < 1e-9


def gauss_seidel(n: int = 4) -> Sample:
    """min ½ xᵀAx + bᵀx over x ≥ 0, for a matrix and a vector given as inputs."""
    p = Builder("gauss_seidel")
    a, b, x = p.input("a", n * n), p.input("b", n), p.output("x", n)
    sums, worst = p.records("row", n, sum=()), p.records("worst", 1, change=())
    i, j = np.divmod(np.arange(n * n), n)
    p.loop(_zero, row=fields(x=x.at(range(n))))
    p.loop(_unsettled, worst=worst[0])
    with p.repeat(until=_settled, at_most=500, worst=worst[0]):
        p.loop(_idle, worst=worst[0])
        p.loop(_fresh, worst=worst[0])
        order = np.tile([0] + [1] * n + [2], n)
        with p.interleave(order):
            p.loop(_clear, row=sums[:] | fields(b=b.at(range(n))))
            p.loop(_product, row=sums[i], column=fields(x=x.at(j)), entry=fields(a=a.at(range(n * n))))
            diagonal = fields(a=a.at(np.arange(n) * (n + 1)))
            p.loop(_project, row=sums[:] | fields(x=x.at(range(n))), entry=diagonal, worst=worst[np.zeros(n, int)])

    def draw(rng: np.random.Generator, states: int) -> list[np.ndarray]:
        M = rng.normal(size=(states, n, n))
        return [(M @ M.transpose(0, 2, 1) + np.eye(n)).reshape(states, -1), rng.normal(size=(states, n))]

    def expected(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        A, x = a.reshape(n, n), np.zeros(n)
        for _ in range(500):
            before = x.copy()
            for k in range(n):
                x[k] = max(x[k] - (A[k] @ x + b[k]) / A[k, k], 0.0)
            if np.abs(x - before).max() < 1e-9:
                break
        return [x]

    return Sample(p.build(), draw, expected, tolerance=1e-11)


# A time step that calls another program four times: Runge and Kutta for a double pendulum with a symmetric inertia.


def _inertia(state: View, work: View) -> None:
    c = np.cos(state.y[1])
    work.M = np.array([[3.0 + 2.0 * c, 1.0 + c], [1.0 + c, 1.0]])


def _rate(state: View, work: View) -> None:
    s = np.sin(state.y[1])
    v = state.y[2:]
    force = np.array([s * (2.0 * v[0] * v[1] + v[1] ** 2) - np.sin(state.y[0]), -s * v[0] ** 2])
    (a, b), (_, d) = work.M
    determinant = a * d - b * b
    acceleration = np.array([d * force[0] - b * force[1], a * force[1] - b * force[0]]) / determinant
    state.rate = np.concatenate([v, acceleration])


def double_pendulum() -> Program:
    b = Builder("pendulum")
    state = fields(y=b.input("y", 4).at(0, 4), rate=b.output("rate", 4).at(0, 4))
    work = b.records("work", 1, M=symmetric(2))
    b.loop(_inertia, state=state, work=work[0])
    b.loop(_rate, state=state, work=work[0])
    return b.build()


def runge_kutta() -> Sample:
    step = 0.01
    derivative = double_pendulum()
    b = Builder("runge_kutta")
    y, after = b.input("y", 4), b.output("after", 4)
    rates = [b.scratch(f"k{i}", 4) for i in range(4)]
    at = y
    for i, reach in enumerate((step / 2, step / 2, step, None)):
        b.call(derivative, y=at, rate=rates[i])
        if reach is not None:
            at = b.scratch(f"y{i}", 4)
            place = fields(y=y.at(0, 4), k=rates[i].at(0, 4), at=at.at(0, 4), h=constants([reach]))
            b.loop(_advance, place=place)
    slots = {f"k{i}": k.at(0, 4) for i, k in enumerate(rates)}
    b.loop(_combine, place=fields(y=y.at(0, 4), after=after.at(0, 4), h=constants([step]), **slots))

    def rate(y: np.ndarray) -> np.ndarray:
        c, s = np.cos(y[1]), np.sin(y[1])
        M = np.array([[3 + 2 * c, 1 + c], [1 + c, 1]])
        f = np.array([s * (2 * y[2] * y[3] + y[3] ** 2) - np.sin(y[0]), -s * y[2] ** 2])
        return np.concatenate([y[2:], np.linalg.solve(M, f)])

    def expected(y: np.ndarray) -> list[np.ndarray]:
        k1 = rate(y)
        k2 = rate(y + step / 2 * k1)
        k3 = rate(y + step / 2 * k2)
        k4 = rate(y + step * k3)
        return [y + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)]

    return Sample(b.build(), _normal(4), expected)


def _advance(place: View) -> None:
    place.at = place.y + place.h * place.k


def _combine(place: View) -> None:
    place.after = place.y + place.h * (place.k0 + 2.0 * place.k1 + 2.0 * place.k2 + place.k3) / 6.0


# A tree whose nodes are of two kinds in no regular order, swept outwards and inwards.


def _root(node: View) -> None:
    node.value = np.array(1.0)
    node.total = np.array(0.0)


def _add(node: View, parent: View, model: View) -> None:
    node.value = parent.value + model.weight * node.x
    node.total = node.value * node.value


def _scale(node: View, parent: View, model: View) -> None:
    node.value = parent.value * np.cos(node.x) - model.weight
    node.total = -node.value


def _collect(node: View, parent: View) -> None:
    parent.total += node.total * np.exp(-node.x * node.x)


def _report(node: View) -> None:
    node.out = node.total


def mixed_tree(n: int = 9) -> Sample:
    rng = np.random.default_rng(n)
    parents = np.array([0] + [int(rng.integers(0, i)) for i in range(1, n + 1)])
    kinds = rng.integers(0, 2, n)
    weights = rng.normal(size=n)
    b = Builder("mixed_tree")
    x, out = b.input("x", n), b.output("out", n + 1)
    nodes = b.records("node", n + 1, value=(), total=())
    b.loop(_root, node=nodes[0])
    with b.interleave(kinds):
        for kind, kernel in enumerate((_add, _scale)):
            rows = 1 + np.flatnonzero(kinds == kind)
            model = fields(weight=constants(weights[rows - 1]))
            b.loop(kernel, node=nodes[rows] | fields(x=x.at(rows - 1)), parent=nodes[parents[rows]], model=model)
    b.loop(_collect, node=nodes[1:] | fields(x=x.at(range(n))), parent=nodes[parents[1:]], backwards=True)
    b.loop(_report, node=nodes[:] | fields(out=out.at(range(n + 1))))

    def expected(x: np.ndarray) -> list[np.ndarray]:
        value, total = np.ones(n + 1), np.zeros(n + 1)
        for i in range(1, n + 1):
            above = value[parents[i]]
            if kinds[i - 1] == 0:
                value[i] = above + weights[i - 1] * x[i - 1]
                total[i] = value[i] ** 2
            else:
                value[i] = above * np.cos(x[i - 1]) - weights[i - 1]
                total[i] = -value[i]
        for i in range(n, 0, -1):
            total[parents[i]] += total[i] * np.exp(-(x[i - 1] ** 2))
        return [total]

    return Sample(b.build(), _normal(n), expected, tolerance=1e-13)


# Repeats within repeats: for each state, count up to a random height in random strides.


def _begin(s: View) -> None:
    s.height = s.outer = s.inner = np.array(0.0)
    s.within = np.array(0.0)


def _high_enough(s: View):
    return s.height >= s.target


def _new_flight(s: View) -> None:
    s.outer += 1.0
    s.within = np.array(0.0)


def _flight_done(s: View):
    return (s.within >= s.stride) | (s.height >= s.target)


def _one_up(s: View) -> None:
    s.within += 1.0
    s.height += 1.0
    s.inner += 1.0


def staircase() -> Sample:
    b = Builder("staircase")
    target, stride, count = b.input("target", 1), b.input("stride", 1), b.output("count", 3)
    slots = {name: count.at(i) for i, name in enumerate(("height", "outer", "inner"))}
    s = b.records("s", 1, within=())[:] | fields(target=target.at(0), stride=stride.at(0), **slots)
    b.loop(_begin, s=s)
    with b.repeat(until=_high_enough, at_most=6, s=s):
        b.loop(_new_flight, s=s)
        with b.repeat(until=_flight_done, at_most=4, s=s):
            b.loop(_one_up, s=s)

    def draw(rng: np.random.Generator, states: int) -> list[np.ndarray]:
        return [rng.integers(0, 30, (states, 1)).astype(float), rng.integers(1, 7, (states, 1)).astype(float)]

    def expected(target: np.ndarray, stride: np.ndarray) -> list[np.ndarray]:
        height = outer = inner = 0
        while height < target[0] and outer < 6:
            outer, within = outer + 1, 0
            while within < stride[0] and height < target[0] and within < 4:
                within, height, inner = within + 1, height + 1, inner + 1
        return [np.array([height, outer, inner], float)]

    return Sample(b.build(), draw, expected, tolerance=0.0)


# Rows that states leave out, in short loops, long ones, interleaved ones, and inside a repeat.


def _copy(row: View) -> None:
    row.y = row.x


def _double(row: View) -> None:
    row.y = 2.0 * row.y


def _less_one(row: View) -> None:
    row.y -= 1.0


def _count(state: View) -> None:
    state.count += 1.0


def _none(state: View) -> None:
    state.count = np.array(0.0)


def _counted(state: View):
    return state.count >= 2.0


def sieve(n: int = 100) -> Sample:
    """Where a flag holds, x → 2 (2 x) − 1, and twice minus one: flags that are 0 or any other number."""
    b = Builder("sieve")
    x, flags, y = b.input("x", n), b.input("flags", n), b.output("y", n)
    rows = fields(x=x.at(range(n)), y=y.at(range(n)))
    counter = fields(count=b.scratch("count", 1).at(0))
    b.loop(_copy, row=rows)
    b.loop(_double, row=rows, where=flags.at(range(n)), backwards=True)
    few = fields(y=y.at(range(n // 2)))
    rest = fields(y=y.at(range(n // 2, n)))
    with b.interleave([0, 1] * (n // 2)):
        b.loop(_double, row=few, where=flags.at(range(n // 2)))
        b.loop(_less_one, row=rest)
    b.loop(_none, state=counter)
    with b.repeat(until=_counted, at_most=5, state=counter):
        b.loop(_less_one, row=fields(y=y.at(range(5))), where=flags.at(range(5)))
        b.loop(_count, state=counter, where=flags.at([n - 1]))
        b.loop(_count, state=counter)

    def draw(rng: np.random.Generator, states: int) -> list[np.ndarray]:
        flags = rng.choice([0.0, -0.0, 1.0, -3.5, 1e-30], (states, n))
        flags[::3, 7] = flags[:, 9] = 0.0
        return [rng.integers(-20, 20, (states, n)).astype(float), flags]

    def expected(x: np.ndarray, flags: np.ndarray) -> list[np.ndarray]:
        y, held = x.copy(), flags != 0.0
        y[held] *= 2.0
        y[: n // 2][held[: n // 2]] *= 2.0
        y[n // 2 :] -= 1.0
        y[:5][held[:5]] -= 1.0 if held[-1] else 2.0
        return [y]

    return Sample(b.build(), draw, expected, tolerance=0.0)


# Rows among flags that are listed: long and short loops, interleaved, and inside a repeat that states leave in turn.


def _one_less(row: View) -> None:
    row.left = row.left - 1.0


def _round(state: View) -> None:
    state.rounds -= 1.0


def _no_rounds(state: View):
    return state.rounds <= 0.0


def listed(n: int = 60) -> Sample:
    """Flags that count down, two rows for each: y → 2 y at first, y → y − 1 and maybe 2 y in each round, y − 1 then."""
    b = Builder("listed")
    x, flags, odd, rounds = b.input("x", 2 * n), b.input("flags", n), b.input("odd", 2 * n), b.input("rounds", 1)
    y, left, going = b.output("y", 2 * n), b.scratch("left", n), b.scratch("going", 1)
    twice, state = np.repeat(np.arange(n), 2), fields(rounds=going.at(0))
    both, own = fields(y=y.at(range(2 * n))), fields(left=left.at(range(n)))
    b.loop(_copy, row=fields(x=x.at(range(2 * n)), y=y.at(range(2 * n))))
    b.loop(_copy, row=fields(x=flags.at(range(n)), y=left.at(range(n))))
    b.loop(_copy, row=fields(x=rounds.at(0), y=going.at(0)))
    b.list_flags(left)
    b.loop(_double, row=both, among=left.at(twice))
    with b.repeat(until=_no_rounds, at_most=9, state=state):
        b.loop(_one_less, row=own, where=left.at(range(n)))
        b.list_flags(left)
        with b.interleave([0, 1] * 2 * n):
            b.loop(_less_one, row=both, among=left.at(twice))
            b.loop(_double, row=both, among=left.at(twice), where=odd.at(range(2 * n)))
        b.loop(_round, state=state)
    b.list_flags(left)
    b.loop(_less_one, row=both, among=left.at(twice))
    with b.interleave([0, 1, 0, 1]):
        b.loop(_double, row=fields(y=y.at([0, 2])), among=left.at([0, 1]))
        b.loop(_less_one, row=fields(y=y.at([0, 3])), among=left.at([0, 1]), where=odd.at([0, 3]))

    def draw(rng: np.random.Generator, states: int) -> list[np.ndarray]:
        flags = rng.choice(4, (states, n), p=[0.85, 0.05, 0.05, 0.05]).astype(float)
        flags[1::3] = 0.0
        numbers = rng.integers(-9, 9, (states, 2 * n)), rng.choice(2, (states, 2 * n)), rng.integers(0, 4, (states, 1))
        return [numbers[0].astype(float), flags, numbers[1].astype(float), numbers[2].astype(float)]

    def expected(x: np.ndarray, flags: np.ndarray, odd: np.ndarray, rounds: np.ndarray) -> list[np.ndarray]:
        y, left = x.copy(), flags.copy()
        y[np.repeat(left != 0.0, 2)] *= 2.0
        for _ in range(int(rounds[0])):
            left[left != 0.0] -= 1.0
            held = np.repeat(left != 0.0, 2)
            y[held] -= 1.0
            y[held & (odd != 0.0)] *= 2.0
        y[np.repeat(left != 0.0, 2)] -= 1.0
        for element, flag in ((0, 0), (2, 1)):
            y[element] *= 2.0 if left[flag] else 1.0
        for element, flag in ((0, 0), (3, 1)):
            y[element] -= 1.0 if left[flag] and odd[element] else 0.0
        return [y]

    return Sample(b.build(), draw, expected, tolerance=0.0)


# Numbers looked up at places that are computed, in two tables of different lengths.


def lookups(n: int = 20) -> Sample:
    """y = a[x] + 2 b[a[x]], with places beyond both ends of the tables, and none at all; one kernel, two pairs."""
    rng = np.random.default_rng(3)
    pairs = [(rng.integers(-2, 9, size).astype(float), rng.normal(size=6)) for size in (7, 40)]
    b = Builder("lookups")
    x, y = b.input("x", n), b.output("y", n)
    for i, own in enumerate(pairs):
        first, second = map(Table, own)

        def look_up(row: View, first: Table = first, second: Table = second) -> None:
            found = first.look_up(row.x)
            row.y = np.array(found + 2.0 * second.look_up(found))

        rows = range(i * n // 2, (i + 1) * n // 2)
        b.loop(look_up, row=fields(x=x.at(rows), y=y.at(rows)))

    def draw(rng: np.random.Generator, states: int) -> list[np.ndarray]:
        x = rng.uniform(-5.0, 45.0, (states, n))
        x[:, 0], x[:, 1], x[:, 2], x[:, 3] = np.nan, np.inf, -np.inf, -0.0
        return [np.where(rng.random((states, n)) < 0.3, np.rint(x), x)]

    def expected(x: np.ndarray) -> list[np.ndarray]:
        y = []
        for i, place in enumerate(x):
            a, b = pairs[i // (n // 2)]
            found = a[int(min(max(place, 0.0), len(a) - 1))] if place == place else a[0]
            y.append(found + 2.0 * b[int(min(max(found, 0.0), len(b) - 1))])
        return [np.array(y)]

    return Sample(b.build(), draw, expected)


SAMPLES: dict[str, Callable[[], Sample]] = {
    "chain": chain,
    "four_bar": four_bar,
    "gauss_seidel": gauss_seidel,
    "runge_kutta": runge_kutta,
    "mixed_tree": mixed_tree,
    "staircase": staircase,
    "sieve": sieve,
    "listed": listed,
    "lookups": lookups,
}
