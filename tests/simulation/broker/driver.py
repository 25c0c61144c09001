"""Sends requests to a simulated cluster without clients or a network, and lets virtual time pass."""

from __future__ import annotations

from typing import Any, TypeVar

from proof.simulation.broker.cluster import Cluster
from proof.simulation.broker.settings import Settings
from proof.simulation.kernel import Kernel
from proof.simulation.protocol import (
    AddOffsets,
    AddPartitions,
    Answer,
    DescribeGroup,
    EndTxn,
    Fetch,
    FetchAnswer,
    GroupHeartbeat,
    InitProducerId,
    JoinAnswer,
    JoinGroup,
    LeaveGroup,
    ListOffset,
    NewRecord,
    OffsetAnswer,
    OffsetFetch,
    OffsetsAnswer,
    Partition,
    Produce,
    ProduceAnswer,
    ProducerIdAnswer,
    Request,
    SyncAnswer,
    SyncGroup,
    TxnOffsetCommit,
)

A = TypeVar("A", bound=Answer)
P0: Partition = ("t", 0)
P1: Partition = ("t", 1)
MARKED_S = 0.05
"""More than any marker takes."""


class Asked:
    """A request under way."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def answered(self) -> bool:
        return bool(self.answers)


class Driver:
    """A cluster with the topic "t" of two partitions."""

    def __init__(self, nodes: int = 1, seed: int = 1, **own: Any) -> None:
        self.kernel = Kernel(seed)
        small = {"min_session_s": 1.0, "offsets_partitions": 3, "transaction_partitions": 3, "min_insync": min(2, nodes)}
        self.cluster = Cluster(self.kernel, nodes, Settings(**{**small, **own}))
        self.cluster.create_topic("t", 2)

    def wait(self, seconds: float = MARKED_S) -> None:
        self.kernel.run(self.kernel.now_s + seconds)

    def send(self, request: Request, node: int = 0) -> Asked:
        asked = Asked()
        self.cluster.handle(node or self.node_for(request), request, asked.answers.append)
        return asked

    def ask(self, request: Request, kind: type[A], node: int = 0, within_s: float = 0.1) -> A:
        """The answer; asked of whoever is responsible."""
        asked = self.send(request, node)
        until_s = self.kernel.now_s + within_s
        while not asked.answered() and self.kernel.now_s < until_s:
            self.wait(0.001)
        [answer] = asked.answers
        assert isinstance(answer, kind)
        return answer

    def node_for(self, request: Request) -> int:
        match request:
            case InitProducerId() | AddPartitions() | AddOffsets() | EndTxn():
                return self.cluster.coordinator(request.transactional_id, transactional=True)
            case Produce() | Fetch() | ListOffset():
                return self.cluster.leader(request.partition)
            case JoinGroup() | SyncGroup() | GroupHeartbeat() | LeaveGroup() | TxnOffsetCommit() | OffsetFetch():
                return self.cluster.coordinator(request.group, transactional=False)
            case DescribeGroup():
                return self.cluster.coordinator(request.group, transactional=False)
        return min(number for number in self.cluster.nodes if self.cluster.up(number))

    def read(self, partition: Partition = P0, offset: int = 0, *, committed: bool = True, wait_s: float = 0.0) -> FetchAnswer:
        request = Fetch(partition=partition, offset=offset, committed_only=committed, max_wait_s=wait_s)
        return self.ask(request, FetchAnswer, within_s=wait_s + 0.1)

    def values(self, partition: Partition = P0, *, committed: bool = True) -> list[str]:
        return [(record.value or b"-").decode() for record in self.read(partition, committed=committed).records]

    def end(self, partition: Partition = P0, *, committed: bool = False) -> int:
        return self.ask(ListOffset(partition=partition, spec=-1, committed_only=committed), OffsetAnswer).offset

    def put(self, *values: str, partition: Partition = P0) -> int:
        """Plain records; the first offset."""
        records = tuple(NewRecord(key=value[:1].encode(), value=value.encode()) for value in values)
        request = Produce(partition=partition, records=records, pid=-1, epoch=-1, sequence=-1, transactional=False)
        answer = self.ask(request, ProduceAnswer)
        assert answer.code == 0
        return answer.offset

    def writer(self, transactional_id: str = "id", timeout_s: float = 60.0) -> Writer:
        return Writer(self, transactional_id, timeout_s)

    def member(self, group: str = "g", session_s: float = 1.0, rebalance_s: float = 5.0) -> Member:
        return Member(self, group, session_s, rebalance_s)

    def committed(self, group: str = "g", partition: Partition = P0) -> int | None:
        answer = self.ask(OffsetFetch(group=group, partitions=(partition,)), OffsetsAnswer)
        assert answer.code == 0
        return answer.offsets.get(partition)


class Writer:
    """A transactional producer, as thin as can be. Methods answer codes."""

    def __init__(self, driver: Driver, transactional_id: str, timeout_s: float) -> None:
        self.driver, self.id = driver, transactional_id
        request = InitProducerId(transactional_id=transactional_id, timeout_s=timeout_s)
        answer = driver.ask(request, ProducerIdAnswer)
        while answer.code == 51:
            driver.wait(0.02)
            answer = driver.ask(request, ProducerIdAnswer)
        assert answer.code == 0
        self.pid, self.epoch = answer.pid, answer.epoch
        self.sequences: dict[Partition, int] = {}

    def add(self, *partitions: Partition) -> int:
        request = AddPartitions(transactional_id=self.id, pid=self.pid, epoch=self.epoch, partitions=partitions or (P0,))
        return self.driver.ask(request, Answer).code

    def batch(self, *values: str, partition: Partition = P0, sequence: int | None = None) -> Produce:
        if sequence is None:
            sequence = self.sequences.get(partition, 0)
            self.sequences[partition] = sequence + len(values)
        records = tuple(NewRecord(key=value[:1].encode(), value=value.encode()) for value in values)
        return Produce(
            partition=partition, records=records, pid=self.pid, epoch=self.epoch, sequence=sequence, transactional=True
        )

    def put(self, *values: str, partition: Partition = P0) -> int:
        return self.driver.ask(self.batch(*values, partition=partition), ProduceAnswer).code

    def add_offsets(self, group: str = "g") -> int:
        return self.driver.ask(AddOffsets(transactional_id=self.id, pid=self.pid, epoch=self.epoch, group=group), Answer).code

    def offsets(self, offset: int, generation: int = -1, member: str = "", group: str = "g", partition: Partition = P0) -> int:
        request = TxnOffsetCommit(
            transactional_id=self.id,
            pid=self.pid,
            epoch=self.epoch,
            group=group,
            generation=generation,
            member=member,
            offsets={partition: offset},
        )
        return self.driver.ask(request, Answer).code

    def ending(self, commit: bool = True) -> EndTxn:
        return EndTxn(transactional_id=self.id, pid=self.pid, epoch=self.epoch, commit=commit)

    def end(self, commit: bool = True) -> int:
        """The code; the markers are written when it returns."""
        code = self.driver.ask(self.ending(commit), Answer).code
        self.driver.wait()
        return code

    def write(self, *values: str, commit: bool = True) -> None:
        """A whole transaction."""
        assert self.add() == 0
        assert self.put(*values) == 0
        assert self.end(commit) == 0


class Member:
    """A member of a group, moved by hand."""

    def __init__(self, driver: Driver, group: str, session_s: float, rebalance_s: float) -> None:
        self.driver, self.group, self.session_s, self.rebalance_s = driver, group, session_s, rebalance_s
        self.name, self.generation = "", -1
        self.owned: frozenset[Partition] = frozenset()
        self.leads = False
        self._joining = Asked()

    def knock(self) -> None:
        """Get an id, which rebalances wait for from now on."""
        answer = self.driver.ask(self._request(), JoinAnswer)
        assert answer.code == 79
        self.name = answer.member

    def join(self) -> None:
        """Ask; `joined` collects the answer."""
        if not self.name:
            self.knock()
        self._joining = self.driver.send(self._request())

    def joined(self) -> int:
        """The code; -1 without an answer."""
        if not self._joining.answered():
            return -1
        [answer] = self._joining.answers
        assert isinstance(answer, JoinAnswer)
        if answer.code == 0:
            self.generation, self.leads = answer.generation, answer.leader
        return answer.code

    def syncing(self) -> Asked:
        return self.driver.send(SyncGroup(group=self.group, member=self.name, generation=self.generation))

    def beat(self) -> int:
        return self.driver.ask(GroupHeartbeat(group=self.group, member=self.name, generation=self.generation), Answer).code

    def leave(self) -> int:
        return self.driver.ask(LeaveGroup(group=self.group, member=self.name), Answer).code

    def _request(self) -> JoinGroup:
        return JoinGroup(
            client="c",
            group=self.group,
            member=self.name,
            topics=("t",),
            owned=self.owned,
            session_timeout_s=self.session_s,
            rebalance_timeout_s=self.rebalance_s,
            generation=self.generation,
        )


def join(*members: Member) -> None:
    """All of them into one generation."""
    for member in members:
        if not member.name:
            member.knock()
    for member in members:
        member.join()


def settle(*members: Member) -> None:
    """Everyone joins, syncs, and goes on until nobody has to give anything up."""
    driver = members[0].driver
    while True:
        join(*members)
        driver.wait(0.01)
        assert [member.joined() for member in members] == [0] * len(members)
        asked = [member.syncing() for member in members]
        driver.wait(0.01)
        again = False
        for member, one in zip(members, asked, strict=True):
            [answer] = one.answers
            assert isinstance(answer, SyncAnswer)
            assert answer.code == 0
            again = again or bool(member.owned - answer.partitions)
            member.owned = answer.partitions
        if not again:
            return
