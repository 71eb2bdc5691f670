"""The processor that code is generated for: this machine's, or a standard level of x86-64 that it supports."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from functools import cache

import llvmlite.binding as binding
import numpy as np

from coupler.graph.errors import GraphError


class Effort(Enum):
    """How well code is compiled; results are the same to the last bit.

    The value is LLVM's level of code generation, and whether passes that our code hardly gains from are left out.
    """

    FULL = (2, False)  # schedules and allocates registers well; the graph is optimised already
    SPARING = (2, True)  # two thirds of the time
    QUICK = (0, False)  # a sixth of the time for very long functions, which then run 1.5 times as long


_SPARED = {  # LLVM options that turn these passes off, and the value that does
    "enable-misched": False,
    "disable-post-ra": True,
    "disable-lsr": True,
    "disable-cgp": True,
    "disable-block-placement": True,
    "disable-machine-cse": True,
    "disable-machine-licm": True,
}

# The levels of x86-64, each including the one before: width of a SIMD register in bytes, and what the level adds.
LEVELS: dict[str, tuple[int, tuple[str, ...]]] = {
    "x86-64-v2": (16, ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")),
    "x86-64-v3": (32, ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")),
    "x86-64-v4": (64, ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")),
}


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
        """The number of lanes of a register for this type."""
        return self.register_bytes // dtype.itemsize

    def machine(self, effort: Effort = Effort.FULL) -> binding.TargetMachine:
        """A code generator. It must be used before another one is made, because LLVM's options are global."""
        _initialize()
        level, is_sparing = effort.value
        for option, spares in _SPARED.items():
            binding.set_option("coupler", f"-{option}={int(spares == is_sparing)}")
        return binding.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, jit=True, codemodel="jitdefault"
        )


@cache
def _initialize() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    # FastISel, the instruction selector of level 0, lacks many of our instructions and is slower than the usual one.
    binding.set_option("coupler", "-fast-isel=0")


@cache
def host() -> Target:
    """The processor of this machine."""
    triple = binding.get_process_triple()
    features = binding.get_host_cpu_features()
    if _is_x86(triple):
        width = 64 if features.get("avx512f") and features.get("avx512dq") else 32 if features.get("avx2") else 16
        fused = bool(features.get("fma"))
        features["prefer-256-bit"] = False  # else LLVM splits the wide registers on some processors
    elif triple.startswith(("aarch64", "arm64")):
        width, fused = 16, True
    else:
        raise GraphError(f"no native back end for {triple.split('-')[0]}; use backend='interpreter'")
    return Target(triple, binding.get_host_cpu_name(), features.flatten(), width, fused)


@cache
def level(name: str) -> Target:
    """A level of x86-64, for code that is the same on every machine that has it.

    Args:
        name: a key of `LEVELS`.
    """
    if name not in LEVELS:
        raise GraphError(f"COUPLER_TARGET must be one of 'native', {', '.join(map(repr, LEVELS))}, got {name!r}")
    triple, features = binding.get_process_triple(), binding.get_host_cpu_features()
    if not _is_x86(triple):
        raise GraphError(f"COUPLER_TARGET: {name!r} is a level of x86-64, and this processor is {triple.split('-')[0]}")
    names = list(LEVELS)
    needed = [feature for each in names[: names.index(name) + 1] for feature in LEVELS[each][1]]
    if missing := [feature for feature in needed if not features.get(feature)]:
        raise GraphError(f"COUPLER_TARGET: this processor lacks {', '.join(missing)}, which {name!r} needs")
    return Target(triple, name, "-prefer-256-bit", LEVELS[name][0], fused="fma" in needed)


def chosen() -> Target:
    """The target that COUPLER_TARGET names: a key of `LEVELS`, or `native` (default) for this machine's processor."""
    name = os.environ.get("COUPLER_TARGET") or "native"
    return host() if name == "native" else level(name)


def _is_x86(triple: str) -> bool:
    return triple.startswith(("x86_64", "amd64"))
