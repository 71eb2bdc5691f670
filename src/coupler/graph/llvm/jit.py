"""From LLVM IR to machine code in this process, by way of the disk cache."""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache as memoise
from typing import Any
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as binding

from coupler.forks import held_at_fork
from coupler.graph import cache
from coupler.graph.llvm.target import Effort, Target, host

# llvmlite has a lock around each call of LLVM, and compiled code may be disposed of at any time. Ours is taken first.
if (inner := getattr(getattr(binding.ffi.lib, "_lock", None), "_lock", None)) is not None:
    held_at_fork(inner)
_LOCK = held_at_fork(threading.RLock())  # LLVM has one global context
atexit.register(_LOCK.acquire)  # a daemon thread that compiles while LLVM is torn down would crash the process

_LOADED: WeakValueDictionary[str, Code] = WeakValueDictionary()  # while it is in use


@dataclass(frozen=True, eq=False)
class Code:
    """Machine code in memory.

    Attributes:
        address: the address of the function asked for.
        engine: keeps the code alive.
        from_cache: whether it was read from disk instead of compiled.
    """

    address: int
    engine: binding.ExecutionEngine
    from_cache: bool


def compile_text(text: str, entry: str, target: Target, effort: Effort = Effort.FULL, library: str = "") -> Code:
    """The machine code of a module: from this process, from the disk cache, or compiled now.

    Args:
        text: the module as LLVM IR.
        entry: the name of the function in it that will be called.
        target: the processor to compile for.
        effort: how well to compile it.
        library: another module whose functions it calls, if any; it is compiled with all effort.
    """
    key = _key(text, entry, target, effort, library)
    with _LOCK:
        code = _LOADED.get(key)
        if code is None:
            compiled, from_cache = _stored_or_compiled(key, text, target, effort)
            objects = [compiled]
            if library:
                objects.append(_stored_or_compiled(_key(library, "", target), library, target)[0])
            engine = _load(objects)
            code = _LOADED[key] = Code(engine.get_function_address(entry), engine, from_cache)
        return code


def _key(text: str, entry: str, target: Target, effort: Effort = Effort.FULL, library: str = "") -> str:
    version = ".".join(map(str, binding.llvm_version_info))
    processor = (target.triple, target.cpu, target.features, repr(effort))
    return cache.digest(text, entry, *processor, version, llvmlite.__version__, *([library] if library else []))


def _stored_or_compiled(key: str, text: str, target: Target, effort: Effort = Effort.FULL) -> tuple[bytes, bool]:
    """A module's machine code, and whether it was on disk."""
    stored = cache.load(key)
    if stored is not None:
        return stored, True
    compiled = _object_code(text, target, effort)
    cache.store(key, compiled)
    return compiled, False


def _object_code(text: str, target: Target, effort: Effort) -> bytes:
    module = binding.parse_assembly(text)
    module.triple = target.triple
    module.verify()
    return target.machine(effort).emit_object(module)


@memoise
def _make_symbols_known() -> None:
    """Gives LLVM the addresses of the few external functions, so that it need not search the process."""
    for name in ("PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_FromLong"):
        binding.add_symbol(name, _address_of(getattr(ctypes.pythonapi, name)))
    libm = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)  # the interpreter is linked with it
    for name in ("sin", "cos", "tan", "fma", "fmaf", "rint", "rintf"):
        binding.add_symbol(name, _address_of(getattr(libm, name)))


def _address_of(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _load(objects: Iterable[bytes]) -> binding.ExecutionEngine:
    _make_symbols_known()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), host().machine())  # which takes the machine over
    for compiled in objects:
        engine.add_object_file(binding.ObjectFileRef.from_data(compiled))
    engine.finalize_object()
    return engine
