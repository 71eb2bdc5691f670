"""Damaged files for tests: mutations by recipes of numbers, and what loading a file may come to."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from coupler.io import load
from coupler.model import ModelError, ModelWarning, Robot


def outcome(path: Path, *others: Path) -> Robot | ModelError:
    """What loading a file comes to; every other error is one of ours, and so is a warning of NumPy's."""
    found: Robot | ModelError
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ModelWarning)
        try:
            found = load(path)
        except ModelError as error:
            found = error
    if isinstance(found, ModelError):
        assert any(file.name in str(found) for file in (path, *others)), f"it names no file: {found}"
    return found


VALUES = [
    *("", " ", "nan", "inf", "-inf", "1e400", "-1", "0", "1e-320", "1e308", "-1e200", "1e16", "1e-9", "1,2", "1_0"),
    *("1 2", "1 2 3", "0 0 0", "1 0 0 0 0 0 0", "0x10", "𝟏", "9" * 5000, "x" * 5000, "1 " * 500, "9" * 20, "true"),
    *("a", "a b", "é", "\u202e", "'", "%s{0}", "ground", "base", "body", "frame", "contact", "plane", "capsule"),
    *("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical", "universal"),
    *("cylindrical", "helical", "screw", "rod", "held"),
    *("../../x.stl", "/etc/passwd", "package://", "file://", "package://a/../../b", "\\\\a\\b"),
]
WORDS = [
    *("name", "type", "link", "joint", "xyz", "rpy", "value", "as", "same", "start", "independent", "actuated"),
    *("lower", "upper", "rest", "scale", "ideal", "group", "kind", "of", "pitch", "polynomial", "relative_to"),
    *("attached_to", "placement_frame", "canonical_link", "expressed_in", "merge", "degrees", "rotation_format"),
]
SNIPPETS = [
    *("<", ">", "&", '"', "/", "\n", "\0", "\ufeff", "<!--", "-->", "<![CDATA[", "]]>", "<?a?>", "&x;", "&#0;"),
    *("&#55296;", "&lt;", "<!DOCTYPE robot>", '<!DOCTYPE robot [<!ENTITY x "y">]>', '<!DOCTYPE robot SYSTEM "a">'),
    *('<?xml version="1.0" encoding="x"?>', "<a:b/>", "<link/>", "<joint/>", "<robot>", "</robot>", "<a></a>", "é"),
]
TOKENS = [
    *("[", "]", "{", "}", "[]", "{}", ":", "-", "- ", "? ", "*a", "&a ", "!a", "!!float ", "!!int ''", "!!binary 'a'"),
    *("!!python/object:os.system ", "!!set {a}", "!!omap []", "null", "~", ".nan", ".inf", "1e400", "1", "-1", "true"),
    *("2020-01-01", "2020-99-99", "0o9", "1:2:3", "<<: ", "é", '"', "'", "#", "|\n", ">\n", "\t", "\n", "---\n"),
    *("...\n", "%YAML 9.9\n---\n", "\0", "\ufffe", "x" * 3000, "closed_loop", "submechanisms", "shoulder", "rod"),
    *("3d", "6d", "SPHERICAL", "UJOINT_XX"),
]

Numbers = tuple[int, int, int]
Change = Callable[[ET.Element, Numbers], None]
Recipe = Sequence[tuple[int, Numbers]]


def pick(things: Sequence[Any], number: int) -> Any:
    return things[number % len(things)]


def parents(root: ET.Element) -> list[tuple[ET.Element, ET.Element]]:
    """Elements below the root, each after the one that it is in."""
    return [(parent, child) for parent in root.iter() for child in parent]


def delete(root: ET.Element, at: Numbers) -> None:
    parent, child = pick(parents(root), at[0])
    parent.remove(child)


def duplicate(root: ET.Element, at: Numbers) -> None:
    """Into its own parent, or into any other element."""
    parent, child = pick(parents(root), at[0])
    into = pick([parent, *root.iter()], at[1])
    into.insert(at[2] % (len(into) + 1), deepcopy(child))


