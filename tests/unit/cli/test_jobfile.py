"""Job files: what is accepted, and that every fault is found on its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dueline.scheduler.cli.jobfile import FileFault, FileRefused, read_jobs
from dueline.schemas.job import Job, Misfire

ROOT = Path(__file__).resolve().parents[3]

MENU = {"id": "menu", "schedule": "0 6 * * *", "handler": "menu"}


def faults(text: str) -> list[FileFault]:
    with pytest.raises(FileRefused) as refused:
        read_jobs(text)
    return refused.value.faults


def ids(text: str) -> list[str]:
    return [read.job.id for read in read_jobs(text)]


def job(text: str) -> Job:
    (read,) = read_jobs(text)
    return read.job


@pytest.mark.parametrize(
    "text",
    [
        "id: menu\nschedule: 0 6 * * *\nhandler: menu\n",
        "- {id: menu, schedule: 0 6 * * *, handler: menu}\n",
        "jobs:\n  - id: menu\n    schedule: 0 6 * * *\n    handler: menu\n",
        "---\n---\nid: menu\nschedule: 0 6 * * *\nhandler: menu\n",
        json.dumps(MENU),
        json.dumps([MENU]),
        json.dumps({"jobs": [MENU]}, indent="\t"),
    ],
    ids=["mapping", "list", "jobs", "documents", "json", "json list", "json with tabs"],
)
def test_every_shape_of_file_gives_the_same_job(text: str) -> None:
    assert job(text) == job(json.dumps(MENU))


def test_several_documents_are_one_file() -> None:
    text = "id: a\nschedule: 0 6 * * *\nhandler: h\n---\n- {id: b, schedule: 0 7 * * *, handler: h}\n"
    assert ids(text) == ["a", "b"]


def test_the_example_is_accepted_and_shows_defaults_as_they_are() -> None:
    jobs = {read.job.id: read.job for read in read_jobs((ROOT / "examples/jobs.yaml").read_text())}
    assert list(jobs) == ["menu", "report", "fridge", "opening-speech", "dishwasher"]
    full = jobs["report"]
    least = Job(id="report", handler="report", schedule=full.schedule, payload=full.payload, description=full.description)
    assert full == least


def test_yaml_keeps_what_people_mean() -> None:
    payload = "{country: NO, on: off, time: 12:30, day: 2026-11-30, octal: 017, yes: true, none: null, x: 1.5}"
    read = job(f"id: a\nschedule: 0 6 * * *\nhandler: h\npayload: {payload}\n")
    assert json.loads(read.payload) == {
        "country": "NO", "on": "off", "time": "12:30", "day": "2026-11-30", "octal": 17, "yes": True, "none": None, "x": 1.5,
    }  # fmt: skip


def test_json_keeps_characters_beyond_the_first_plane() -> None:
    text = '{"id": "a", "schedule": "0 6 * * *", "handler": "h", "payload": "\\ud83d\\ude00 \\/"}'
    assert json.loads(job(text).payload) == "😀 /"


def test_each_fault_of_each_job_has_its_line() -> None:
    text = (
        "jobs:\n"
        "  - id: menu\n"
        "    schedule: 0 6 * * *\n"
        "    handlr: menu\n"
        "    misfire: lattest\n"
        "  - id: other\n"
        "    schedule: 61 * * * *\n"
        "    handler: h\n"
        "  - id: third\n"
        "    schedule: 0 6 * * *\n"
        "    handler: h\n"
        "    retry:\n"
        "      max: 3\n"
        "      backof: 1s\n"
    )
    found = {(fault.line, fault.where): fault.message for fault in faults(text)}
    assert "did you mean 'handler'" in found[4, "job menu: handlr"]
    assert "latest, all, skip" in found[5, "job menu: misfire"] and "did you mean 'latest'" in found[5, "job menu: misfire"]
    assert "is missing" in found[2, "job menu: handler"]
    assert "61" in found[7, "job other: schedule"] and "^" in found[7, "job other: schedule"]
    assert "did you mean 'backoff'" in found[14, "job third: retry.backof"]
    assert len(found) == 5


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("id: a\nid: b\nschedule: 0 6 * * *\nhandler: h\n", 2, "'id' stands twice"),
        ("id: a\n  schedule: [\n", 2, "not YAML"),
        ("{\n'id': 'a',\n", 3, "not YAML"),
        ("id: !!python/object:os.system a\n", 1, "tags"),
        ("a: &a {x: 1}\n<<: *a\n", 2, "merge keys"),
        ("? [a, b]\n: 1\n", 1, "key must be text"),
        ("just text\n", 1, "must be a mapping"),
        ("jobs: 3\n", 1, "must be a list"),
        ("jobs: []\n", 1, "no job in it"),
        ("", 1, "no job in it"),
        ("# nothing\n", 1, "no job in it"),
        ("version: 2\njobs:\n  - {id: a, schedule: 0 6 * * *, handler: h}\n", 1, "unknown field 'version'"),
        ("\x00", 1, "not YAML"),
    ],
)
def test_text_that_is_no_job_file_is_refused_with_its_line(text: str, line: int, part: str) -> None:
    found = faults(text)
    assert [fault for fault in found if fault.line == line and part in fault.message], found


def test_an_id_twice_in_a_file_is_refused() -> None:
    one = "- {id: a, schedule: 0 6 * * *, handler: h}\n"
    (fault,) = faults(one + one)
    assert (fault.line, fault.where) == (2, "job a") and "line 1" in fault.message


def test_aliases_unfold_within_a_budget() -> None:
    bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n" + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    (fault,) = faults(bomb)
    assert "aliases" in fault.message


def test_nesting_has_a_bound() -> None:
    assert any("nested" in fault.message for fault in faults("a: " + "[" * 200 + "]" * 200))
    assert any("nested" in fault.message for fault in faults('{"a": ' + "[" * 5_000 + "]" * 5_000 + "}"))


def test_a_fault_reads_as_compilers_write_it() -> None:
    assert FileFault(line=3, where="job a: retry.max", message="is -1").show("jobs.yaml") == (
        "jobs.yaml:3: job a: retry.max: is -1"
    )


def test_schedules_come_compiled() -> None:
    (read,) = read_jobs(json.dumps(MENU))
    assert read.schedule.next_after(1_796_000_400_000) == 1_796_018_400_000
    assert read.job.misfire == Misfire.LATEST
