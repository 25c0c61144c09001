"""The contract as pages, from the `.avsc` files and the catalogue.

`python -m dueline.schemas.document docs` writes them. A test holds the pages in `docs/` equal to what this gives.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dueline.schemas.document_text import COMMAND_FIELDS, CONTRACT, JOB_FIELDS, KEYS, RECORDS_HEAD
from dueline.schemas.ledger import FORGOTTEN_KEY
from dueline.schemas.registry import parse, schema_texts
from dueline.schemas.topics import DAY_MS, HOUR_MS, Namespace, TopicSpec, catalogue

PAGES: Final = ("contract.md", "records.md")


def main() -> None:
    """Write the pages into the folder given."""
    for name, text in pages().items():
        Path(sys.argv[1], name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """File name to text."""
    current = [text for name, text in schema_texts() if name.count(".") == 1]
    contract = CONTRACT.format(
        topics=_topics(),
        forgotten=FORGOTTEN_KEY.decode(),
        jobs=_table(("field", "value", "default"), JOB_FIELDS),
        commands=_table(("kind", "needs", "also takes"), COMMAND_FIELDS),
        fingerprints=_table(("type", "topic", "key", "first ten bytes"), _fingerprints(current)),
    )
    return dict(zip(PAGES, (contract, RECORDS_HEAD + _records(current)), strict=True))


def _topics() -> str:
    specs = catalogue(Namespace(), ["queue"])
    rows = [
        (f"`{_short(spec)}`", spec.cleanup.value, str(spec.partitions), _kept(spec), _why(spec))
        for spec in specs
    ]
    return _table(("topic", "cleanup", "partitions", "kept", "what"), rows)


def _short(spec: TopicSpec) -> str:
    return spec.name.removeprefix("dueline.").replace("dispatch.queue", "dispatch.QUEUE")


def _why(spec: TopicSpec) -> str:
    return spec.why.replace("queue queue", "queue QUEUE")


def _kept(spec: TopicSpec) -> str:
    setting = "retention.ms" if "retention.ms" in spec.config else "delete.retention.ms"
    kept = int(spec.config[setting])
    length = f"{kept // DAY_MS} d" if kept >= DAY_MS else f"{kept // HOUR_MS} h"
    return length if setting == "retention.ms" else f"latest of each key; deletions {length}"


def _fingerprints(texts: list[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for text in texts:
        known = parse(text)
        topic, key = KEYS[known.name]
        rows.append((known.name, f"`{topic}`", key, f"`{known.prefix.hex()}`"))
    return rows


def _records(texts: list[str]) -> str:
    """One section a record type; a nested type stands after the first that uses it."""
    sections: dict[str, str] = {}
    for text in texts:
        _add_section(json.loads(text), sections)
    return "\n".join(sections.values())


def _add_section(schema: dict[str, object], sections: dict[str, str]) -> None:
    name, fields = str(schema["name"]), schema["fields"]
    if name in sections or not isinstance(fields, list):
        return
    sections[name] = ""
    rows = [(f"`{field['name']}`", _type(field["type"], sections), _default(field), field["doc"]) for field in fields]
    sections[name] = f"## {name}\n{schema['doc']}\n\n{_table(('field', 'type', 'default', 'meaning'), rows)}"


def _type(avro: object, sections: dict[str, str]) -> str:
    if not isinstance(avro, dict):
        return str(avro)
    if avro["type"] == "array":
        return f"array of {_type(avro['items'], sections)}"
    _add_section(avro, sections)
    return str(avro["name"])


def _default(field: dict[str, object]) -> str:
    return f"`{json.dumps(field['default'])}`" if "default" in field else ""


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    main()
