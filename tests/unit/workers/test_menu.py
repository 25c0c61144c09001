"""The demo's handler: a thousand mails, once each, also over a crash."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dueline import Crash, TestContext
from examples.menu import send_menu


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_crash_after_600_mails_repeats_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENU_OUTBOX", str(tmp_path))
    ctx = TestContext(job="menu", due=datetime(2026, 11, 29, 6, tzinfo=UTC))
    ctx.crash_after("send/600")
    with pytest.raises(Crash):
        ctx.run(send_menu)
    assert len(lines(tmp_path / "outbox.jsonl")) == 600
    result = ctx.resume(send_menu)
    mails = lines(tmp_path / "outbox.jsonl")
    assert result["sent"] == 1000
    assert Counter(Counter(mail["key"] for mail in mails).values()) == {1: 1000}
    assert len({mail["to"] for mail in mails}) == 1000
    assert [mail["attempt"] for mail in mails] == [1] * 600 + [2] * 400
    assert len(lines(tmp_path / "days.jsonl")) == 1
    assert len(ctx.skipped) == 601


def test_a_crash_in_flight_repeats_one_mail_under_the_same_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENU_OUTBOX", str(tmp_path))
    ctx = TestContext(job="menu", payload={"subscribers": 5})
    ctx.crash_during("send/3")
    with pytest.raises(Crash):
        ctx.run(send_menu)
    ctx.resume(send_menu)
    counted = Counter(mail["key"] for mail in lines(tmp_path / "outbox.jsonl"))
    assert counted.pop(f"{ctx.run_id}/3") == 2
    assert set(counted.values()) == {1}


def test_without_an_outbox_it_runs_for_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MENU_OUTBOX", raising=False)
    assert TestContext(payload={"subscribers": 2}).run(send_menu)["sent"] == 2
