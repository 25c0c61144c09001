"""The bench on the simulated broker: tasks of one kernel, virtual time. A scenario is a task of a host, a puppet another host."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from dueline.scheduler.kafka import client
from proof.simulation.broker.cluster import Cluster
from proof.simulation.broker.settings import Settings
from proof.simulation.client.clients import constructors
from proof.simulation.kernel import Host, Kernel, Waiters
from proof.simulation.network import Meddling, Network
from proof.simulation.protocol import Answer, EndTxn, Request
from proof.simulation.substitution import Names, substituted, virtual
from tests.simulation.conformance import acts
from tests.simulation.conformance.bench import Bench
from tests.simulation.conformance.scenario import Outcome, Scenario

LIMIT_S: Final = 900.0
"""Virtual seconds a scenario may take."""
NEVER_S: Final = 10 * LIMIT_S
SERVERS: Final = "broker-1:9092"
LIKE_THE_EMBEDDED: Final = Settings(
    min_session_s=1.0, offsets_partitions=1, transaction_partitions=1, transaction_sweep_s=0.5
)


class Job:
    """A task, with its result."""

    def __init__(self, kernel: Kernel, host: Host, work: Callable[[], Any]) -> None:
        self._ended = Waiters(kernel)
        self._work = work
        self._result: Any = None
        self._task = kernel.spawn(host, self._run, "job")
        self._task.enders.append(self._ended.wake_all)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._task.over

    def _run(self) -> None:
        self._result = self._work()

    def result(self) -> Any:
        """Of a job that is over; raises what it raised."""
        if self._task.error is not None:
            raise self._task.error
        return self._result

    def join(self) -> Any:
        """Wait for the end."""
        while not self.over:
            self._ended.wait()
        return self.result()


class Marionette:
    """A puppet: a host of its own. What it is given and what it answers pass through JSON, as with the real one."""

    def __init__(self, bench: Bench, kernel: Kernel) -> None:
        self._bench, self._kernel = bench, kernel
        self._host = Host("puppet")
        self._held: dict[str, Any] = {}

    def run(self, act: str, *arguments: Any) -> Any:
        given = json.loads(json.dumps(arguments))
        work = getattr(acts, act)
        return json.loads(json.dumps(Job(self._kernel, self._host, lambda: work(self._bench, self._held, *given)).join()))

    def freeze(self) -> None:
        self._kernel.freeze(self._host)

    def thaw(self) -> None:
        self._kernel.thaw(self._host)


class Copy:
    """The network keeps the request."""

    def __init__(self, cluster: Cluster, kernel: Kernel, client_id: str, *, breaks: bool) -> None:
        self._cluster, self._kernel = cluster, kernel
        self._client_id, self._breaks = client_id, breaks
        self._request: EndTxn | None = None

    def meddle(self, _host: Host, _node: int, request: Request) -> Meddling | None:
        """See `proof.simulation.network.Meddler`."""
        if self._request is not None or not isinstance(request, EndTxn) or request.transactional_id != self._client_id:
            return None
        self._request = request
        return Meddling(hold_s=NEVER_S, break_after_s=0.0) if self._breaks else None

    def taken(self) -> bool:
        return self._request is not None

    def deliver(self) -> int:
        assert self._request is not None, "no EndTxn came by"
        answers: list[int] = []
        ended = Waiters(self._kernel)

        def answered(answer: Answer) -> None:
            answers.append(answer.code)
            ended.wake_all()

        self._cluster.handle(1, self._request, answered)
        while not answers:
            ended.wait()
        return answers[0]


class SimulatedBench(Bench):
    """For one scenario, by `observe`. `different`: settings of the broker, for controls."""

    def __init__(self, seed: int, **different: Any) -> None:
        super().__init__(SERVERS)
        self._kernel = Kernel(seed)
        self._cluster = Cluster(self._kernel, 1, replace(LIKE_THE_EMBEDDED, **different))
        self._network = Network(self._kernel, self._cluster)
        self._cluster.controller.on_death.append(self._network.node_died)
        self._host = Host("bench")

    def observe(self, scenario: Scenario) -> Outcome:
        """Run it to its end. Raises what it raises, TimeoutError when it takes too long."""
        names: Names = virtual(self._kernel, lambda _, error: self._kernel.stop()) | {
            (client.__name__, name): made for name, made in constructors(self._kernel, self._network).items()
        }
        with substituted(names):
            try:
                job = Job(self._kernel, self._host, lambda: scenario.run(self))
                while not job.over:
                    if self._kernel.now_s > LIMIT_S:
                        raise TimeoutError(f"{scenario.name} does not end")
                    self._kernel.run(self._kernel.now_s + 1.0)
                outcome: Outcome = job.result()
                return outcome
            finally:
                self._kernel.close()

    def now_ms(self) -> int:
        return self._kernel.wall_ms(self._host)

    def monotonic_s(self) -> float:
        return self._kernel.now_s

    def sleep(self, seconds: float) -> None:
        self._kernel.wait(seconds)

    def spawn(self, work: Callable[[], Any]) -> Job:
        return Job(self._kernel, self._host, work)

    def puppet(self) -> Marionette:
        return Marionette(self, self._kernel)

    def keep_end_txn(self, client_id: str, *, breaks: bool) -> Copy:
        copy = Copy(self._cluster, self._kernel, client_id, breaks=breaks)
        self._network.meddlers.append(copy.meddle)
        return copy

    def break_connections(self) -> None:
        self._network.broke(self._host, 1)

    def delete_group(self, group: str) -> None:
        assert self._cluster.delete_group(group) == 0

    def delete_before(self, topic: str, offset: int) -> None:
        self._cluster.delete_before((topic, 0), offset)

    def stop_broker(self) -> None:
        self._cluster.kill(1)

    def start_broker(self) -> None:
        self._cluster.start(1)
        self.until(lambda: True if self._cluster.up(1) else None, "the broker's start")