def swap(root: ET.Element, at: Numbers) -> None:
    """Contents of two elements."""
    one, two = (pick(parents(root), number)[1] for number in at[:2])
    if two in one.iter() or one in two.iter():
        return
    copies = deepcopy(one), deepcopy(two)
    for element, other in ((one, copies[1]), (two, copies[0])):
        element.tag, element.text, element[:] = other.tag, other.text, list(other)
        element.attrib.clear()
        element.attrib.update(other.attrib)


def change(root: ET.Element, at: Numbers) -> None:
    """An attribute, to something nasty or to what stands elsewhere."""
    held = [(element, name) for element in root.iter() for name in element.attrib]
    element, name = pick(held, at[0])
    words, value = element.attrib[name].split(), pick([*VALUES, *(other.attrib[word] for other, word in held)], at[1])
    if len(words) > 1 and at[2] % 2:  # one number of several
        words[at[2] // 2 % len(words)] = value
        value = " ".join(words)
    element.attrib[name] = value


def add(root: ET.Element, at: Numbers) -> None:
    pick(list(root.iter()), at[0]).attrib[pick(WORDS, at[1])] = pick(VALUES, at[2])


def drop(root: ET.Element, at: Numbers) -> None:
    element, name = pick([(element, name) for element in root.iter() for name in element.attrib], at[0])
    del element.attrib[name]


def rename(root: ET.Element, at: Numbers) -> None:
    elements = list(root.iter())
    pick(elements, at[0]).tag = pick(elements, at[1]).tag


def say(root: ET.Element, at: Numbers) -> None:
    pick([element for element in root.iter() if element.text] or [root], at[0]).text = pick(VALUES, at[1])


def reword(root: ET.Element, at: Numbers) -> None:
    """A text, to something nasty or to what stands elsewhere; or one of its words."""
    held = [element for element in root.iter() if (element.text or "").strip()] or [root]
    element = pick(held, at[0])
    words, value = (element.text or "").split(), pick([*VALUES, *(other.text or "" for other in held)], at[1])
    if len(words) > 1 and at[2] % 2:
        words[at[2] // 2 % len(words)] = value
        value = " ".join(words)
    element.text = value


CHANGES: list[Change] = [delete, duplicate, swap, change, change, change, add, drop, rename, say]
TEXT_CHANGES: list[Change] = [delete, duplicate, swap, change, add, drop, rename, reword, reword, reword]


def mutated(text: str, recipe: Recipe, changes: Sequence[Change] = CHANGES) -> bytes:
    """XML with some of its elements changed."""
    root = ET.fromstring(text)
    for which, at in recipe:
        if len(root) and any(element.attrib for element in root.iter()):
            pick(changes, which)(root, at)
    return ET.tostring(root, encoding="utf-8")


def damaged(data: bytes, recipe: Recipe, tokens: Sequence[str] = SNIPPETS) -> bytes:
    """Bytes cut off, flipped, cut out, repeated, or put in; words and lines likewise."""
    for which, (where, what, how) in recipe:
        i = where % (len(data) + 1)
        j = min(len(data), i + what % 40)
        token = pick(tokens, what).encode("utf-8", "surrogatepass")
        words = list(re.finditer(rb"[^\s\[\],:]+", data)) or [re.match(b"", data)]
        word = pick(words, where)
        lines = data.splitlines(keepends=True) or [b""]
        data = pick(
            [
                data[:i],
                data[:i] + bytes([255 & (byte ^ 1 << how % 8) for byte in data[i : i + 1]]) + data[i + 1 :],
                data[:i] + data[j:],
                data[:j] + data[i:],
                data[:i] + token + data[i:],
                data[: word.start()] + token + data[word.end() :],
                b"".join(line for n, line in enumerate(lines) if n != where % len(lines)),
                b"".join([*lines[: where % len(lines)], pick(lines, what), *lines[where % len(lines) :]]),
            ],
            which,
        )
    return data


def recipes(least: int, most: int) -> Any:
    number = st.integers(0, 9999)
    return st.lists(st.tuples(number, st.tuples(number, number, number)), min_size=least, max_size=most)


def written(folder: Path, files: dict[str, bytes]) -> list[Path]:
    """Files, and no others, in a folder."""
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in files]
