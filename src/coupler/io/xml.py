"""XML as robot files use it: elements that know their file and line, and what of them has been read.

A file is data of someone else's. Entities are refused, so that a small file cannot grow into a large one and none reads
another; nothing is ever fetched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np

from coupler.model import ModelError

__all__ = ["Element", "parse", "parse_file"]


@dataclass(eq=False)
class Element:
    """An element of a file.

    Reading an attribute or asking for children marks them as read. `unread` lists the rest, so that nothing of a file
    is dropped in silence.

    Attributes:
        tag: its name.
        attributes: as written.
        file: where it stands.
        line: where it begins.
        children: the elements in it.
        text: the characters in it, outside of its children.
        expanded: a word on lines that are not those of the file itself.
    """

    tag: str
    attributes: dict[str, str]
    file: Path
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""
    expanded: str = ""
    _read: set[str] = field(default_factory=set)
    _seen: bool = False

    def __str__(self) -> str:
        """What messages call it: file, line, tag and name."""
        name = f" name={self.attributes['name']!r}" if "name" in self.attributes else ""
        return f"{self.file}, line {self.line}{self.expanded}, <{self.tag}{name}>"

    def error(self, message: str) -> ModelError:
        """An error that names this element."""
        return ModelError(f"{self}: {message}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Errors of a model that come up inside name this element."""
        try:
            yield
        except ModelError as error:
            told = str(error)
            raise error if told.startswith(f"{self.file}, line ") else self.error(told) from None

    # Children

    def all(self, *tags: str) -> list[Element]:
        """The children with one of these tags; all children, if none is given."""
        found = [child for child in self.children if not tags or child.tag in tags]
        for child in found:
            child._seen = True
        return found

    def find(self, tag: str) -> Element | None:
        """The child with this tag, of which there may be one."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].error(
                f"there is more than one <{tag}> in {self.tag!r}; the first is in line {found[0].line}"
            )
        return found[0] if found else None

    def need(self, tag: str) -> Element:
        """The child with this tag, which there must be."""
        found = self.find(tag)
        if found is None:
            raise self.error(f"there is no <{tag}> in it")
        return found

    # Attributes

    def get(self, name: str, default: str = "") -> str:
        """An attribute, without blanks around it."""
        self._read.add(name)
        return self.attributes.get(name, default).strip()

    def has(self, name: str) -> bool:
        return name in self.attributes

    def require(self, name: str) -> str:
        """An attribute that there must be."""
        value = self.get(name)
        if not value:
            raise self.error(f"it needs the attribute {name!r}")
        return value

    def number(self, name: str, default: float | None = None, *, finite: bool = True) -> float:
        """An attribute that is a number; one that is required, if there is no default."""
        return float(self.numbers(name, 1, None if default is None else [default], finite=finite)[0])

    def numbers(
        self, name: str, count: int | None, default: list[float] | None = None, *, finite: bool = True
    ) -> np.ndarray:
        """An attribute that is a list of so many numbers, or of any number of them."""
        if default is not None and not self.has(name):
            self._read.add(name)
            return np.array(default)
        return self._numbers(self.require(name), f"its {name}", count, finite=finite)

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is true or false."""
        value = self.get(name, str(default)).lower()
        if value not in _FLAGS:
            raise self.error(f"its {name} must be true or false, got {value!r}")
        return _FLAGS[value]

    def word(self) -> str:
        """The text in it, without blanks around it."""
        return self.text.strip()

    def values(self, count: int | None) -> np.ndarray:
        """The text in it as so many numbers."""
        return self._numbers(self.word(), "what it holds", count, finite=True)

    def _numbers(self, text: str, what: str, count: int | None, *, finite: bool) -> np.ndarray:
        parts = text.replace(",", " ").split()
        wanted = "numbers" if count is None else "a number" if count == 1 else f"{count} numbers"
        try:
            found = np.array([float(part) for part in parts if "_" not in part])
        except ValueError:
            found = np.empty(0)
        if len(found) != len(parts) or count not in (None, len(found)) or not len(found):
            raise self.error(f"{what} must be {wanted}, got {text!r}")
        if np.isnan(found).any() or (finite and (np.abs(found) > _LARGEST).any()):
            bounds = "finite" if not np.isfinite(found).all() else f"below {_LARGEST:g}"
            raise self.error(f"{what} must be {wanted} that {'are' if count != 1 else 'is'} {bounds}, got {text!r}")
        return found

    # What is left over

    def ignore(self) -> None:
        """Marks everything in it as read: it has no meaning for the motion of a robot, as a colour has none."""
        self._seen = True
        self._read.update(self.attributes)
        for element in self.walk():
            element._seen = True
            element._read.update(element.attributes)

    def walk(self) -> Iterator[Element]:
        """All elements in it, in the order of the file."""
        waiting = list(reversed(self.children))
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)

    def unread(self) -> Counter[str]:
        """What nobody asked for: tags, or attributes of tags, and how often they occur."""
        found: Counter[str] = Counter()
        waiting: list[Element] = [self]
        while waiting:
            element = waiting.pop()
            found.update(f"{name}= of <{element.tag}>" for name in element.attributes if name not in element._read)
            found.update(f"<{child.tag}>" for child in element.children if not child._seen)
            waiting += [child for child in reversed(element.children) if child._seen]
        return found


_LARGEST = 1e30  # in any unit, beyond what a robot can have; squares of it are still numbers
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def parse_file(path: Path) -> Element:
    """The root element of a file.

    Raises:
        ModelError: for a file that cannot be read or is no XML, and for one with entities of its own.
    """
    try:
        return parse(path.read_bytes(), path)
    except OSError as error:
        raise ModelError(f"{path}: it cannot be read: {error.strerror or error}") from None


def parse(data: bytes, path: Path, expanded: str = "") -> Element:
    """The root element of a file's content, or of what it expands to, with a word to say so."""
    reader = expat.ParserCreate()
    open_elements: list[tuple[Element, list[str]]] = []
    roots: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, path, reader.CurrentLineNumber, expanded=expanded)
        (open_elements[-1][0].children if open_elements else roots).append(element)
        open_elements.append((element, []))

    def end(tag: str) -> None:
        element, pieces = open_elements.pop()
        element.text = "".join(pieces)

    def characters(text: str) -> None:
        open_elements[-1][1].append(text)

    def refuse(what: str) -> ModelError:
        return ModelError(
            f"{path}, line {reader.CurrentLineNumber}: it {what}; entities are refused, since they can make a small "
            "file huge or read other files: write out what they stand for"
        )

    def declared(name: str, *_: object) -> None:
        raise refuse(f"declares the entity {name!r}")

    def skipped(name: str, *_: object) -> None:
        raise refuse(f"has the entity {name!r}, which it does not declare")

    def doctype(name: str, system: str | None, *_: object) -> None:
        if system is not None:
            raise refuse(f"has its entities declared in {system!r}")

    reader.StartElementHandler, reader.EndElementHandler, reader.CharacterDataHandler = start, end, characters
    reader.EntityDeclHandler, reader.SkippedEntityHandler, reader.StartDoctypeDeclHandler = declared, skipped, doctype
    reader.buffer_text = True
    try:
        reader.Parse(data, True)
    except expat.ExpatError as error:
        raise ModelError(f"{path}, line {error.lineno}: it is no XML: {expat.errors.messages[error.code]}") from None
    except (ValueError, LookupError) as error:  # an encoding that there is not
        raise error if isinstance(error, ModelError) else ModelError(f"{path}: it is no XML: {error}") from None
    return roots[0]
