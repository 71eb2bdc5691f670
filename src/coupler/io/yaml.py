"""YAML as closure files use it: strings that know their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coupler.model import ModelError

__all__ = ["Word", "line_of", "parse_yaml"]


class Word(str):
    """A string that knows the line of the file it stands in."""

    line: int


def line_of(value: Any) -> str:
    """The line of a value, for messages."""
    while isinstance(value, list | dict) and value:
        value = next(iter(value))
    return f", line {value.line}" if isinstance(value, Word) else ""


def parse_yaml(path: Path) -> Any:
    """The content of a file: dictionaries, lists, strings and numbers.

    Raises:
        ModelError: for a file that cannot be read or is not YAML, and for one with aliases, by which a small file can
            expand into a huge one.
    """
    import yaml

    def plain(node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            mapping: dict[Any, Any] = {}
            for key, value in node.value:
                name = plain(key)
                if name in mapping:
                    line = key.start_mark.line + 1
                    raise ModelError(f"{path}, line {line}: the key {name!r} stands twice in a mapping")
                mapping[name] = plain(value)
            return mapping
        if isinstance(node, yaml.SequenceNode):
            return [plain(value) for value in node.value]
        value = loader.construct_object(node)
        if not isinstance(value, str):
            return value
        word = Word(value)
        word.line = node.start_mark.line + 1
        return word

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                line = self.peek_event().start_mark.line + 1
                raise ModelError(f"{path}, line {line}: aliases are refused; write out what it stands for")
            return super().compose_node(parent, index)

    try:
        text = path.read_text(encoding="utf-8")
        loader = Loader(text)
        node = loader.get_single_node()
        return None if node is None else plain(node)
    except OSError as error:
        raise ModelError(f"{path}: it cannot be read: {error.strerror or error}") from None
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
        raise ModelError(f"{path}{line}: it is not YAML: {error.problem}") from None
    except ModelError:
        raise
    except Exception as error:  # malformed tags and escapes raise errors of many kinds
        raise ModelError(f"{path}: it is not YAML: {error}") from None
