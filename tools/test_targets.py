"""Runs the tests whose results depend on rounding on every level of x86-64 that this machine has.

    python tools/test_targets.py [OPTION OF PYTEST...] [FILE...]

Each run generates code for the level (COUPLER_TARGET), lets OpenBLAS use the kernels of a processor of that level
(OPENBLAS_CORETYPE), and keeps NumPy from using more than it has (NPY_DISABLE_CPU_FEATURES). Without files, the suites
of the back ends, of comparisons with other libraries, and of contact are run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from coupler.graph import GraphError
from coupler.graph.llvm.target import LEVELS, level

ROOT = Path(__file__).parents[1]
SUITES = (
    "tests/backend",
    "tests/oracle",
    "tests/unit/contact",
    "tests/unit/graph/llvm",
    "tests/property/test_contact_scenes.py",
)
BLAS = {"x86-64-v2": "Nehalem", "x86-64-v3": "Haswell", "x86-64-v4": "SkylakeX"}
# What NumPy's names for the features of a level begin with; they differ from version to version.
NUMPY = {
    "x86-64-v2": ("SSE", "SSSE", "POPCNT", "X86_V2"),
    "x86-64-v3": ("SSE", "SSSE", "POPCNT", "X86_V2", "X86_V3", "AVX2", "FMA", "F16C"),
}


def beyond(name: str) -> list[str]:
    """The features of this machine that NumPy would use but a level lacks."""
    umath: Any = import_module("numpy._core._multiarray_umath")
    known = NUMPY.get(name)
    used = [feature for feature in umath.__cpu_dispatch__ if umath.__cpu_features__.get(feature)]
    return [feature for feature in used if known is not None and not feature.startswith(known)]


def run(name: str, arguments: list[str]) -> bool:
    """Whether the tests pass on a level."""
    settings = {
        "COUPLER_TARGET": name,
        "OPENBLAS_CORETYPE": BLAS[name],
        "NPY_DISABLE_CPU_FEATURES": " ".join(beyond(name)),
    }
    settings = {key: value for key, value in settings.items() if value}
    print("==", " ".join(f"{key}={value!r}" for key, value in settings.items()), flush=True)
    if not any(Path(argument.split("::")[0]).exists() for argument in arguments):
        arguments = [*arguments, *SUITES]
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=ROOT, env=os.environ | settings).returncode == 0


def main(arguments: list[str]) -> int:
    outcomes: dict[str, str] = {}
    for name in LEVELS:
        try:
            level(name)
        except GraphError as error:
            outcomes[name] = f"skipped: {error}"
        else:
            outcomes[name] = "passed" if run(name, arguments) else "failed"
    for name, outcome in outcomes.items():
        print(f"{name}: {outcome}")
    return int("failed" in outcomes.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
