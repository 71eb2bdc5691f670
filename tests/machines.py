"""The back ends and processors that the tests can run programs on here."""

from __future__ import annotations

from collections.abc import Callable

from coupler.graph import Eager, Executable, Interpreter, Program
from coupler.graph.llvm import Native, Target, host


def lesser_targets() -> list[Target]:
    """What else this machine can run: the same architecture with narrower registers and without fused operations."""
    here = host()
    if not here.triple.startswith("x86_64"):
        return []
    sse2 = Target(here.triple, "x86-64", "", register_bytes=16, fused=False)
    avx2 = Target(here.triple, "haswell", "", register_bytes=32, fused=True)
    return [t for t in (sse2, avx2) if t.register_bytes < here.register_bytes]


BACKENDS: dict[str, Callable[[Program, type], Executable]] = {
    "interpreter": Interpreter,
    "python": Eager,
    "native": Native,
    "native, 2 threads": lambda program, dtype: Native(program, dtype, threads=2),
}
for target in lesser_targets():
    BACKENDS[target.cpu] = lambda program, dtype, target=target: Native(program, dtype, target=target)
