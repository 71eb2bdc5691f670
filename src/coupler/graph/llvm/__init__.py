"""The CPU back end: programs rendered as LLVM IR, compiled in memory, run in lanes and threads."""

from coupler.graph.llvm.native import Native

__all__ = ["Native"]
