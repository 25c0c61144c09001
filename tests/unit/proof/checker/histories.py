"""Valid histories that the tests judge and break: small, and with everything in them."""

from __future__ import annotations

from functools import lru_cache

from proof.history.history import History
from tests.unit.proof.checker.world import (
    World,
    command,
    delete,
    freeze_worker,
    in_doubt,
    job,
    kill_leader,
    kill_worker,
    lead,
    new_worker,
    wake_worker,
)


@lru_cache(maxsize=8)
def calm(seed: int) -> History:
    """No fault: interval, cron and one-shot jobs, a limit, jitter, a handler that fails, a trigger, an update, a cancel."""
    world = World(seed, pace_ms=250)
    world.at(0.1, job("a", "2s", "walk")).at(0.2, job("b", "1s", overlap="allow", max_concurrent=2, dispatch_ahead="0s"))
    world.at(0.3, job("c", handler="post", schedule="* * * * *"))
    world.at(0.4, job("d", "3s", "flop", retry={"max": 1, "backoff": "1s"}))
    world.at(0.5, job("once", schedule={"at": "2026-11-30T00:53:26Z"}))
    world.at(0.6, job("s", "9s", "walk")).at(4.3, command("cancel", "c1", run="s@2026-11-30T00:53:24Z"))
    world.at(4.4, command("cancel", "c2", run="s@!none"))
    world.at(0.7, job("j", schedule={"every": "2s", "jitter": "1s"}, overlap="allow"))
    world.at(1.0, job("bad", handler="no such handler!")).at(3.3, command("trigger", "t1", job="c"))
    world.at(4.5, job("a", "3s", "walk")).at(5.2, command("trigger", "t2", job="nobody"))
    return world.history(9)


@lru_cache(maxsize=8)
def plain(seed: int) -> History:
    """Handlers without steps, and no fault."""
    world = World(seed, pace_ms=250)
    world.at(0.1, job("p", "2s", "ping")).at(0.2, job("q", "3s", "ping", overlap="allow"))
    world.at(3.3, command("trigger", "t1", job="p"))
    return world.history(9)


@lru_cache(maxsize=8)
def stormy(seed: int) -> History:
    """Leaders and workers die or freeze; pauses, deletions, updates, cancels, doubt; late runs of every policy."""
    world = World(seed, pace_ms=300)
    world.at(0.1, job("a", "2s", "walk")).at(0.2, job("b", "1s", overlap="allow", max_concurrent=2))
    world.at(0.4, job("d", "3s", "flop", retry={"max": 1}))
    for name, misfire in (("e", "all"), ("f", "skip"), ("g", "latest")):
        world.at(0.5, job(name, "1s", "walk" if name == "e" else "tick", misfire=misfire, misfire_grace="1s", catch_up_max=3))
    world.at(0.6, job("c", "2s", "post"))
    world.at(3.1, command("trigger", "t1", job="a")).at(4.5, command("pause", "p1", job="a"))
    world.at(9.9, command("resume", "r1", job="a")).at(5.7, job("b", "2s")).at(7.5, delete("d"))
    world.at(8.5, command("cancel", "c1", run="c@2026-11-30T00:53:28Z")).at(8.6, command("cancel", "c2", run="c@!none"))
    world.at(6.3, in_doubt(command("trigger", "t3", job="b"), lands=True))
    world.at(6.4, in_doubt(command("trigger", "t4", job="b"), lands=False)).at(6.5, in_doubt(delete("g"), lands=False))
    world.at(11, lead).at(0, lead).at(10.5, kill_leader).at(13, kill_leader).at(19, lead)
    world.at(23.5, kill_worker(0)).at(24.6, freeze_worker(1, 3)).at(24.7, new_worker(2)).at(27.6, wake_worker(1))
    world.at(29, new_worker(3)).at(30.5, command("delete", "x1", job="f"))
    return world.history(33)


@lru_cache(maxsize=8)
def squall(seed: int) -> History:
    """A storm in a few seconds, small enough to be broken at every place."""
    world = World(seed, pace_ms=250)
    world.at(0.1, job("a", "2s", "walk")).at(0.2, job("e", "1s", "walk", misfire="all", misfire_grace="500ms", catch_up_max=3))
    world.at(0.3, job("g", "1s", misfire="latest", misfire_grace="500ms")).at(0.4, job("c", "2s", "post"))
    world.at(0.5, job("h", "1s", misfire="skip", misfire_grace="500ms"))
    world.at(2.5, kill_leader).at(0, lead).at(6.6, lead).at(7.2, kill_worker(0)).at(8.5, new_worker(2))
    world.at(7.1, command("trigger", "t1", job="c")).at(8.1, command("pause", "p1", job="g")).at(8.3, delete("h"))
    world.at(8.6, freeze_worker(1, 2.5)).at(11.1, wake_worker(1)).at(8.9, job("a", "3s", "walk"))
    world.at(9.1, command("resume", "r1", job="g")).at(9.2, command("trigger", "t2", job="nobody"))
    world.at(9.4, in_doubt(command("trigger", "t3", job="c"), lands=True)).at(9.5, in_doubt(delete("e"), lands=False))
    return world.history(10.5, settle=5)
