"""Messages between a process and its child: names, numbers and arrays, and never code.

A message is its length, then a header in JSON with its own length before it, then the bytes of its arrays. Whoever
reads it checks all of that: a child that a hostile file has taken over must not gain anything by lying.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any

HEAD = 8  # bytes of a length
_TYPES = {"<f8", "<f4", "<i4", "<i8", "|u1", "|i1", "|b1", "<u4", "<u8"}


def encode(header: Mapping[str, Any], arrays: Mapping[str, Any] | None = None) -> bytes:
    """A message of a header and NumPy arrays."""
    arrays = arrays or {}
    layout = {name: (array.dtype.str, list(array.shape)) for name, array in arrays.items()}
    head = json.dumps({"header": header, "arrays": layout}).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    parts = (len(head) + HEAD + len(body)).to_bytes(HEAD, "little"), len(head).to_bytes(HEAD, "little"), head, body
    return b"".join(parts)


def length_of(head: bytes) -> int:
    """The number of bytes that follow the length with which a message begins."""
    return int.from_bytes(head, "little")


def decode(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays of a message without its leading length.

    Raises:
        ValueError: for what `encode` does not write.
    """
    end = HEAD + length_of(data[:HEAD])
    try:
        message = json.loads(data[HEAD:end])
        header, layout = message["header"], message["arrays"]
        shapes = {name: (dtype, tuple(shape)) for name, (dtype, shape) in layout.items()}
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the message has no proper header: {error}") from None
    if not isinstance(header, dict):
        raise ValueError("the message's header is not a mapping")
    return header, _arrays(memoryview(data)[end:], shapes) if shapes else {}


def _arrays(body: memoryview, shapes: dict[str, tuple[str, tuple[int, ...]]]) -> dict[str, Any]:
    import numpy as np  # not in a child that has no arrays to send

    arrays, at = {}, 0
    for name, (dtype, shape) in shapes.items():
        if not isinstance(dtype, str) or dtype not in _TYPES or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"the message has no proper array {name!r}")
        count = prod(shape)
        arrays[name] = np.frombuffer(body, dtype, count, at).reshape(shape) if count else np.zeros(shape, dtype)
        at += arrays[name].nbytes
    return arrays
