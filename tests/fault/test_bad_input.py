"""Bad input, all at once, while a job runs every second: each gets an answer that names it, and the job keeps its times."""

from __future__ import annotations

import json

from dueline.schemas.run import RunState
from tests.fault.cluster import Cluster

JOB = "plain"
TOO_LARGE = 300_000
"""Bytes of payload; 256 KiB are allowed."""


def test_bad_input_is_answered_and_other_jobs_keep_their_times(cluster: Cluster) -> None:
    """Given an undecodable record on `jobs` and on `control`, an unknown field, a schedule that can't be parsed, a payload over
    the limit, a queue without a topic and a handler that no worker has, then the first six stand in `rejected` with their
    coordinates, the last one's run waits in the ledger and says for what, and the other job has all its times."""
    rig, ns = cluster.rig, cluster.rig.namespace
    cluster.scheduler("s1")
    cluster.worker("w1")
    cluster.publish(JOB, {"every": "1s"})
    cluster.define("orphan", "nobody-has-this")
    cluster.until_goes_on(JOB)

    def job(name: str, **fields: object) -> bytes:
        return json.dumps({"id": name, "schedule": "* * * * *", "handler": "tick", **fields}).encode()

    places = {
        "undecodable": rig.send(ns.jobs, b"garbage", b"\xc3\x01 not avro"),
        "an unknown field": rig.send(ns.jobs, b"odd", job("odd", colour="blue")),
        "an unreadable schedule": rig.send(ns.jobs, b"bad", job("bad", schedule="99 * * * *")),
        "a large payload": rig.send(ns.jobs, b"large", job("large", payload="x" * TOO_LARGE)),
        "no queue": rig.send(ns.jobs, b"lost", job("lost", queue="nowhere")),
        "an undecodable command": rig.send(ns.control, None, b"\xc3\x01 not avro"),
    }
    words = {
        "an unknown field": "colour", "an unreadable schedule": "99", "a large payload": "payload",
        "no queue": "dueline init --queue nowhere",
    }  # fmt: skip
    orphan = cluster.trigger("orphan")
    letters = rig.watch(ns.rejected)
    letters.until(lambda seen: len(seen.rejected()) >= len(places), "all refusals")
    found = {(letter.topic, letter.offset): letter for letter in letters.rejected()}
    for what, place in places.items():
        letter = found[place.topic, place.offset]
        assert letter.partition == place.partition
        assert letter.detail, what
        assert words.get(what, "") in letter.detail
    waiting = cluster.until_state(orphan, RunState.WAITING)
    assert waiting.reason == "no-worker"
    cluster.until_goes_on(JOB)
    stays = cluster.run(orphan)
    assert stays is not None
    assert (stays.state, stays.attempt) == (RunState.WAITING, 0), "nobody has the handler: it is offered to nobody"
    rig.command("cancel", run=orphan)
    cluster.until_state(orphan, RunState.CANCELLED)
    cluster.judged(JOB)
    for process in cluster.processes.values():
        assert "Traceback" not in process.log()
