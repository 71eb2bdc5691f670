"""Elements of SVG documents."""

from __future__ import annotations

import unicodedata
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from coupler.view.tree_layout import SMALL


def add(parent: Element, tag: str, text: str = "", *, tip: str = "", **attributes: str | float) -> Element:
    """Adds an element, with a tooltip if one is given."""
    values = {key: value if isinstance(value, str) else f"{value:.6g}" for key, value in attributes.items()}
    element = ElementTree.SubElement(parent, tag, {key.strip("_").replace("_", "-"): v for key, v in values.items()})
    element.text = _clean(text) or None
    if tip:
        add(element, "title", tip)
    return element


def add_labels(parent: Element, **attributes: str) -> Element:
    """A group for small text with a white outline, so that it is legible on top of lines."""
    rim = {"paint_order": "stroke", "stroke": "white", "stroke_width": "3", "stroke_linejoin": "round"}
    return add(parent, "g", class_="labels", font_size=SMALL, **rim, **attributes)


def _clean(text: str) -> str:
    """A text in which the characters that XML forbids are replaced."""
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cs") or c in "\ufffe\uffff" else c for c in text)
