"""The measurements work and say a ratio. No figure is judged here: a shared machine has no honest one."""

from __future__ import annotations

import json

import pytest

from bench.__main__ import main
from tests.broker import TestBroker

pytestmark = pytest.mark.timeout(300)


def test_steps_beside_a_raw_loop(broker: TestBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["steps", "--steps", "20", "--json", "--bootstrap-servers", broker.bootstrap_servers]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["steps"] == 20
    assert result["record_bytes"] > 50
    assert 0 < result["p50_ms"] <= result["p99_ms"]
    assert result["ratio"] == pytest.approx(result["mean_ms"] / result["raw_mean_ms"])


def test_burst_beside_a_raw_loop(broker: TestBroker, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--jobs", "50", "--slots", "20", "--lead", "30", "--json", "--bootstrap-servers", broker.bootstrap_servers]
    assert main(["burst", *options]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["jobs"] == 50
    assert result["attempts"] >= 50
    rounding = 1 / result["raw_ms"]  # printed in whole milliseconds
    assert result["ratio"] == pytest.approx(result["last_start_ms"] / result["raw_ms"], rel=0.01 + rounding)
    phases = [phase["last_ms"] for phase in result["phases"]]
    assert len(phases) == 5
    assert min(phase["first_ms"] for phase in result["phases"]) >= -1000  # nothing is given out ahead of time
    assert result["last_start_ms"] == phases[-1]


def test_without_a_name_the_measurements_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2
    assert "burst, steps" in capsys.readouterr().err


def test_a_burst_without_time_to_define_its_jobs_says_so(broker: TestBroker, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--jobs", "5", "--lead", "0.5", "--bootstrap-servers", broker.bootstrap_servers]
    assert main(["burst", *options]) == 1
    assert "--lead" in capsys.readouterr().err
