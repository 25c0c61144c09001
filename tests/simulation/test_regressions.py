"""Plans that once broke the promise, shrunk. They stay, and the promise holds under each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proof.simulation.runner import run_many
from proof.simulation.setup import Setup

FOLDER = Path(__file__).parent / "regressions"
PLANS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_it_holds_now(path: Path) -> None:
    setup = Setup.from_json(json.loads(path.read_text()))
    [report] = run_many([setup], jobs=1)
    assert report.lines == ()
