"""XML as robot files use it: elements that know their file and line, and which parts of them have been read.

Files are untrusted. Entities are refused, so that a small file cannot expand into a huge one or read another file;
nothing is ever fetched. What is larger, or nested more deeply, than `limits` says is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np

from coupler.io.content import content_of
from coupler.io.limits import ATTRIBUTES, BYTES, DEPTH, ELEMENTS, NUMBER_TEXT
from coupler.model import ModelError
from coupler.model.numbers import LARGEST
from coupler.model.wording import clipped

_LONGEST = 2000  # characters of a message
_XACRO = "; it is an expression of xacro: if you trust the file's author, load it with xacro=True (--trust)"
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(eq=False)
class Element:
    """An element of a file.

    Reading an attribute or asking for children marks them as read. `unread` lists the rest, so that nothing in a file
    is dropped silently.

    Attributes:
        tag: the name of the element.
        attributes: the attributes as written.
        file: the file that contains it.
        line: the line on which it begins.
        children: the elements directly inside it.
        text: the characters in it, outside its children.
        expanded: a note for messages if lines are not those of the file, but of what it expands to.
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
        """File, line, tag and name, for messages."""
        name = f" name={clipped(self.attributes['name'])}" if "name" in self.attributes else ""
        return f"{self.file}, line {self.line}{self.expanded}, <{clipped(self.tag, quote=False)}{name}>"

    def error(self, message: str) -> ModelError:
        """An error that names this element."""
        return ModelError(f"{self}: {clipped(message, _LONGEST, quote=False)}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """A context in which every `ModelError` names this element."""
        try:
            yield
        except ModelError as error:
            message = str(error)
            raise error if message.startswith(f"{self.file}, line ") else self.error(message) from None

    # Children

    def all(self, *tags: str) -> list[Element]:
        """The children with one of these tags; all children if no tag is given."""
        children = [child for child in self.children if not tags or child.tag in tags]
        for child in children:
            child._seen = True
        return children

    def find(self, tag: str) -> Element | None:
        """The child with this tag, or None; there may be at most one."""
        children = self.all(tag)
        if len(children) > 1:
            raise children[1].error(
                f"there is more than one <{tag}> in {self.tag!r}; the first is in line {children[0].line}"
            )
        return children[0] if children else None

    def need(self, tag: str) -> Element:
        """The child with this tag, which must exist."""
        child = self.find(tag)
        if child is None:
            raise self.error(f"there is no <{tag}> in it")
        return child

    # Attributes

    def get(self, name: str, default: str = "") -> str:
        """An attribute, without blanks around it."""
        self._read.add(name)
        return self.attributes.get(name, default).strip()

    def has(self, name: str) -> bool:
        return name in self.attributes

    def require(self, name: str) -> str:
        """An attribute that must exist."""
        value = self.get(name)
        if not value:
            raise self.error(f"it needs the attribute {name!r}")
        return value

    def number(self, name: str, default: float | None = None, *, finite: bool = True) -> float:
        """An attribute that is a number; it is required if there is no default."""
        return float(self.numbers(name, 1, None if default is None else [default], finite=finite)[0])

    def numbers(
        self, name: str, count: int | None, default: list[float] | None = None, *, finite: bool = True
    ) -> np.ndarray:
        """An attribute that is a list of `count` numbers, or of any number of them if that is None."""
        if default is not None and not self.has(name):
            self._read.add(name)
            return np.array(default)
        return self._numbers(self.require(name), f"its {name}", count, finite=finite)

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is true or false."""
        value = self.get(name, str(default)).lower()
        if value not in _FLAGS:
            raise self.error(f"its {name} must be true or false, got {clipped(value)}")
        return _FLAGS[value]

    def value(self) -> float:
        """The element's number: its attribute `value`, or its text."""
        return self.number("value") if self.has("value") else float(self.values(1)[0])

    def word(self) -> str:
        """The element's text, without blanks around it."""
        return self.text.strip()

    def values(self, count: int | None, *, finite: bool = True) -> np.ndarray:
        """The element's text as a list of `count` numbers."""
        return self._numbers(self.word(), "what it holds", count, finite=finite)

    def _numbers(self, text: str, what: str, count: int | None, *, finite: bool) -> np.ndarray:
        parts = text.replace(",", " ").split() if len(text) <= NUMBER_TEXT else []
        wanted = "numbers" if count is None else "a number" if count == 1 else f"{count} numbers"
        try:
            numbers = np.array([float(part) for part in parts if "_" not in part])
        except ValueError:
            numbers = np.empty(0)
        if len(numbers) != len(parts) or count not in (None, len(numbers)) or not len(numbers):
            raise self.error(f"{what} must be {wanted}, got {clipped(text)}{_XACRO if '${' in text else ''}")
        if np.isnan(numbers).any() or (finite and (np.abs(numbers) > LARGEST).any()):
            if np.isfinite(numbers).all():
                wanted = f"{wanted} below {LARGEST:g}"
            elif finite:
                wanted = wanted.replace("number", "finite number")
            raise self.error(f"{what} must be {wanted}, got {clipped(text)}")
        return numbers

    # Unread parts

    def ignore(self) -> None:
        """Marks the element and everything in it as read, because it has no influence on the robot's motion."""
        self._seen = True
        self._read.update(self.attributes)
        for element in self.walk():
            element._seen = True
            element._read.update(element.attributes)

    def walk(self) -> Iterator[Element]:
        """All elements inside this one, in the order of the file."""
        pending = list(reversed(self.children))
        while pending:
            element = pending.pop()
            yield element
            pending += reversed(element.children)

    def unread(self) -> Counter[str]:
        """Counts of what has not been read: tags, or attributes of tags."""
        unread: Counter[str] = Counter()
        pending: list[Element] = [self]
        while pending:
            element = pending.pop()
            tag = clipped(element.tag, quote=False)
            names = (clipped(name, quote=False) for name in element.attributes if name not in element._read)
            unread.update(f"{name}= of <{tag}>" for name in names)
            unread.update(f"<{clipped(child.tag, quote=False)}>" for child in element.children if not child._seen)
            pending += [child for child in reversed(element.children) if child._seen]
        return unread


def parse_file(path: Path) -> Element:
    """The root element of a file.

    Raises:
        ModelError: for a file that cannot be read or is not XML, for one that declares entities, and for one beyond
            the limits.
    """
    return parse(content_of(path, BYTES), path)


def parse(data: bytes, path: Path, expanded: str = "") -> Element:
    """The root element of a file's content; `expanded` says in messages that the content was expanded from a file."""
    reader = expat.ParserCreate()
    open_elements: list[tuple[Element, list[str]]] = []
    roots: list[Element] = []
    count = named = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count, named
        count, named, depth = count + 1, named + len(attributes), len(open_elements) + 1
        if count > ELEMENTS or named > ATTRIBUTES or depth > DEPTH:
            limit = f"{ELEMENTS} elements" if count > ELEMENTS else f"{ATTRIBUTES} attributes"
            limit = limit if depth <= DEPTH else f"{DEPTH} elements within each other"
            where = f"{path}, line {reader.CurrentLineNumber}"
            raise ModelError(f"{where}: it has more than {limit}, the most that are read")
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
        raise ModelError(f"{path}, line {error.lineno}: it is not XML: {expat.errors.messages[error.code]}") from None
    except (ValueError, LookupError) as error:  # an unknown encoding
        raise error if isinstance(error, ModelError) else ModelError(f"{path}: it is not XML: {error}") from None
    return roots[0]
