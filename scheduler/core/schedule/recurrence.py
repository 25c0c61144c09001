"""The text under `rrule:`: the rule alone, or the lines of an iCalendar object (DTSTART, RRULE, EXDATE, RDATE)."""

from __future__ import annotations

import re
from typing import NamedTuple

from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.scheduler.core.schedule.moment import Moment, parse_moment
from dueline.scheduler.core.schedule.rule import LONGEST_RULE, Rule, parse_rule

_LINE = re.compile(r"(DTSTART|RRULE|EXDATE|RDATE)((?:;[A-Z]+=[^:;]+)*):(.*)", re.IGNORECASE)
_LONGEST_TEXT = 8 * LONGEST_RULE
_KNOWN_PARAMETERS = ("TZID", "VALUE")


class Recurrence(NamedTuple):
    """What the text says; `zone` is the name given as TZID, None without one."""

    rule: Rule
    begin: Moment | None
    zone: str | None
    taken: tuple[Moment, ...]
    added: tuple[Moment, ...]


def parse_recurrence(text: str) -> Recurrence:
    """Reads the text. Raises ScheduleError."""
    if len(text) > _LONGEST_TEXT or not text.isascii():
        raise ScheduleError(
            f"rrule: ASCII text of at most {_LONGEST_TEXT} characters is needed", text=text[:80], position=0
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and not _LINE.fullmatch(lines[0]):
        return Recurrence(parse_rule(lines[0]), None, None, (), ())
    rules, begins, zones = list[Rule](), list[Moment](), set[str]()
    moments: dict[str, list[Moment]] = {"EXDATE": [], "RDATE": []}
    for line in lines:
        name, parameters, value = _split(line)
        if "TZID" in parameters:
            zones.add(parameters["TZID"])
        if name == "RRULE":
            rules.append(parse_rule(value))
        elif name == "DTSTART":
            begins.append(parse_moment(value, key="rrule: DTSTART"))
        else:
            moments[name].extend(parse_moment(each, key=f"rrule: {name}") for each in value.split(","))
    if len(rules) != 1 or len(begins) > 1 or len(zones) > 1:
        raise ScheduleError(
            "rrule: one RRULE, at most one DTSTART and one TZID are allowed; several rules are a list of schedules",
            text=text[:80],
            position=0,
        )
    return Recurrence(
        rules[0], begins[0] if begins else None, zones.pop() if zones else None, *map(tuple, moments.values())
    )


def _split(line: str) -> tuple[str, dict[str, str], str]:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ScheduleError(
            "rrule: a line is DTSTART, RRULE, EXDATE or RDATE, then a colon and its value", text=line[:80], position=0
        )
    parameters = dict(piece.split("=", 1) for piece in found[2].split(";")[1:])
    for name in parameters:
        if name.upper() not in _KNOWN_PARAMETERS:
            raise ScheduleError(f"rrule: the parameter {name[:20]} is not known here", text=line[:80], position=0)
    return found[1].upper(), {name.upper(): value for name, value in parameters.items()}, found[3]
