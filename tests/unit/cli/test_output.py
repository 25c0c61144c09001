"""What a terminal gets: ids that can be copied however narrow it is, and text that cannot act on it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from dueline.scheduler.cli.output import Output

RUN = "a-job-with-a-rather-long-name@2026-11-30T06:00:00Z"
ROWS = [[RUN, "failed", "a reason of some length that can be broken", "w1"], ["b@!x", "succeeded", "", "a-worker"]]
COLUMNS = ["run", "state", "reason", "worker"]


def printed(width: int) -> str:
    """A table on a terminal so wide."""
    stream = io.StringIO()
    Output(data=Console(file=stream, width=width)).table(COLUMNS, ROWS, empty="")
    return stream.getvalue()


@pytest.mark.parametrize("width", [20, 50, 60, 80, 200])
def test_an_id_is_never_broken(width: int) -> None:
    """Given any width, then each run id stands whole in one line, and the rest of its row is there too."""
    text = printed(width)
    assert sum(RUN in line for line in text.splitlines()) == 1
    assert "".join(text.split()).count("a-worker"[:6]) == 1
    assert "…" not in text


def test_what_fits_stays_within_the_terminal() -> None:
    """Given a terminal with room for the ids, then no line is longer."""
    assert max(map(len, printed(100).splitlines())) <= 100


@pytest.mark.parametrize("text", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\r", "\x00", "\x7f", "\x08"])
def test_control_characters_are_shown_not_acted_on(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Given text of a handler with control characters, then each is written out wherever it is printed."""
    output = Output()
    output.block(f"Traceback\n\t{text}done")
    output.line(f"l{text}")
    output.note(f"n{text}")
    output.facts([("result", f"f{text}")])
    output.table(["run", "error"], [[f"r{text}", f"e{text}"]], empty="")
    streams = capsys.readouterr()
    everything = streams.out + streams.err
    assert {char for char in everything if not char.isprintable()} <= {"\n", "\t"}
    assert everything.count(f"\\x{ord(text[0]):02x}") >= 6
