"""How a robot is pickled, so that it can be sent to other processes and machines.

A robot is packed into bytes as it is: nothing is searched, closed or checked again where it is unpacked. Cached
properties and compiled programs, which can be computed again, are left out.

Functions of couplings are pickled by reference if the receiver can import them. A lambda, a closure or a function of a
script cannot be imported; its trace, which computes the same, is sent instead.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from coupler.forks import cached_property
from coupler.graph import Template, template
from coupler.model.errors import ModelError
from coupler.model.loops import Coupling


@dataclass(frozen=True, eq=False)
class TracedFunction:
    """Stands for a function γ or φ of a coupling that cannot be pickled.

    Attributes:
        trace: what the function computes.
    """

    trace: Template

    def __call__(self, x: Any) -> Any:
        return self.trace.by_trace(x, self.trace.numbers)


def packed(robot: str, parts: Any) -> bytes:
    """The parts of a robot as bytes.

    Args:
        robot: its name, for messages.
        parts: what to pack.

    Raises:
        ModelError: for a part that cannot be pickled, naming the coupling if it is one.
    """
    file = io.BytesIO()
    try:
        _Pickler(file, protocol=5).dump(parts)  # protocol 5: arrays that are read-only stay so
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ModelError(
            f"robot {robot!r} cannot be pickled: {error}; classes of joints and functions must be defined at the top "
            "level of a module"
        ) from error
    return file.getvalue()


def unpacked(data: bytes) -> Any:
    """The parts that `packed` turned into these bytes."""
    return pickle.loads(data)


@cache
def cached_properties(kind: type) -> frozenset[str]:
    """The names of a class's cached properties, whose values are among an object's attributes."""
    members = (member for base in kind.__mro__ for member in vars(base).items())
    return frozenset(name for name, value in members if isinstance(value, cached_property))


class _Pickler(pickle.Pickler):
    """Pickles what robots are made of."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, MappingProxyType):
            return _read_only, (dict(obj),)
        left_out = cached_properties(type(obj))
        if not left_out and not isinstance(obj, Coupling):
            return NotImplemented
        reduced: Any = obj.__reduce_ex__(5)
        if len(reduced) < 3 or not isinstance(reduced[2], dict):
            return reduced  # a user's class with its own way of pickling
        make, arguments, attributes, *rest = reduced
        kept = {name: value for name, value in attributes.items() if name not in left_out}
        if isinstance(obj, Coupling):
            kept["function"] = _portable_function(obj)
        return make, arguments, kept, *rest


def _read_only(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)  # whose class pickle looks for in the wrong module


def _portable_function(coupling: Coupling) -> Any:
    """The coupling's function if another process can import it, else its trace."""
    try:
        if b"__main__" not in pickle.dumps(coupling.function):  # a script's functions are not found from elsewhere
            return coupling.function
    except Exception:  # whatever pickle makes of a user's object
        pass
    try:
        size = len(coupling.entries(coupling.independent or coupling.joints))
        return TracedFunction(template(coupling.function, size))
    except Exception as error:  # whatever a user's function raises
        raise ModelError(
            f"coupling {coupling.name!r} cannot be pickled: its function {coupling.function!r} cannot be imported by "
            f"another process, nor traced any more ({error!r}); define it at the top level of a module, and let it "
            "depend on its argument alone"
        ) from error
