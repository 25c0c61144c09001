"""Reads the compiled zone files (RFC 8536) of the pinned `tzdata` package, never the host's.

The files are opened as resources of that package: neither the search path of `zoneinfo` nor its cache is touched,
so handlers in the same process see whatever zone data they always saw.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import tzdata

_HEADER = struct.Struct(">4s c 15x 6I")
_NEVER_A_ZONE = frozenset({"Factory", "localtime", "posixrules"})


class ZoneFile(NamedTuple):
    """What a zone file says: `offsets[0]` holds before `instants[0]`, `offsets[i + 1]` from `instants[i]` on, all in
    seconds; `footer` is the POSIX rule for later times (empty: the last offset holds)."""

    instants: tuple[int, ...]
    offsets: tuple[int, ...]
    footer: str


def tzdata_version() -> str:
    """The version of the zone data in use, such as `2026f`. Recorded with every stored next time."""
    return str(tzdata.IANA_VERSION)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Every zone name that a schedule may use."""
    listed = resources.files(tzdata).joinpath("zones").read_text(encoding="utf-8").split()
    return frozenset(listed) - _NEVER_A_ZONE


def read_zone_file(name: str) -> ZoneFile:
    """The parsed file of a zone that `zone_names` lists."""
    return parse_zone_file(resources.files(tzdata).joinpath("zoneinfo", *name.split("/")).read_bytes())


def parse_zone_file(data: bytes) -> ZoneFile:
    """Reads version 2+ of the format: the 64-bit block and the footer."""
    body = _HEADER.size + _block_size(data, 0, 4)
    _, _, _, _, _, times, types, _ = _header(data, body)
    at = body + _HEADER.size
    instants = struct.unpack_from(f">{times}q", data, at)
    kinds = data[at + times * 8 : at + times * 9]
    infos = [struct.unpack_from(">i??", data, at + times * 9 + 6 * index) for index in range(types)]
    footer = data[body + _HEADER.size + _block_size(data, body, 8) :].strip(b"\n").decode("ascii")
    return ZoneFile(instants, _offsets(kinds, infos), footer)


def _header(data: bytes, at: int) -> tuple[bytes, bytes, int, int, int, int, int, int]:
    magic, version, utc_flags, standard_flags, leaps, times, types, chars = _HEADER.unpack_from(data, at)
    if magic != b"TZif" or version < b"2":
        raise ValueError("tzdata holds a zone file of an unknown format; reinstall the pinned tzdata package")
    return magic, version, utc_flags, standard_flags, leaps, times, types, chars


def _block_size(data: bytes, at: int, width: int) -> int:
    _, _, utc_flags, standard_flags, leaps, times, types, chars = _header(data, at)
    return times * (width + 1) + types * 6 + chars + leaps * (width + 4) + standard_flags + utc_flags


def _offsets(kinds: bytes, infos: list[tuple[int, bool, int]]) -> tuple[int, ...]:
    return (infos[0][0], *(infos[kind][0] for kind in kinds))
