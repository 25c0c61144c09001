"""What a worker tells people: its health file, and that it is one too many."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from dueline.workers.health import Health
from dueline.workers.spare import PATIENCE_S, Spare


def test_the_health_file_is_written_about_every_second_and_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "health.json"
    health = Health(path)
    health.tell(10.0, {"n": 1})
    health.tell(10.9, {"n": 2})
    assert json.loads(path.read_text()) == {"n": 1}
    health.tell(11.0, {"n": 3})
    assert json.loads(path.read_text()) == {"n": 3}
    assert list(tmp_path.iterdir()) == [path]
    health.remove()
    health.remove()
    assert list(tmp_path.iterdir()) == []


def test_without_a_path_nothing_is_written() -> None:
    health = Health(None)
    health.tell(10.0, {"n": 1})
    health.remove()


def test_a_worker_too_many_says_so_once_and_again_after_it_had_work(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    spare = Spare("d.menu", 2, "menu")
    assert not spare.look(0.0, joined=False, owned=0)
    assert not spare.look(PATIENCE_S, joined=True, owned=0)
    assert not spare.look(2 * PATIENCE_S - 0.1, joined=True, owned=0)
    assert spare.look(2 * PATIENCE_S, joined=True, owned=0)
    assert not spare.look(5 * PATIENCE_S, joined=True, owned=0)
    assert "2 partitions" in caplog.text
    assert "dueline init --queue" in caplog.text
    spare.look(6 * PATIENCE_S, joined=True, owned=1)
    spare.look(7 * PATIENCE_S, joined=True, owned=0)
    assert spare.look(8 * PATIENCE_S, joined=True, owned=0)
