"""YAML as closure files and tables use it: mappings, lists, numbers, and strings that know their line.

Files are untrusted. Of YAML's many ways to write a value only the plain ones are read: no aliases, by which a small
file can expand into a huge one, no tags, dates or numbers in base 60. What is beyond `limits` is refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from coupler.forks import imports
from coupler.io.content import content_of
from coupler.io.limits import YAML_BYTES, YAML_DEPTH, YAML_NODES
from coupler.model import ModelError
from coupler.model.wording import clipped

_NUMBER = re.compile(r"[-+]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][-+]?\d{1,5})?", re.ASCII)
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False, ".inf": float("inf"), ".nan": float("nan")}
_WORDS |= {"-.inf": -float("inf")}


class Word(str):
    """A string that knows the line of the file it stands in."""

    line: int


def line_of(value: Any) -> str:
    """The line of a value, for messages."""
    while isinstance(value, list | dict) and value:
        value = next(iter(value))
    return f", line {value.line}" if isinstance(value, Word) else ""


def parse_yaml(path: Path, at_most: int = YAML_BYTES, values: int = YAML_NODES) -> Any:
    """The content of a file: dictionaries, lists, strings and numbers.

    Args:
        at_most, values: the largest numbers of bytes and of values that it may have.

    Raises:
        ModelError: for a file that cannot be read or is not YAML, for one with aliases or tags, and for one beyond the
            limits.
    """
    with imports():
        import yaml

    try:
        node = _composed(path, content_of(path, at_most).decode("utf-8"), values)
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
        raise ModelError(f"{path}{line}: it is not YAML: {error.problem}") from None
    except ModelError:
        raise
    except Exception as error:  # malformed bytes and escapes raise errors of many kinds
        raise ModelError(f"{path}: it is not YAML: {clipped(error, 1000, quote=False)}") from None
    return None if node is None else _value(path, node)


def _composed(path: Path, text: str, values: int) -> Any:
    """The nodes of a document, counted and without aliases and tags."""
    import yaml

    count = depth = 0

    def refuse(node: Any, what: str) -> ModelError:
        return ModelError(f"{path}, line {node.start_mark.line + 1}: {what}")

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            nonlocal count, depth
            event = self.peek_event()
            count, depth = count + 1, depth + 1
            if isinstance(event, yaml.AliasEvent):
                raise refuse(event, "aliases are refused; write out what it stands for")
            if event.tag not in (None, "!"):
                raise refuse(event, f"it is not YAML: tags are refused, such as {clipped(event.tag)}")
            if count > values or depth > YAML_DEPTH:
                limit = f"{values} values" if count > values else f"{YAML_DEPTH} values within each other"
                raise refuse(event, f"it has more than {limit}, the most that are read")
            node = super().compose_node(parent, index)
            depth -= 1
            return node

    loader = Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _value(path: Path, node: Any) -> Any:
    """A node as Python objects; its depth was checked, so recursion is safe."""
    line = node.start_mark.line + 1
    if node.id == "sequence":
        return [_value(path, value) for value in node.value]
    if node.id == "mapping":
        mapping: dict[Any, Any] = {}
        for key, value in node.value:
            name = _value(path, key) if key.id == "scalar" else None
            if not isinstance(name, str | int | float):
                raise ModelError(f"{path}, line {line}: a key must be a word")
            if name in mapping:
                line = key.start_mark.line + 1
                raise ModelError(f"{path}, line {line}: the key {clipped(name)} appears twice in a mapping")
            mapping[name] = _value(path, value)
        return mapping
    if node.style is None and node.value.lower() in _WORDS:  # plain: neither quoted nor a block
        return _WORDS[node.value.lower()]
    if node.style is None and _NUMBER.fullmatch(node.value):
        return int(node.value) if re.fullmatch("[-+]?[0-9]+", node.value) else float(node.value)
    word = Word(node.value)
    word.line = line
    return word
