"""One term's inputs: commands, definitions, attempt events, heartbeats, fences. Reads, decodes, and knows how far it is."""

from __future__ import annotations

import logging
from collections.abc import Callable

from dueline.scheduler.core.inputs import Inputs, Read
from dueline.scheduler.core.ports import (
    EARLIEST,
    Fencer,
    FenceResult,
    GroupReader,
    Kafka,
    LogReader,
    Partition,
    Received,
    Unavailable,
)
from dueline.scheduler.core.state import State
from dueline.scheduler.leader.decoding import read_command, read_event, read_heartbeat, read_job
from dueline.scheduler.leader.jobs_reader import JobsReader
from dueline.scheduler.leader.positions import InputPositions
from dueline.scheduler.leader.queues import Queues
from dueline.scheduler.leader.roster import Roster
from dueline.schemas.base import NONE
from dueline.schemas.command import Command, CommandKind
from dueline.schemas.job import Job
from dueline.schemas.ledger import Position
from dueline.schemas.topics import Namespace
from dueline.schemas.work import AttemptEvent, EventKind, Heartbeat, Outcome

log = logging.getLogger(__name__)

COMMANDS_LIMIT = 1_000
JOBS_LIMIT = 1_000
UNKNOWN_END = 2**63 - 1


class Intake:
    """Everything one leader reads during its term."""

    def __init__(
        self,
        kafka: Kafka,
        namespace: Namespace,
        *,
        election: GroupReader,
        jobs: JobsReader,
        reader: LogReader,
        beats: LogReader,
        roster: Roster,
        fencer: Fencer,
        queues: Queues,
        state: State,
    ) -> None:
        """Take every input up where the ledger says. Raises Unavailable.

        `reader` reads events. Heartbeats have a reader of their own, `beats`: a backlog of events must not hide them, else
        living workers would be fenced.
        """
        self._admin = kafka.admin()
        self._namespace = namespace
        self._election, self._jobs, self._reader, self._beats = election, jobs, reader, beats
        self._roster, self._fencer, self._queues = roster, fencer, queues
        self._control: Partition = (namespace.control, 0)
        self._jobs_partition: Partition = (namespace.jobs, 0)
        homes = self._admin.partitions(namespace.attempts)
        self._attempts = [(namespace.attempts, number) for number in range(homes)]
        inputs = [self._control, self._jobs_partition, *self._attempts]
        self.positions = InputPositions(self._admin, inputs, state)
        self._ends = {partition: self._admin.end_offset(partition) for partition in inputs}
        self._workers: Partition = (namespace.workers, 0)
        self._workers_end = self._admin.end_offset(self._workers)
        self._beats.assign({self._workers: EARLIEST})
        self._caught_up = False
        self._whole_read_failed = False
        self._jobs_end = (UNKNOWN_END, NONE)
        self._fenced: list[FenceResult] = []
        self._absent: list[str] = []
        self._begin()

    def _begin(self) -> None:
        """Point every reader at its position; an alarmed input is left alone."""
        starts = {p: self.positions.offset(p) for p in self._attempts if not self.positions.alarmed(p[0])}
        self._reader.assign(starts)
        self._election.seek(self._control, self._control_start())
        if not self.positions.alarmed(self._namespace.jobs):
            self._jobs.start(self.positions.offset(self._jobs_partition))
            if self._jobs.position() > self.positions.offset(self._jobs_partition):
                self._jobs.restart(self.positions.offset(self._jobs_partition))
            self._jobs.drop_below(self.positions.offset(self._jobs_partition))

    def _control_start(self) -> int:
        """An alarmed `control` is searched, from its beginning, for the command that accepts it and for nothing else."""
        if self.positions.alarmed(self._namespace.control):
            return self._admin.start_offset(self._control)
        return self.positions.offset(self._control)

    def find_absent_jobs(self, state: State, timeout_s: float) -> None:
        """Read `jobs` whole: live jobs of which nothing is there were deleted (L12). If that takes too long, somebody's open
        transaction may stand in `jobs`: everything else goes on, and the next term asks again, since this one never says
        that `jobs` was read to its end."""
        if self.positions.alarmed(self._namespace.jobs):
            return
        try:
            present = self._jobs.read_whole(self._admin, self.positions.offset(self._jobs_partition), timeout_s)
        except Unavailable as error:
            self._whole_read_failed = True
            log.warning("jobs deleted long ago are not looked for in this term: %s", error, extra={"action": "whole_read_failed"})
            return
        self._absent = sorted(job_id for job_id, job in state.jobs.items() if job.live and job_id not in present)

    def control_offset(self) -> int:
        """The offset of `control` that the next transaction commits for the fence: never negative (L2)."""
        return max(self.positions.offset(self._control), 0)

    def read(self, wait_s: float, limit: int, now: Callable[[], int], state: State) -> Inputs:
        """What came since the last round, after waiting up to `wait_s` for something."""
        received = self._reader.poll(wait_s, limit)
        heartbeats = self._hear(self._beats.poll(0.0, limit), now())
        self._jobs.poll()
        _, commands = self._election.poll(0.0, COMMANDS_LIMIT)
        events = [read_event(record) for record in received]
        read_to = self._beats.position(self._workers)
        self._roster.read_to(read_to)
        if read_to >= self._workers_end:
            self._roster.catch_up()
        self._fenced += self._fencer.results()
        jobs = self._take_jobs()
        return Inputs(
            jobs=jobs,
            commands=self._take_commands(commands),
            events=events,
            heartbeats=heartbeats,
            absent_jobs=self._absent,
            jobs_topic=self._namespace.jobs,
            steps_ends=self._steps_ends(events),
            fenced=[result for result in self._fenced if self._read_out(result, state)],
            dead=self._roster.dead(state),
            fleet=self._roster.fleet(self._queues.known(jobs, heartbeats)),
            positions=self._advance(),
        )

    def caught_up(self) -> bool:
        """Whether everything that stood in the inputs when the term began has been decided on: a pause or a claim among it
        may change what time alone would do."""
        if not self._caught_up:
            self._caught_up = all(
                self.positions.offset(partition) >= end or self.positions.alarmed(partition[0])
                for partition, end in self._ends.items()
            )
        return self._caught_up

    def committed(self, inputs: Inputs, state: State) -> None:
        """The round's decisions stand: what only the shell remembers is done with. A fence that is still only intended
        waits for a job that was set aside."""
        self._absent = [job for job in self._absent if job not in inputs.absent_jobs or _lives(state, job)]
        undone = {result.incarnation for result in inputs.fenced if (result.incarnation,) in state.fencing}
        self._fenced = [each for each in self._fenced if each not in inputs.fenced or each.incarnation in undone]

    def read_jobs_ms(self, now: int) -> int:
        """The last leader time at which `jobs` was asked for its end, if that is read by now; else NONE. Asks once more:
        an answer that was too new when it came counts the next time, so that a topic that never rests counts, too. Raises
        Unavailable."""
        if self._whole_read_failed or self.positions.alarmed(self._namespace.jobs):
            return NONE
        last, self._jobs_end = self._jobs_end, (self._admin.end_offset(self._jobs_partition), now)
        read_to = self._jobs.position()
        return max([asked_ms for end, asked_ms in (last, self._jobs_end) if read_to >= end], default=NONE)

    # -- parts -----------------------------------------------------------------------------------------------------------

    def _hear(self, received: list[Received], now: int) -> list[Heartbeat]:
        """The last heartbeat of each incarnation among these."""
        latest: dict[str, Heartbeat] = {}
        for record in received:
            heartbeat = read_heartbeat(record)
            if heartbeat is not None and not 0 <= heartbeat.home < len(self._attempts):
                continue  # it names a home that does not exist: nothing could be said to it
            if heartbeat is None:
                self._roster.forget((record.key or b"").decode(errors="replace"))
                continue
            self._roster.hear(heartbeat, now - record.append_ms)
            latest[heartbeat.incarnation] = heartbeat
        return list(latest.values())

    def _take_jobs(self) -> list[Read[Job]]:
        if self.positions.alarmed(self._namespace.jobs):
            return []
        taken = [read_job(record) for record in self._jobs.take(JOBS_LIMIT)]
        return [read for read in taken if read.offset >= self.positions.offset(self._jobs_partition)]

    def _steps_ends(self, events: list[Read[AttemptEvent]]) -> dict[int, int]:
        """Ends of `steps` for the homes of attempts that may be resumed, taken after their events were read."""
        homes = {
            read.value.home
            for read in events
            if read.value is not None and read.value.kind == EventKind.FINISHED and read.value.outcome != Outcome.SUCCESS
        }
        return {home: self._admin.end_offset((self._namespace.steps, home)) for home in homes}

    def _read_out(self, result: FenceResult, state: State) -> bool:
        """Whether the fenced worker's home of `attempts` was read up to its end after the fence."""
        fence = state.fences.get(result.incarnation)
        return fence is not None and self._position((self._namespace.attempts, fence.home)) >= result.attempts_end

    def _take_commands(self, received: list[Received]) -> list[Read[Command]]:
        commands: list[Read[Command]] = []
        alarmed = self.positions.alarmed(self._namespace.control)
        for record in received:
            read = read_command(record)
            if read.value is not None and read.value.kind == CommandKind.ACCEPT_POSITIONS:
                self._accept(read.value.topic)
            if not alarmed and record.offset >= self.positions.offset(self._control):
                commands.append(read)
                self.positions.advance(self._control, record.offset + 1)
        return commands

    def _accept(self, topic: str) -> None:
        if self.positions.alarmed(topic):
            self.positions.accept(topic)
            self._begin()

    def _advance(self) -> list[Position]:
        """Positions once this round is decided. The commands' stands where the last one taken was."""
        for partition in self._attempts:
            self.positions.advance(partition, self._reader.position(partition))
        self.positions.advance(self._jobs_partition, self._jobs.position())
        return self.positions.vector()

    def _position(self, partition: Partition) -> int:
        return self._reader.position(partition)


def _lives(state: State, job_id: str) -> bool:
    job = state.jobs.get(job_id)
    return job is not None and job.live
