"""Which processor code is generated for: this one, or a level of x86-64 that it has."""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as binding
import numpy as np
import pytest

from coupler.graph import Builder, GraphError, Program, View, fields
from coupler.graph.llvm import Native, Target, host
from coupler.graph.llvm.entry import batch_entry
from coupler.graph.llvm.render import Renderer
from coupler.graph.llvm.target import LEVELS, level
from samples import runge_kutta

ON_X86 = pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="levels are those of x86-64")


def has(name: str) -> bool:
    try:
        level(name)
    except GraphError:
        return False
    return True


def doubled() -> Program:
    def kernel(s: View) -> None:
        s.y = s.x + s.x

    b = Builder("doubled")
    b.loop(kernel, s=fields(x=b.input("x", 2).at(0, 2), y=b.output("y", 2).at(0, 2)))
    return b.build()


@pytest.mark.parametrize("value", [None, "", "native"])
def test_by_default_it_is_this_processor(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("COUPLER_TARGET", raising=False)
    if value is not None:
        monkeypatch.setenv("COUPLER_TARGET", value)
    assert Native(doubled()).target == host()


@ON_X86
@pytest.mark.parametrize(
    ("name", "lanes", "fused"), [("x86-64-v2", 2, False), ("x86-64-v3", 4, True), ("x86-64-v4", 8, True)]
)
def test_a_level_decides_lanes_and_fused_operations(
    monkeypatch: pytest.MonkeyPatch, name: str, lanes: int, fused: bool
) -> None:
    if not has(name):
        pytest.skip(f"this processor lacks {name}")
    monkeypatch.setenv("COUPLER_TARGET", name)
    native = Native(doubled())
    assert (native.target.cpu, native.lanes, native.target.fused) == (name, lanes, fused)
    x = np.arange(22.0).reshape(11, 2)
    np.testing.assert_array_equal(native(x), 2.0 * x)


def test_a_target_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUPLER_TARGET", "x86-64-v9")
    with pytest.raises(GraphError, match=r"COUPLER_TARGET must be one of 'native', 'x86-64-v2', .* got 'x86-64-v9'"):
        Native(doubled())


@ON_X86
def test_a_level_that_this_processor_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: {"sse4.2": True, "avx": True})
    uncached = level.__wrapped__
    with pytest.raises(GraphError, match=r"lacks cx16, popcnt, sahf, sse3, sse4\.1, ssse3, which 'x86-64-v2' needs"):
        uncached("x86-64-v2")
    with pytest.raises(GraphError, match=r"lacks cx16, .*, avx2, bmi, .*, which 'x86-64-v3' needs"):
        uncached("x86-64-v3")


def test_a_level_of_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "get_process_triple", lambda: "aarch64-unknown-linux-gnu")
    with pytest.raises(GraphError, match="'x86-64-v3' is a level of x86-64, and this processor is aarch64"):
        level.__wrapped__("x86-64-v3")


@ON_X86
def test_the_disk_cache_tells_targets_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUPLER_CACHE", str(tmp_path))
    names = [name for name in LEVELS if has(name)]
    for name in names:
        monkeypatch.setenv("COUPLER_TARGET", name)
        assert not Native(doubled()).prepare().from_cache
    assert len(list(tmp_path.glob("*.coupler"))) == len(names)


@ON_X86
@pytest.mark.parametrize(("name", "register"), [("x86-64-v2", "xmm"), ("x86-64-v3", "ymm"), ("x86-64-v4", "zmm")])
def test_code_of_a_level_uses_its_registers(name: str, register: str) -> None:
    """Also where this machine could not run it."""
    width = LEVELS[name][0]
    target = Target(host().triple, name, "-prefer-256-bit", width, fused=width > 16)
    renderer = Renderer(runge_kutta().program, np.dtype(float), target.lanes(np.dtype(float)), target.fused)
    machine = target.machine()
    code = binding.parse_assembly(renderer.text + batch_entry(renderer))
    code.triple = target.triple
    assembly = machine.emit_assembly(code)
    assert assembly.count(f"%{register}") > 100
    assert ("vfmadd" in assembly) == target.fused
