"""The kinds of faults and what the documentation says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proof.faults import faketime
from proof.faults.kinds.table import TABLE

DOCS = Path(__file__).resolve().parents[4] / "docs" / "proof.md"


def test_the_documentation_tells_of_every_kind_and_of_no_other() -> None:
    section = DOCS.read_text(encoding="utf-8").split("### Kinds")[1].split("###")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(name for row in rows for name in re.findall(r"`([^`]+)`", row)) == sorted(TABLE)


def test_a_broker_clock_cannot_be_moved_without_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(faketime.ENVIRONMENT, str(tmp_path / "none"))
    with pytest.raises(ValueError, match=faketime.ENVIRONMENT):
        faketime.needed()
