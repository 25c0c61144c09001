"""A history in a folder, so that it can be kept, sent and judged again.

`log.jsonl.gz`: the committed records, a JSON list `[topic, partition, offset, append_ms, key, value]` a line, bytes in base64 and
"none" as null. `published.jsonl` and `effects.jsonl`: an object a line. `history.json`: the rest, troubles and notes too. The
same history is always the same bytes.
"""

from __future__ import annotations

import gzip
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from dataclasses import MISSING, asdict, fields
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, TypeVar, get_type_hints

from proof.history.acts import Bounds, Conduct, Effect, Fault, Life, Noted, Published
from proof.history.entry import Entry
from proof.history.history import History, Partition

LOG: Final = "log.jsonl.gz"
PUBLISHED: Final = "published.jsonl"
EFFECTS: Final = "effects.jsonl"
REST: Final = "history.json"

T = TypeVar("T")


class StoreError(Exception):
    """A folder that holds no history, or a damaged one. The text names the file, and the line where there is one."""


def save(history: History, folder: Path) -> None:
    """Write the history; the folder is made if need be, files of an earlier one are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as stream:
        for place in sorted(history.log):
            for entry in history.log[place]:
                stream.write(_entry_line(entry).encode())
    (folder / LOG).write_bytes(packed.getvalue())
    noted = history.noted
    (folder / PUBLISHED).write_text("".join(_line(_plain(each)) for each in noted.published), encoding="utf-8")
    (folder / EFFECTS).write_text("".join(_line(_plain(each)) for each in noted.effects), encoding="utf-8")
    rest = {
        "title": history.title,
        "seed": history.seed,
        "prefix": history.prefix,
        "began_ms": history.began_ms,
        "judged_ms": history.judged_ms,
        "partitions": sorted(history.log),
        "bounds": asdict(history.bounds),
        "conducts": {name: asdict(conduct) for name, conduct in sorted(noted.conducts.items())},
        "faults": [asdict(each) for each in noted.faults],
        "lives": [asdict(each) for each in noted.lives],
        "troubles": list(noted.troubles),
        "notes": list(noted.notes),
    }
    (folder / REST).write_text(json.dumps(rest, indent=1) + "\n", encoding="utf-8")


def prepare(folder: Path) -> None:
    """Make a folder, if need be, and see that files can be written there: before hours are spent on what goes there. Raises
    OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder):
        pass


def load(folder: Path) -> History:
    """The history in a folder. Raises StoreError."""
    rest = _read_rest(folder / REST)
    try:
        log: dict[Partition, list[Entry]] = {(str(topic), int(number)): [] for topic, number in rest.pop("partitions")}
        bounds = _made(Bounds, rest.pop("bounds"))
        conducts = {str(name): _made(Conduct, conduct) for name, conduct in rest.pop("conducts").items()}
        faults = tuple(_made(Fault, each) for each in rest.pop("faults"))
        lives = tuple(_made(Life, each) for each in rest.pop("lives"))
        troubles, notes = (_texts(name, rest.pop(name, [])) for name in ("troubles", "notes"))  # older histories have none
        plain = {name: _of_type(name, kind, rest.pop(name)) for name, kind in _PLAIN.items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"{folder / REST}: {_said(error)}") from error
    if rest:
        raise StoreError(f"{folder / REST}: unknown fields: {', '.join(sorted(rest))}")
    for entry in _lines(folder / LOG, _entry):
        log.setdefault((entry.topic, entry.partition), []).append(entry)
    if not any(log.values()):  # whatever ran left a barrier at least: such a log was not written, or not whole
        raise StoreError(f"{folder / LOG}: holds no record")
    noted = Noted(
        published=tuple(_lines(folder / PUBLISHED, lambda value: _made(Published, value))),
        effects=tuple(_lines(folder / EFFECTS, lambda value: _made(Effect, value))),
        faults=faults,
        lives=lives,
        conducts=conducts,
        troubles=troubles,
        notes=notes,
    )
    return History(log=log, noted=noted, bounds=bounds, **plain)


_PLAIN: Final[dict[str, type]] = {"title": str, "seed": int, "prefix": str, "began_ms": int, "judged_ms": int}


# --- writing ----------------------------------------------------------------------------------------------------------


def _entry_line(entry: Entry) -> str:
    return _line([entry.topic, entry.partition, entry.offset, entry.append_ms, _text(entry.key), _text(entry.value)])


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def _plain(record: Published | Effect) -> dict[str, object]:
    return {name: _text(value) if isinstance(value, bytes) else value for name, value in asdict(record).items()}


def _text(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()


# --- reading ----------------------------------------------------------------------------------------------------------


def _read_rest(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: {_said(error)}") from error
    if not isinstance(value, dict):
        raise StoreError(f"{path}: not a JSON object")
    return value


def _lines(path: Path, make: Callable[[Any], T]) -> Iterator[T]:
    try:
        data = path.read_bytes()
        lines = (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{path}: {_said(error)}") from error
    for number, line in enumerate(lines, 1):
        try:
            made = make(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(f"{path}, line {number}: {_said(error)}") from error
        yield made


def _entry(value: Any) -> Entry:
    topic, partition, offset, append_ms, key, data = value
    return Entry(
        topic=_of_type("topic", str, topic),
        partition=_of_type("partition", int, partition),
        offset=_of_type("offset", int, offset),
        append_ms=_of_type("append_ms", int, append_ms),
        key=_bytes(key),
        value=_bytes(data),
    )


def _made(cls: type[T], value: Any) -> T:
    """A record of its fields; those left out have their defaults, unknown ones are an error."""
    if not isinstance(value, dict):
        raise TypeError(f"a {cls.__name__} is an object, not {value!r:.60}")
    hints = _hints(cls)
    unknown = set(value) - set(hints)
    if unknown:
        raise ValueError(f"{cls.__name__} has no {', '.join(sorted(unknown))}")
    given = {name: _field(f"{cls.__name__}.{name}", hints[name], part) for name, part in value.items()}
    missing = [each.name for each in fields(cls) if _required(each) and each.name not in given]  # type: ignore[arg-type]
    if missing:
        raise ValueError(f"{cls.__name__} without {', '.join(missing)}")
    return cls(**given)


_KNOWN: Final[dict[type, dict[str, Any]]] = {}


def _hints(cls: type) -> dict[str, Any]:
    if cls not in _KNOWN:
        _KNOWN[cls] = get_type_hints(cls)
    return _KNOWN[cls]


def _required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _field(name: str, hint: Any, value: Any) -> Any:
    if hint is bytes or hint == bytes | None:
        if value is None and hint is bytes:
            raise TypeError(f"{name} is missing")
        return _bytes(value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    if hint == tuple[str, ...]:
        return _texts(name, value)
    return _of_type(name, hint, value)


def _of_type(name: str, kind: type, value: Any) -> Any:
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise TypeError(f"{name} is {value!r:.60}, not of type {kind.__name__}")


def _texts(name: str, value: Any) -> tuple[str, ...]:
    return tuple(_of_type(name, str, each) for each in _of_type(name, list, value))


def _bytes(value: Any) -> bytes | None:
    return None if value is None else b64decode(_of_type("bytes", str, value), validate=True)


def _said(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"no field {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
