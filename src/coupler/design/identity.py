"""The identity of a sweep: digests of its robot, its designs, and its function with all that the function uses.

If a function, or a number that it uses, was changed, the results in the file of a sweep are not those that would be
measured now. The digest of a function covers its text, its defaults, the variables around it and the global variables
that it names and, in the same way, the functions of the same module that it calls and the methods of classes. Modules,
and objects of libraries (a logger, a progress bar), count by name only; those of NumPy and SciPy count by value.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import numbers
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import fields
from datetime import date, time, timedelta
from enum import Enum
from pathlib import Path, PurePath
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from coupler.graph import template
from coupler.model import Robot
from coupler.model.identity import attributes_of
from coupler.model.loops import Coupling
from coupler.model.pickling import cached_properties

_OPEN = ("coupler", "numpy", "scipy")  # libraries whose objects count by value
_DERIVED = ("tree", "cluster_tree", "states", "closed_forms", "idle", "remarks", "warnings", "backend", "given")
_PLAIN = (str, bytes, int, float, complex, bool, type(None), np.generic, PurePath, Enum, slice, range)


def identity(
    robot: Robot, values: Mapping[str, np.ndarray], measure: Callable[..., Any], at_once: int
) -> dict[str, str]:
    """A digest of each thing that a sweep depends on, by its name in errors."""
    parts: dict[str, Any] = {"the robot": robot, "the parameters": dict(values), "at_once": at_once}
    held = dict(_used_by(measure)) if isinstance(measure, FunctionType) else {}
    parts["the function"] = _text_of(measure) if held else measure
    parts |= {f"{name!r}, which the function uses,": value for name, value in held.items()}
    return {name: _digest(value) for name, value in parts.items()}


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    for piece in _pieces(value, {}):
        digest.update(hashlib.sha256(piece).digest())  # each of one length: none runs into the next
    return digest.hexdigest()


def _pieces(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    """A value as bytes, piece by piece; an object that was seen before is not repeated.

    Args:
        seen: by their ids, the objects seen so far, which are kept alive so that no other object gets their ids.
    """
    yield type(value).__qualname__.encode()
    if isinstance(value, _PLAIN):
        yield repr(value).encode()
        return
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield from (str(value.dtype).encode(), str(value.shape).encode(), np.ascontiguousarray(value).tobytes())
        return
    if id(value) in seen:
        return
    seen[id(value)] = value
    for part in _parts(value):
        yield from _pieces(part, seen)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Robot):
        yield {part.name: getattr(value, part.name) for part in fields(value) if part.name not in _DERIVED}
        yield None if value.given is None else dict(value.given.values)
    elif isinstance(value, Coupling):  # whose function counts by what it computes
        traced = template(value.residual, sum(value.sizes))
        yield from (value.name, value.joints, value.independent, value.solves)
        yield from (traced.text, np.array(traced.numbers, dtype=float))
    elif isinstance(value, Mapping):
        for name, entry in value.items():
            yield from (name, entry)
    elif isinstance(value, Set):
        yield from sorted(map(repr, value))
    elif isinstance(value, Sequence | np.ndarray):
        yield len(value)
        yield from value
    elif isinstance(value, FunctionType):
        yield from (_text_of(value), dict(_used_by(value)))
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, ModuleType):
        yield value.__name__
    elif hasattr(value, "__wrapped__"):  # as by functools.cache
        yield value.__wrapped__
    elif isinstance(value, type) or hasattr(value, "__qualname__"):
        yield _text_of(value)
        if isinstance(value, type) and not _is_library(value):
            yield from value.__bases__
            yield from _functions_of(value)
    else:
        yield from (type(value), _state_of(value))


def _functions_of(made: type) -> Iterator[FunctionType]:
    """The functions that a class defines: its methods and those behind its properties."""
    for member in vars(made).values():
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if isinstance(function, FunctionType):
            yield function


def _state_of(value: Any) -> Any:
    """The state of an object: its attributes, without those that are cached, or what it would be pickled as."""
    package = type(value).__module__.partition(".")[0]
    if isinstance(value, numbers.Number | date | time | timedelta):
        return repr(value)
    if _is_library(type(value)) and package not in _OPEN and not isinstance(value, SimpleNamespace | Namespace):
        return None
    if hasattr(value, "__dict__"):
        attributes, left_out = attributes_of(value), cached_properties(type(value))
        names = [name for name in attributes if name not in left_out and (package != "coupler" or name[0] != "_")]
        return {name: attributes[name] for name in names}
    try:
        return value.__reduce_ex__(4)
    except TypeError:
        return None


def _text_of(made: Any) -> str:
    """The source of a function or a class; of a lambda, or without source as in an interactive session, its byte code.

    A line may hold several lambdas, and each has the whole line as its source.
    """
    if not isinstance(made, FunctionType | type) or _is_library(made):
        return f"{getattr(made, '__module__', '')}.{getattr(made, '__qualname__', repr(type(made)))}"
    try:
        if made.__name__ != "<lambda>":
            return inspect.getsource(made)
    except (OSError, TypeError):
        pass
    codes = _codes(made.__code__) if isinstance(made, FunctionType) else ()
    return made.__qualname__ + "".join(map(_instructions, codes))


def _is_library(made: Any) -> bool:
    """Whether a function or a class belongs to Python or to an installed library."""
    package = (getattr(made, "__module__", None) or "").partition(".")[0]
    path = getattr(sys.modules.get(package), "__file__", None) or ""
    installed = {"site-packages", "dist-packages"}.intersection(Path(path).parts)
    return package in (*_OPEN, *sys.stdlib_module_names) or bool(installed)


def _instructions(code: CodeType) -> str:
    return f"{code.co_code!r}{[x for x in code.co_consts if not isinstance(x, CodeType)]!r}{code.co_names!r}"


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of the functions defined in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _used_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yields by name what a function uses besides its arguments: defaults, enclosing variables and global variables."""
    if _is_library(function):
        return
    yield from (("defaults", function.__defaults__), ("defaults by name", function.__kwdefaults__))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    names = dict.fromkeys(name for code in _codes(function.__code__) for name in code.co_names)
    for name in names:
        if name in function.__globals__:
            value = function.__globals__[name]
            foreign = isinstance(value, FunctionType) and value.__module__ != function.__module__
            yield name, f"{value.__module__}.{value.__qualname__}" if foreign else value
