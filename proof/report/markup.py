"""HTML and SVG, safe by construction: text is escaped unless this module made it. And how numbers and times are written."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""What a page can't hold or what would turn its text around."""
VOID: Final = frozenset({"meta", "br", "rect", "path", "line", "circle"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def escape(text: object) -> Markup:
    """Safe between tags and in a quoted attribute; markup stays as it is."""
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(UNPRINTABLE.sub("\ufffd", str(text)), quote=True))


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element. `class_` is written `class`, other underscores as hyphens; an attribute that is None is left out."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items() if value is not None
    )
    if name in VOID and not children:
        return Markup(f"<{name}{said}/>")
    return Markup(f"<{name}{said}>{''.join(escape(child) for child in children)}</{name}>")


def joined(parts: Sequence[Markup]) -> Markup:
    """One after the other."""
    return Markup("".join(parts))


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, numbers: bool = True) -> Markup:
    """The first cell of each row heads it. `numbers`: the other cells stand to the right. Wide tables scroll by themselves."""
    head = element("tr", *(element("th", column, scope="col") for column in columns))
    body = (
        element("tr", *(element("th", cell, scope="row") if n == 0 else element("td", cell) for n, cell in enumerate(row)))
        for row in rows
    )
    made = element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body),
        class_="numbers" if numbers else None,
    )  # fmt: skip
    return element("div", made, class_="wide", tabindex="0", role="region", aria_label=caption)


def number(value: int) -> str:
    """1,234."""
    return f"{value:,}"


def counted(value: int, noun: str, plural: str = "") -> str:
    """`1 fault`, `2 faults`."""
    return f"{number(value)} {noun if value == 1 else plural or noun + 's'}"


def duration(value_ms: int) -> str:
    """`12 ms`, `1.25 s`, `6 s`, `3 min 20 s`, `2 h 05 min`."""
    sign, rest = ("−", -value_ms) if value_ms < 0 else ("", value_ms)
    if rest < 1_000:
        return f"{sign}{rest} ms"
    if rest < 60_000:
        return f"{sign}{rest / 1000:.3f}".rstrip("0").rstrip(".") + " s"
    if rest < 3_600_000:
        return f"{sign}{rest // 60_000} min {rest % 60_000 // 1000} s"
    return f"{sign}{rest // 3_600_000:,} h {rest % 3_600_000 // 60_000:02d} min"


def since(value_ms: int) -> str:
    """An offset from the beginning: `0:03:20.150`."""
    sign, rest = ("−", -value_ms) if value_ms < 0 else ("", value_ms)
    seconds = rest // 1000
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest % 1000:03d}"


def clock(at_ms: int) -> str:
    """`2026-11-30 06:00:00 UTC`; what no calendar holds is said as milliseconds."""
    try:
        return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms since 1970"
