"""Programs as C99: one source file and one header, for a controller.

The file allocates nothing, keeps no state between calls and needs no library but libm. A kernel becomes a static
function of pointers, a table a static array of constants, a program the one public function, for one state a call:

    void forward_dynamics(const double q[12], const double qd[12], double qdd[12], double work[FORWARD_DYNAMICS_WORK]);

Products and sums are not fused here, as fma() is a slow library call where the processor lacks it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.graph.c.renderer import Renderer
from coupler.graph.c.source import Source
from coupler.graph.program import Program

__all__ = ["Source", "render"]


def render(program: Program, dtype: Any = np.float64, name: str | None = None) -> Source:
    """The program in C99, in float64 (double) or float32 (float), under its own name if no other is given."""
    return Renderer(program, np.dtype(dtype), program.name if name is None else name).source()
