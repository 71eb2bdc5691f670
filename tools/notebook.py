"""Writes docs/tutorial.ipynb from docs/tutorial.md, so that there is one text of both: python tools/notebook.py."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def notebook(page: str) -> str:
    """A page of Markdown as a notebook: its Python is cells of code, everything else text."""
    pieces = re.split(r"^```python( no-run)?\n(.*?)^```\n", page, flags=re.MULTILINE | re.DOTALL)
    cells: list[dict[str, Any]] = []
    for text, optional, code in zip(pieces[::3], [*pieces[1::3], None], [*pieces[2::3], ""], strict=True):
        if text.strip():
            cells.append(_cell(len(cells), "markdown", text.strip()))
        if code:
            # What opens a browser or needs an extra is left to the reader.
            code = "\n".join(f"# {line}" for line in code.rstrip().split("\n")) if optional else code.rstrip()
            cells.append(_cell(len(cells), "code", code) | {"execution_count": None, "outputs": []})
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps(
        {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False
    )


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}


if __name__ == "__main__":
    path = DOCS / "tutorial.ipynb"
    path.write_text(notebook((DOCS / "tutorial.md").read_text()) + "\n")
    print(f"saved {path.name}")
