"""How Sphinx builds the documentation (`make docs`). Pages are plain Markdown, read in the repository as well."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes

import coupler

project, author = "coupler", "The coupler developers"
version = release = coupler.__version__
copyright = author
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "README.md"]  # README.md is the overview that repositories show; index.md is the site's

html_theme = "furo"
html_title = f"coupler {release}"
html_theme_options = {"source_view_link": "", "top_of_page_buttons": []}
html_static_path, html_css_files = ["_static"], ["site.css"]
html_show_sphinx = False
pygments_style, pygments_dark_style = "friendly", "monokai"

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
html_math_renderer = "mathml"  # below; formulas need neither a network nor scripts
myst_heading_anchors = 4  # links to headings, as repositories have them
copybutton_exclude = ".linenos, .gp, .go"

default_role = "py:obj"  # names in backticks lead to what they name, where it is documented
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_type_aliases = {"ClosureChoice": "ClosureChoice"}
napoleon_numpy_docstring = False
napoleon_use_ivar = True

_SIGNS = re.compile(r"(?<!\\)([*|])")
_SEVERAL = re.compile(r"(    )(\w+(?:, \w+)+): (.*)")
# Default values as a reader would write them.
_DEFAULTS = {"<class 'numpy.float64'>": "np.float64", "<function Constants.<lambda>>": "..."}
# Classes that functions and methods make: how they are constructed is of no interest to a reader.
_MADE = {"Cluster", "ClusterTree", "JointForces", "Log", "Motion", "Robot", "Rollout", "SimulationState", "StepStatus"}
_QUALIFIED = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z]|ndarray)")


def _restructured(app: Any, what: str, name: str, obj: Any, options: Any, original: list[str]) -> None:
    """Makes docstrings, which are plain text with names in backticks, what Sphinx reads.

    Indented examples become code blocks, stars and bars lose their meaning as markup, and arguments or attributes that
    share a line ("q, v: the state") get an entry each.
    """
    lines = _one_name_an_entry(original)
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
    original[:] = found


def _one_name_an_entry(lines: list[str]) -> list[str]:
    """Repeats an entry of several names, with the lines that continue it, for each of them."""
    found: list[str] = []
    i = 0
    while i < len(lines):
        several = _SEVERAL.fullmatch(lines[i])
        end = i + 1
        if several is None:
            found.append(lines[i])
        else:
            while end < len(lines) and lines[end].startswith("     "):
                end += 1
            for name in several[2].split(", "):
                found += [f"{several[1]}{name}: {several[3]}", *lines[i + 1 : end]]
        i = end
    return found


def _readable(app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, result: Any) -> Any:
    """Signatures without what Python prints for objects that have no text of their own."""
    if signature is None:
        return None
    if what == "class" and name.rsplit(".", 1)[-1] in _MADE:
        return "", None
    signature = signature.replace("=<factory>", "=...")
    for default, text in _DEFAULTS.items():
        signature = signature.replace(default, text)
    return signature, result


def _shortened(app: Any, tree: nodes.document, page: str) -> None:
    """Names of types without their modules, which links lead to."""
    if page.startswith("reference/"):
        for field in tree.findall(nodes.field):
            for text in list(field.findall(nodes.Text)):
                if isinstance(text.parent, nodes.emphasis | nodes.reference | addnodes.literal_emphasis):
                    text.parent.replace(text, nodes.Text(_QUALIFIED.sub("", text.astext())))


def _in_code(lines: list[str]) -> bool:
    """Whether the last line that is not blank is one of code."""
    return next((line.startswith("    ") for line in reversed(lines) if line.strip()), False)


def _formula(writer: Any, node: nodes.math) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _displayed_formula(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (_formula, None), (_displayed_formula, None))
    app.connect("autodoc-process-docstring", _restructured, priority=100)  # before napoleon
    app.connect("autodoc-process-signature", _readable)
    app.connect("doctree-resolved", _shortened)
