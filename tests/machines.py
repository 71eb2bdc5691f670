"""The processors that the tests can compile for and run on here."""

from __future__ import annotations

from coupler.graph.llvm import Target, host


def lesser_targets() -> list[Target]:
    """What else this machine can run: the same architecture with narrower registers and without fused operations."""
    here = host()
    if not here.triple.startswith("x86_64"):
        return []
    sse2 = Target(here.triple, "x86-64", "", register_bytes=16, fused=False)
    avx2 = Target(here.triple, "haswell", "", register_bytes=32, fused=True)
    return [t for t in (sse2, avx2) if t.register_bytes < here.register_bytes]
