"""How Sphinx builds the documentation (`make docs`). Pages are plain Markdown, read in the repository as well."""

from __future__ import annotations

import re
from typing import Any

import coupler

project, author = "coupler", "The coupler developers"
version = release = coupler.__version__
copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx_copybutton"]
exclude_patterns = ["_build", "README.md"]  # index.md includes the list of README.md, which repositories show

html_theme = "furo"
html_title = f"coupler {release}"
html_theme_options = {"source_view_link": ""}
html_show_sphinx = False
pygments_style, pygments_dark_style = "friendly", "monokai"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # links to headings, as repositories have them
copybutton_exclude = ".linenos, .gp, .go"

default_role = "py:obj"  # names in backticks lead to what they name, where it is documented
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
napoleon_numpy_docstring = False
napoleon_use_ivar = True

_SIGNS = re.compile(r"(?<!\\)([*|])")


def _restructured(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Makes docstrings, which are plain text with names in backticks, what Sphinx reads.

    Examples, which are indented, become blocks of code. Stars and bars are what they are, and no markup.
    """
    found: list[str] = []
    section = False  # within "Args:" and the like, indentation is napoleon's
    for line in lines:
        indented, blank = line.startswith("    "), not line.strip()
        if not indented and not blank:
            section = bool(re.fullmatch(r"(Args|Attributes|Returns|Raises|Yields):", line))
        if indented and not section:
            if found and not found[-1].strip() and not _in_code(found):
                found += [".. code-block:: python", ""]
            found.append(line)
        else:
            parts = line.split("`")
            found.append("`".join(_SIGNS.sub(r"\\\1", part) if i % 2 == 0 else part for i, part in enumerate(parts)))
    lines[:] = found


def _in_code(lines: list[str]) -> bool:
    """Whether the last line that is not blank is one of code."""
    return next((line.startswith("    ") for line in reversed(lines) if line.strip()), False)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _restructured, priority=100)  # before napoleon
