"""Printing: error messages, headings, paragraphs and columns that fit a terminal, JSON."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import isfinite
from textwrap import wrap
from typing import Any

WIDTH = 100  # columns


def complain(error: object) -> None:
    """Prints an error as one line on stderr."""
    line = re.sub(r"\s*\n\s*", " ", str(error))
    print(f"coupler: {line}", file=sys.stderr)


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The message for an unknown name: what may be meant, and what names there are."""
    known = list(known)
    similar = get_close_matches(name.lower(), known, n=1)
    hint = f" did you mean {similar[0]!r}?" if similar else ""
    return f"there is no {kind} {name!r};{hint} there are {', '.join(map(repr, known))}"


def heading(text: str) -> str:
    """A heading, bold on a terminal unless NO_COLOR is set."""
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return f"\033[1m{text}\033[0m" if bold else text


def fitted(text: str, indent: str = "", first: str | None = None) -> str:
    """A paragraph broken into lines of at most WIDTH columns, where its words allow it.

    Args:
        indent: the beginning of each line.
        first: the beginning of the first line, if it differs.
    """
    return "\n".join(
        wrap(
            text,
            WIDTH,
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def columns(rows: Mapping[str, str], indent: str = "") -> str:
    """Names and texts in two columns; where a name is long, texts are on the lines after theirs."""
    rows = {name: text or "none" for name, text in rows.items()}
    width = max(map(len, rows)) + 2
    if width > WIDTH // 3:
        return "\n".join(f"{indent}{name}\n{fitted(text, indent + '    ')}" for name, text in rows.items())
    margin = indent + " " * width
    return "\n".join(fitted(text, margin, indent + name.ljust(width)) for name, text in rows.items())


def print_json(data: Mapping[str, Any]) -> None:
    """Prints one JSON object; arrays become lists, infinity and NaN null."""
    print(json.dumps(_plain(data), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if hasattr(data, "tolist"):  # an array or a number of NumPy
        return _plain(data.tolist())
    return None if isinstance(data, float) and not isfinite(data) else data
