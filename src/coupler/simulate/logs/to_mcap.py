"""Logs as MCAP files, for Foxglove and other viewers: a topic for each column, with messages in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.model import ModelError
from coupler.model.outputs import written_whole

if TYPE_CHECKING:
    from coupler.simulate.logs.log import Log


def save(log: Log, path: Path) -> None:
    """Writes a log. Times are nanoseconds since time zero; numbers that are not finite become null.

    Raises:
        ModelError: without the package mcap, or for negative times.
    """
    try:
        from mcap.writer import Writer  # type: ignore[import-not-found]
    except ImportError:
        raise ModelError("MCAP files need the package mcap: pip install 'coupler[mcap]'") from None
    with written_whole(path) as file:
        writer = Writer(file)
        writer.start(library="coupler")
        about = {name: json.dumps(getattr(log, name)) for name in ("robot", "step", "contacts", "joints", "note")}
        writer.add_metadata("coupler log", about)
        channels = {}
        for name in log.columns[1:]:
            described = _schema(getattr(log[:0], name).ndim - 1)
            schema = writer.register_schema(f"coupler.{name}", "jsonschema", json.dumps(described).encode())
            channels[name] = writer.register_channel(f"/{name}", "json", schema)
        for part in log.parts():
            for k, moment in enumerate(_nanoseconds(part.times, path)):
                for name, channel in channels.items():
                    message = json.dumps({"value": _plain(getattr(part, name)[k])}).encode()
                    writer.add_message(channel, moment, message, moment, sequence=k)
        writer.finish()


def _nanoseconds(times: np.ndarray, path: Path) -> list[int]:
    if not (times >= 0.0).all():
        raise ModelError(f"{path}: MCAP cannot store the log's times before zero")
    return np.rint(times * 1e9).astype(np.int64).tolist()


def _plain(value: np.ndarray) -> Any:
    """Lists of numbers, with null for those that JSON cannot represent."""
    finite = np.isfinite(value)
    if finite.all():
        return value.tolist()
    plain = np.array(value, dtype=object)
    plain[~finite] = None
    return plain.tolist()


def _schema(dimensions: int) -> dict[str, Any]:
    value: dict[str, Any] = {"type": ["number", "null"]}
    for _ in range(dimensions):
        value = {"type": "array", "items": value}
    return {"type": "object", "properties": {"value": value}}
