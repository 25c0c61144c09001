"""Negative controls: with one rule of the design taken out of the real code the simulation finds what the rule is for; with the
rule in, the same world holds. What is taken out stands in `proof/simulation/controls`, the worlds in `controls` beside this file:
each names its rule and what is found without it. `holds`: what can be taken out alone, since another rule covers it. Without
a rule that guards a cost the promise holds too, and the world says which figure grows (`costs`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proof.history.acts import Role
from proof.simulation.controls.cost import costs
from proof.simulation.runner import run_many
from proof.simulation.sabotage import SABOTAGES
from proof.simulation.setup import Setup
from proof.simulation.world import Sabotage, World

FOLDER = Path(__file__).parent / "controls"
ALL = sorted(FOLDER.glob("*.json"))
WORLDS = [path for path in ALL if "finds" in json.loads(path.read_text())]
COSTS = [path for path in ALL if path not in WORLDS]


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_without_the_rule_it_breaks_and_with_it_it_holds(path: Path) -> None:
    control = json.loads(path.read_text())
    setup = Setup.from_json(control)
    [without] = run_many([setup], jobs=1, rule=control["rule"])
    assert control["finds"] in {line.partition(":")[0] for line in without.lines}
    for rule in ("", *control.get("holds", ())):
        [within] = run_many([setup], jobs=1, rule=rule)
        assert within.lines == ()


@pytest.mark.parametrize("path", COSTS, ids=lambda path: path.stem)
def test_without_the_rule_it_holds_and_costs_more(path: Path) -> None:
    control = json.loads(path.read_text())
    setup = Setup.from_json(control)
    without, within = (costs(setup, rule)[control["costs"]] for rule in (control["rule"], ""))
    assert without > within


def test_every_rule_that_can_be_taken_out_has_a_world() -> None:
    controls = [json.loads(path.read_text()) for path in ALL]
    assert {rule for control in controls for rule in (control["rule"], *control.get("holds", ()))} == set(SABOTAGES)


def test_with_l9_nobody_leads_where_no_generation_is_checked() -> None:
    setup = Setup(seed=23, hours=0.005, plan=())
    history = World(setup, sabotage=Sabotage(rule="", brokers={"fenceless": True})).run().history
    assert not history.log["dueline.runs", 0]
    ends = [life.how for life in history.noted.lives if life.role is Role.SCHEDULER]
    assert ends
    assert all(how.startswith("NoFence") for how in ends)
