"""YAML and JSON text as plain values together with the line of each, so that an error can point at it.

Scalars follow YAML 1.2's core schema: `true` and `false` only are booleans, so that the country code NO and the word
`on` stay text; dates and `12:30` stay text too. A key twice in one mapping is refused. What an alias stands for is
built each time it is named, within a budget, so that a small file can't unfold into a huge one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from dueline.schemas.errors import Path

MAX_NODES: Final = 500_000
MAX_DEPTH: Final = 80

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_INT: Final = re.compile(r"[-+]?[0-9]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A document: its value, and the line (from 1) of each path within it."""

    value: object
    lines: dict[Path, int]

    def line(self, path: Path) -> int:
        """The line of the path, or of the nearest thing around it that stands in the text."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)


class TextError(Exception):
    """The text is neither YAML nor JSON. `line` from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def load_documents(text: str) -> list[Located]:
    """The documents of a YAML stream, or the one of a JSON text. Empty documents are left out. Raises TextError."""
    is_json, value = _json(text)
    # JSON knows tabs only between tokens, where a blank will do; PyYAML does not take them there.
    source = text.expandtabs(1) if is_json else text
    try:
        nodes = list(yaml.compose_all(source, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        raise TextError(f"not YAML: {what}", mark.line + 1 if mark else 1) from error
    except yaml.YAMLError as error:
        raise TextError(f"not YAML: {error}", 1) from error
    except RecursionError as error:
        raise TextError("nested too deeply", 1) from error
    documents = [_Builder().build(node) for node in nodes]
    if is_json and len(documents) == 1:
        return [Located(value=value, lines=documents[0].lines)]
    return [document for document in documents if document.value is not None]


def _json(text: str) -> tuple[bool, object]:
    if text.lstrip()[:1] not in ("{", "["):
        return False, None
    try:
        return True, json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return False, None


@dataclass(slots=True)
class _Builder:
    """Builds one document's value and notes where each part stands."""

    lines: dict[Path, int] = field(default_factory=dict)
    nodes: int = 0

    def build(self, node: Node) -> Located:
        return Located(value=self._value(node, ()), lines=self.lines)

    def _value(self, node: Node, path: Path) -> object:
        line = node.start_mark.line + 1
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise TextError(f"more than {MAX_NODES:,} values, aliases unfolded: split the file", line)
        if len(path) > MAX_DEPTH:
            raise TextError(f"nested more than {MAX_DEPTH} deep", line)
        if _tagged(node):
            raise TextError("tags (!...) are not used here: put text in quotes, and leave other values as they are", line)
        self.lines.setdefault(path, line)
        if isinstance(node, ScalarNode):
            return _scalar(node)
        if isinstance(node, SequenceNode):
            return [self._value(item, (*path, position)) for position, item in enumerate(node.value)]
        assert isinstance(node, MappingNode), "YAML has three kinds of nodes"
        return self._mapping(node, path)

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, object]:
        result: dict[str, object] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                raise TextError("a key must be text", line)
            key = str(key_node.value)
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise TextError("merge keys (<<) are not part of YAML 1.2: write the fields out", line)
            if key in result:
                raise TextError(f"key {key!r} stands twice in one mapping", line)
            self.lines[*path, key] = line
            result[key] = self._value(value_node, (*path, key))
        return result


def _scalar(node: ScalarNode) -> object:
    text = str(node.value)
    if node.style is not None:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text) and len(text) <= 40:
        return int(text)
    if _FLOAT.fullmatch(text) and len(text) <= 40:
        return float(text)
    return text


def _tagged(node: Node) -> bool:
    mark = node.start_mark
    return mark.buffer is not None and mark.buffer[mark.pointer] == "!"
