"""The same scenarios on the simulated Kafka: the same outcomes, whatever the seed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.conformance import catalogue
from tests.simulation.conformance.scenario import SCENARIOS, OneOf
from tests.simulation.conformance.simulated import SimulatedBench

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [*catalogue.CALM, *catalogue.MEDDLING, *catalogue.RESTARTING])
def test_simulated(name: str, seed: int) -> None:
    scenario = SCENARIOS[name]
    assert scenario.expected == SimulatedBench(seed).observe(scenario)


def test_a_simulation_that_flatters_is_found() -> None:
    """Negative control: a broker that checks no generation does not pass."""
    scenario = SCENARIOS["stale_generation_is_refused"]
    fenceless = SimulatedBench(0, fenceless=True).observe(scenario)
    assert fenceless != scenario.expected
    assert fenceless["fence"] == "ok"


def test_an_outcome_that_lacks_or_changes_one_observation_differs() -> None:
    scenario = SCENARIOS["sentinel_is_committed"]
    seen = SimulatedBench(0).observe(scenario)
    assert scenario.expected == seen
    assert all(scenario.expected != {**seen, key: "another"} for key in seen)
    assert all(scenario.expected != {name: value for name, value in seen.items() if name != key} for key in seen)


def test_one_of_equals_what_it_lists_and_nothing_else() -> None:
    either = OneOf("a", ["b"])
    assert either == "a"
    assert either == ["b"]
    assert either != "b"


def test_a_scenario_that_breaks_is_not_taken_for_an_outcome() -> None:
    def broken(_: object) -> dict[str, object]:
        raise LookupError("inside")

    with pytest.raises(LookupError, match="inside"):
        SimulatedBench(0).observe(replace(SCENARIOS["starts"], run=broken))
