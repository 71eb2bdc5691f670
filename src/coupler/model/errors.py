"""The error and the warning that models raise."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


class ModelError(ValueError):
    """A description or an argument that cannot be right; the message names the culprit and a remedy."""


class ModelWarning(UserWarning):
    """Something about a robot is suspicious, or something in its file was ignored; the message says what."""


def warn(text: str) -> None:
    """Issues a `ModelWarning` at the line of the user's code that led here, however deep in the library this is."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, ModelWarning, stacklevel=level)
