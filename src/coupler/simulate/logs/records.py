"""The records of log files, which only grow, so that written data are safe whatever happens to the run.

A file starts with the line `coupler log 1`, whose number is the version of the format, followed by records. Each begins
with a frame of 20 bytes: its kind, a number of rows, the number of bytes that follow (little-endian, like everything
here) and the CRC-32 of these three. Then come blocks, each followed by its CRC-32:

    HEAD    one block, a line of JSON: robot, step, contacts, joints, columns, and a number unique to the run
    ROWS    a block for each column, in the heading's order: its numbers for the rows of this record, one after another
    ENDS    one block, a line of JSON: why the run ended early, if it did

A process that is killed leaves at most one record incomplete, the last one. Readers ignore it, and can therefore read
at any time while another process writes.
"""

from __future__ import annotations

import json
import secrets
import struct
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from zlib import crc32

import numpy as np

from coupler.simulate.logs.columns import Heading

SUFFIX = ".clog"
NAME = b"coupler log "  # with which each file begins
VERSION = b"1\n"
FRAME, CRC = struct.Struct("<4sIQI"), struct.Struct("<I")
HEAD, ROWS, ENDS = b"HEAD", b"ROWS", b"ENDS"


def head_record(heading: Heading) -> bytes:
    """The beginning of a file."""
    columns = {name: (dtype.str, shape) for name, (dtype, shape) in heading.columns.items()}
    fields = {**asdict(heading), "columns": columns, "run": secrets.token_hex(16)}
    return NAME + VERSION + _text_record(HEAD, fields)


def rows_record(columns: Mapping[str, np.ndarray]) -> bytes:
    """A record of rows, given by column, all of one length and in the heading's order and types."""
    return _record(ROWS, len(columns["times"]), *(np.ascontiguousarray(column).data for column in columns.values()))


def end_record(note: str) -> bytes:
    """The end of a file."""
    return _text_record(ENDS, {"note": note})


def _text_record(kind: bytes, content: Any) -> bytes:
    return _record(kind, 0, json.dumps(content).encode() + b"\n")


def _record(kind: bytes, rows: int, *blocks: bytes | memoryview) -> bytes:
    sealed = b"".join(part for data in blocks for part in (data, CRC.pack(crc32(data))))
    start = FRAME.pack(kind, rows, len(sealed), 0)[: -CRC.size]
    return start + CRC.pack(crc32(start)) + sealed
