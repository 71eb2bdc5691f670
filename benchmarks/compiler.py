"""What the compiler costs and what its code delivers, on a chain of links with geared rotors in general position.

Run `python benchmarks/compiler.py`; `make benchmark` runs all benchmarks. Times are the best of many, taken in turns,
because machines are shared and noisy; compile times are taken in fresh processes with a fresh cache folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from common.timing import best_times

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from coupler.graph import Builder, View, fields
from coupler.graph.llvm import Native, chosen
from geared_chain import forward_dynamics, random_chain

LENGTHS = (12, 96, 1000)
STATES = {12: 8192, 96: 2048, 1000: 512}


def main() -> None:
    target = chosen()
    print(f"{target.cpu}, {target.lanes(np.dtype(np.float64))} lanes of float64, {os.cpu_count()} processors\n")
    overhead = call_overhead()
    rows = [*compile_times(), *run_times(overhead)]
    rows.append(("call of an empty program from Python", f"{overhead * 1e6:.2f} µs", "≤ 2 µs", overhead <= 2e-6))
    width = max(len(row[0]) for row in rows)
    print(f"{'':{width}}  {'measured':>12}  {'wanted':>10}")
    for name, measured, wanted, holds in rows:
        print(f"{name:{width}}  {measured:>12}  {wanted:>10}  {'' if holds else 'MISSED'}")


Row = tuple[str, str, str, bool]


def compile_times() -> list[Row]:
    """From a model in memory to a program ready to run: traced, checked and compiled for one state and for lanes."""
    rows: list[Row] = []
    for n in LENGTHS:
        with tempfile.TemporaryDirectory() as folder:
            cold = [fresh_compile(n, str(Path(folder, str(i)))) for i in range(3)]
            warm = [fresh_compile(n, str(Path(folder, "0"))) for _ in range(3)]
        for kind in ("one state", "batch"):
            first, again = min(t[kind] for t in cold), min(t[kind] for t in warm)
            rows.append((f"N = {n}: cold compile, {kind}", f"{first * 1e3:.0f} ms", "≤ 1000 ms", first <= 1))
            rows.append((f"N = {n}: from cache, {kind}", f"{again * 1e3:.0f} ms", "≤ 50 ms", again <= 0.05))
    return rows


def fresh_compile(n: int, cache: str) -> dict[str, float]:
    command = [sys.executable, __file__, "compile", str(n)]
    done = subprocess.run(
        command, env={**os.environ, "COUPLER_CACHE": cache}, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def compile_here(n: int) -> None:
    """Run in a process of its own; prints its times. Each kind includes the trace, which both need."""
    chain = random_chain(n)
    start = time.perf_counter()
    native = Native(forward_dynamics(chain))
    traced = time.perf_counter()
    native.prepare()
    one = time.perf_counter()
    native.prepare(batch=True)
    batch = time.perf_counter()
    print(json.dumps({"one state": one - start, "batch": batch - one + traced - start}))


def run_times(overhead: float) -> list[Row]:
    """Times with Python's call in them; ratios of the programs alone, without it."""
    rows: list[Row] = []
    per_link: dict[int, float] = {}
    for n in LENGTHS:
        program = forward_dynamics(random_chain(n))
        native, two = Native(program), Native(program, threads=2)
        states = np.random.default_rng(n).normal(size=(3, STATES[n], n))
        first = [np.ascontiguousarray(x) for x in states[:, 0]]
        one, batch, threads = best_times(
            lambda native=native, first=first: native(*first),
            lambda native=native, states=states: native(*states),
            lambda two=two, states=states: two(*states),
            budget=3.0,
        )
        batch, threads = batch / STATES[n], threads / STATES[n]
        alone = one - overhead
        per_link[n] = alone / n
        rows.append((f"N = {n}: one state", f"{one * 1e6:.2f} µs", "", True))
        rows.append((f"N = {n}: batch, per state", f"{batch * 1e6:.3f} µs", "", True))
        rows.append((f"N = {n}: batch over one state", f"{alone / batch:.2f} x", "≥ 3 x", alone / batch >= 3))
        rows.append((f"N = {n}: two threads over one", f"{batch / threads:.2f} x", "≥ 1.7 x", batch / threads >= 1.7))
        error = disagreement(native, two, states)
        rows.append((f"N = {n}: lanes, threads against one state", f"{error:.1f} ulp", "≤ 4 ulp", error <= 4))
    ratio = per_link[LENGTHS[-1]] / per_link[LENGTHS[0]]
    rows.append((f"time per link, N = {LENGTHS[-1]} over N = {LENGTHS[0]}", f"{ratio:.2f} x", "≤ 1.5 x", ratio <= 1.5))
    return rows


def disagreement(native: Native, two: Native, states: np.ndarray) -> float:
    """The largest difference between a batch and its states one by one, in units of the last place of the scale."""
    some = states[:, :67]
    single = np.stack([native(*some[:, i]) for i in range(some.shape[1])])
    unit = np.spacing(np.abs(single).max(axis=1, keepdims=True))
    return max(float((np.abs(run(*some) - single) / unit).max()) for run in (native, two))


def call_overhead() -> float:
    """Seconds for a call with three inputs and one output of 12 numbers to a program that does next to nothing."""
    b = Builder("nothing")
    inputs = {name: b.input(name, 12).at(0, 12) for name in ("q", "qd", "tau")}

    def kernel(s: View) -> None:
        s.qdd = s.q + s.qd + s.tau

    b.loop(kernel, s=fields(**inputs, qdd=b.output("qdd", 12).at(0, 12)))
    native, state = Native(b.build()), np.ones((3, 12))
    a, c, d = state
    (seconds,) = best_times(lambda: native(a, c, d), budget=3.0)
    return seconds


if __name__ == "__main__":
    if sys.argv[1:2] == ["compile"]:
        compile_here(int(sys.argv[2]))
    else:
        main()
