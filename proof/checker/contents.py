"""(d) What steps returned and produced, where the handler's conduct (`result`, `produced`) says what that is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from string import Template

from proof.checker.reading import Log, place
from proof.history.verdict import Kind, Violation


def check_contents(log: Log) -> Iterator[Violation]:
    """Every record of a step, and every record that a step produced, of runs due up to `judged_ms`."""
    conducts = log.history.noted.conducts
    judged = {key: chain[-1].record for key, chain in log.runs.items() if chain[0].record.due_ms <= log.history.judged_ms}
    for placed in log.steps:
        step = placed.record
        conduct = conducts.get(judged[step.run].job.handler) if step.run in judged else None
        if conduct is None or not conduct.result or step.name not in conduct.steps:
            continue
        if step.encoding != "json" or not _same(step.result, _filled(conduct.result, step.run, step.name)):
            what = f"step {step.name!r} is recorded with the result {step.result!r:.80}, which it did not return"
            yield Violation(kind=Kind.LOST, subject=step.run, what=what, evidence=placed.where)
    topics = {conduct.produces for conduct in conducts.values() if conduct.produced} - {""}
    for (topic, _), entries in log.history.log.items():
        for entry in entries if topic in topics else ():
            run, _, name = (entry.key or b"").decode(errors="replace").partition("/")
            conduct = conducts.get(judged[run].job.handler) if run in judged else None
            if conduct is None or conduct.produces != topic or not conduct.produced:
                continue
            if not _same(entry.value or b"", _filled(conduct.produced, run, name)):
                what = f"step {name!r} produced {entry.value!r:.80}, which its handler does not"
                yield Violation(kind=Kind.LOST, subject=run, what=what, evidence=place(entry))


def _filled(text: str, run: str, step: str) -> str:
    return Template(text).safe_substitute(run=run, step=step, key=f"{run}/{step}")


def _same(found: bytes, wanted: str) -> bool:
    """As JSON where both are, else as text."""
    text = found.decode(errors="replace")
    try:
        return bool(json.loads(text) == json.loads(wanted))
    except ValueError:
        return text == wanted
