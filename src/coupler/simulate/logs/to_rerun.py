"""Logs as Rerun recordings: its viewer plots the columns, and shows contact forces as arrows in space."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coupler.files import whole_path
from coupler.model import ModelError
from coupler.model.outputs import unwritten

if TYPE_CHECKING:
    from coupler.simulate.logs.log import Log


def save(log: Log, path: Path) -> None:
    """Writes a log over a timeline called "time".

    Raises:
        ModelError: without the package rerun-sdk, or if the file cannot be written.
    """
    try:
        import rerun  # type: ignore[import-not-found]
    except ImportError:
        raise ModelError("recordings of Rerun need its package: pip install 'coupler[rerun]'") from None
    try:
        with whole_path(path, ".rrd") as temporary:
            recording = rerun.RecordingStream(f"coupler: {log.robot}")
            recording.save(temporary)
            about = {name: getattr(log, name) for name in ("robot", "step", "contacts", "joints", "note")}
            recording.log("about", rerun.TextDocument(json.dumps(about, indent=2)), static=True)
            for part in log.parts():
                _send(rerun, recording, log, part)
            recording.disconnect()
    except OSError as error:
        raise unwritten(path, error) from None


def _send(rerun: Any, recording: Any, log: Log, part: Log) -> None:
    """Writes the columns of a part of a log, and contact forces as arrows."""
    times = [rerun.TimeColumn("time", duration=part.times)]
    for name in part.columns[1:]:
        values = getattr(part, name).reshape(len(part), -1)
        if values.size:
            recording.send_columns(name, times, rerun.Scalars.columns(scalars=values.astype(float)))
    if log.contacts and {"forces", "points"} <= set(log.columns):
        each = np.full(len(part), len(log.contacts))
        arrows = rerun.Arrows3D.columns(vectors=part.forces.reshape(-1, 3), origins=part.points.reshape(-1, 3))
        recording.send_columns("contacts", times, arrows.partition(each))
