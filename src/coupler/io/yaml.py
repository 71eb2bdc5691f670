"""YAML as closure files use it: words that know their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coupler.model import ModelError

__all__ = ["Word", "line_of", "parse_yaml"]


class Word(str):
    """A string and the line it stands in."""

    line: int


def line_of(value: Any) -> str:
    """Where a value stands, for messages."""
    while isinstance(value, list | dict) and value:
        value = next(iter(value))
    return f", line {value.line}" if isinstance(value, Word) else ""


def parse_yaml(path: Path) -> Any:
    """What a file holds: dictionaries, lists, words and numbers.

    Raises:
        ModelError: for a file that cannot be read or is no YAML, and for one with aliases, by which a small file can
            become huge.
    """
    import yaml

    def plain(node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            found: dict[Any, Any] = {}
            for key, value in node.value:
                name = plain(key)
                if name in found:
                    line = key.start_mark.line + 1
                    raise ModelError(f"{path}, line {line}: {name!r} is there already; a mapping has each key once")
                found[name] = plain(value)
            return found
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
        raise ModelError(f"{path}{line}: it is no YAML: {error.problem}") from None
    except ModelError:
        raise
    except Exception as error:  # whatever comes of tags and escapes that say nonsense
        raise ModelError(f"{path}: it is no YAML: {error}") from None
