"""What the pages of the contract say in prose, beside what comes from the schemas and the catalogue."""

from __future__ import annotations

from typing import Final

Rows = list[tuple[str, ...]]

KEYS: Final[dict[str, tuple[str, str]]] = {
    "Job": ("jobs", "job id"),
    "JobVersion": ("job-versions", "`job#version`"),
    "Run": ("runs", "`job@time`, manual `job@!command`"),
    "Summary": ("runs", "`job@first~last`"),
    "Barrier": ("runs, job-versions, rejected", "`!barrier`"),
    "Positions": ("runs", "`!positions`"),
    "Fence": ("runs", "`!fence/incarnation`"),
    "Dispatch": ("dispatch.QUEUE", "run id"),
    "Signal": ("signals", "run id"),
    "AttemptEvent": ("attempts", "run id"),
    "Step": ("steps", "`run/name`"),
    "Heartbeat": ("workers", "incarnation"),
    "Command": ("control", "any"),
    "Rejected": ("rejected", "that of the refused record"),
}

JOB_FIELDS: Final[Rows] = [
    ("`id`", "1 to 128 characters of A-Z a-z 0-9 . _ -; the record's key too", "required"),
    ("`schedule`", "a cron expression as text, a mapping, or a list of mappings; at most 64 KiB", "required"),
    ("`handler`", "name under which workers registered the code; characters as in `id`", "required"),
    ("`queue`", "queue whose workers run it; characters as in `id`", '`"default"`'),
    ("`payload`", "any JSON value for the handler, at most 256 KiB, 64 levels deep", "`null`"),
    ("`description`", "text for people, at most 4,096 characters", '`""`'),
    ("`misfire`", "due times found late: `latest`, `all` or `skip`", '`"latest"`'),
    ("`misfire_grace`", "duration after which a due time is late", '`"60s"`'),
    ("`catch_up_window`", "duration; late due times older than this are skipped", '`"1d"`'),
    ("`catch_up_max`", "1 to 100000; with `misfire: all`, how many late due times run, the latest ones", "`1000`"),
    ("`catch_up_every`", "duration; with `misfire: all`, the least time between the starts of two late runs", '`"0s"`'),
    ("`overlap`", "due time while the earlier run is not finished: `skip` or `allow`", '`"skip"`'),
    ("`max_concurrent`", "runs of the job at one time, 0: no limit", "`0`"),
    ("`retry`", "mapping of `max` (0 to 1000), `backoff`, `factor` (1 to 100), `max_backoff`", "3, 10s, 2.0, 10m"),
    ("`timeout`", "duration of one attempt, 0: no limit", '`"1h"`'),
    ("`dispatch_ahead`", "a run may be offered this long before its due time, 0 to 60s", '`"10s"`'),
    ("`max_worker_losses`", "attempts that may be lost with their worker, 0: never run again", "`5`"),
]

COMMAND_FIELDS: Final[Rows] = [
    ("`trigger`", "`job`", "`payload`: any JSON value instead of the job's"),
    ("`pause`", "`job`", ""),
    ("`resume`", "`job`", ""),
    ("`delete`", "`job`", "`version`: refused unless this one holds"),
    ("`cancel`", "`run`", "`job`"),
    ("`accept-positions`", "`topic`", ""),
]

CONTRACT: Final = """\
# The contract
<!-- made by `python -m dueline.schemas.document docs`; a test keeps it current -->

What a program in any language needs to know to define jobs, send commands, read the ledger or work for a queue.
Fields of every record: [records.md](records.md). Schemas: `schemas/*.avsc`, each complete in itself.

## Topics
Every name starts with the namespace and a dot, `dueline.` unless configured. All topics have
`message.timestamp.type=LogAppendTime`. Read with `isolation.level=read_committed`.

{topics}
A worker's *home partition* of `signals`, `attempts` and `steps` is CRC-32 of its worker id (utf-8) modulo their number
of partitions, which is the same in all three. Consumer groups: `dueline.schedulers` (on `control`, the election) and
`dueline.workers.QUEUE` (on `dispatch.QUEUE`). Transactional ids: `dueline.leader.a`, `dueline.leader.b`; of a worker's
incarnation `dueline.worker.INCARNATION.claim`, `.a` and `.b`.

## Encoding
Values are Avro single-object encoding: the bytes `C3 01`, the schema's CRC-64-AVRO fingerprint in little-endian order,
then the Avro body. The fingerprint is that of the parsing canonical form, so documentation and defaults do not change
it. A reader looks the first ten bytes up among the schemas that it knows:

{fingerprints}
Rules: a field that is added has a default; none changes its type; earlier schemas stay known as `TYPE.RELEASE.avsc`.
Instants are milliseconds since 1970 in UTC, durations are milliseconds, and -1 stands for "none". Enumerations are
strings: a reader must expect a value that it does not know. In a compacted topic the last record of a key holds, and a
record without value deletes the key; of two leaders' records for one key the one with the lower term does not count.

A barrier in `rejected` says nothing, and only ends what a broker forgot to end ([kafka](kafka.md)): pass over it. A
record without value under the key `{forgotten}` in `attempts` or `steps` says nothing either: pass over it.

Headers: `type` (the names above) on every record; on what the leader writes `term`, and where they apply `state` and
`queue`, all as text. A reader can skip by them without decoding.

## Jobs, as JSON
A value on `jobs` that does not start with `C3` is read as JSON. A record without value deletes the job. Unknown fields,
a key given twice, NaN and numbers beyond a double are refused; so is what a field does not allow. A refused record goes
to `rejected` with its coordinates and the reason, and whatever held before goes on. While `rejected` cannot be written
in the leader's transactions, such a letter follows by itself, for ten minutes, and may then stand behind letters of
later terms; if its process ends first, only its log has it. After a broker has forgotten to end a transaction, a letter
may stand twice, with the same coordinates.

{jobs}
Durations: `90s`, `5m`, `1h30m`, units w d h m s ms, longest first; or ISO-8601 without years and months (`PT1H30M`).
A number without unit is refused, except 0. None is longer than ten years. Without `max_backoff`, a longer `backoff`
is its own limit.

```
echo 'menu {{"id": "menu", "schedule": "0 6 * * *", "handler": "menu"}}' | kcat -P -b BROKER -t dueline.jobs -K ' '
```

## Commands, as JSON
A value on `control`: `id` (unique; characters as in a job's id; a repeated send is harmless), `kind`, what that needs,
and `by` and `reason` for people.

{commands}
```
echo '{{"id": "c-1", "kind": "trigger", "job": "menu", "by": "ann"}}' | kcat -P -b BROKER -t dueline.control
```
"""

RECORDS_HEAD: Final = """\
# Records
<!-- made by `python -m dueline.schemas.document docs`; a test keeps it current -->

The fields of every record, in the order of their encoding. How they are encoded and where they stand:
[contract.md](contract.md).

"""
