"""A bug that one job or one input meets, on a real broker: the term goes on, and so does everybody else's work."""

from __future__ import annotations

import json

import pytest

from tests.integration.leader.rig import Rig
from tests.unit.core.quarantined import in_its_admission, in_its_commands


def test_a_bug_of_one_job_and_of_one_command_ends_no_term(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Given both; then one term, others' due times decided, a dead letter, and afterwards every due time of the job once."""
    ledger, letters = rig.ledger(), rig.watch(rig.namespace.rejected)
    with rig.scheduler(), monkeypatch.context() as patch:
        in_its_admission(patch, "ill")
        in_its_commands(patch, "poison")
        rig.publish("ill", {"every": "1s"}, overlap="allow", dispatch_ahead="0s")
        rig.publish("well", {"every": "1s"}, overlap="allow")
        rig.publish("surrogate", "0 0 1 1 *", payload="\ud800")
        ledger.until(lambda seen: seen.versions("ill") and len(seen.due_times("well")) >= 2, "jobs are decided")
        place = rig.send(rig.namespace.control, None, json.dumps({"id": "p", "kind": "trigger", "job": "poison"}).encode())
        letters.until(lambda seen: len(seen.rejected()) >= 2, "the refusals")
        known = len(ledger.due_times("well"))
        ledger.until(lambda seen: len(seen.due_times("well")) >= known + 2, "well goes on")
        assert len(set(ledger.terms())) == 1
        assert ledger.due_times("ill") == []
    assert ("internal-error", place.offset) in [(letter.error, letter.offset) for letter in letters.rejected()]
    assert any(getattr(record, "action", "") == "quarantine_job" and "ill" in record.message for record in caplog.records)
    with rig.scheduler():
        first = ledger.versions("ill")[0].effective_ms // 1000 * 1000 + 1000
        until = ledger.due_times("well")[-1]
        ledger.until(lambda seen: (seen.due_times("ill") or [0])[-1] > until, "ill is made up for")
        summaries = [each for each in ledger.summaries() if each.job == "ill"]
    decided = {due for each in summaries for due in range(each.first_ms, each.last_ms + 1, 1000)}
    decided |= set(ledger.due_times("ill"))
    assert sorted(decided) == list(range(first, max(decided) + 1, 1000))
