"""The CPU back end: programs rendered as LLVM IR, compiled in memory, run in lanes and threads."""

from coupler.graph.llvm.native import Native
from coupler.graph.llvm.target import Target, chosen, host

__all__ = ["Native", "Target", "chosen", "host"]
