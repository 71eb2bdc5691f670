"""What this machine's processor can do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as binding
import numpy as np

from coupler.graph.errors import GraphError

__all__ = ["CODE_GENERATION", "QUICK", "Target", "host"]


# Level 2 schedules and allocates registers well; the graph is optimised already. Level 0 takes a sixth of the time for
# functions of very many operations, and they take half as long again; results are the same to the last bit.
CODE_GENERATION: dict[str, Any] = {"opt": 2, "jit": True, "codemodel": "jitdefault"}
QUICK: dict[str, Any] = CODE_GENERATION | {"opt": 0}


@dataclass(frozen=True)
class Target:
    """A processor as the code generator knows it.

    Attributes:
        triple: architecture and operating system.
        cpu: the processor's name.
        features: LLVM's feature string.
        register_bytes: width of a SIMD register.
        fused: whether a fused multiply-add is one instruction; without it, it would be a slow call.
    """

    triple: str
    cpu: str
    features: str
    register_bytes: int
    fused: bool

    def lanes(self, dtype: np.dtype) -> int:
        """How many numbers of this type fill a register."""
        return self.register_bytes // dtype.itemsize

    def machine(self, *, quick: bool = False) -> binding.TargetMachine:
        """The code generator."""
        _initialize()
        target, options = binding.Target.from_triple(self.triple), QUICK if quick else CODE_GENERATION
        return target.create_target_machine(cpu=self.cpu, features=self.features, **options)


@cache
def _initialize() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    # At level 0, a selector of instructions that knows few of ours and is slower than the usual one.
    binding.set_option("coupler", "-fast-isel=0")


@cache
def host() -> Target:
    """The processor of this machine."""
    triple = binding.get_process_triple()
    known = binding.get_host_cpu_features()
    architecture = triple.split("-")[0]
    if architecture in ("x86_64", "amd64"):
        width = 64 if known.get("avx512f") and known.get("avx512dq") else 32 if known.get("avx2") else 16
        fused = bool(known.get("fma"))
        known["prefer-256-bit"] = False  # else LLVM splits the wide registers on some processors
    elif architecture in ("aarch64", "arm64"):
        width, fused = 16, True
    else:
        raise GraphError(f"no native back end for {architecture}; use backend='interpreter'")
    return Target(triple, binding.get_host_cpu_name(), known.flatten(), width, fused)
