"""What the timeline's picture shows, and where."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from dueline.schemas.run import RunState
from proof.report.picture import picture
from proof.report.strip import GUTTER, LANES, LEAST, PLOT, WIDTH, Strip, drawn, lanes, placed, strips, thinned
from proof.report.timeline import MAX_ROWS, OPEN, SUMMED, Bar, timeline
from tests.unit.proof.report.worlds import BEGAN, fault, history, huge, run, small, verdict, violation

STRIP = Strip(from_ms=BEGAN, to_ms=BEGAN + 10_000)


def test_runs_terms_and_gaps_are_read_from_the_log() -> None:
    told, found = small()
    line = timeline(told, found)
    assert line.rows == ("hand", "old", "tick")
    assert {(line.rows[bar.row], bar.state, bar.from_ms - BEGAN, bar.to_ms - BEGAN) for bar in line.bars} == {
        ("tick", "succeeded", 1_000, 1_200),
        ("tick", OPEN, 4_000, 60_000),
        ("hand", "failed", 9_000, 9_500),
        ("old", SUMMED, 0, 3_000),
    }
    assert [(term.term, term.process, term.from_ms - BEGAN, term.to_ms - BEGAN) for term in line.terms] == [
        (0, "one:1", 10, 4_000), (3, "two:2", 5_300, 60_000),
    ]  # fmt: skip
    assert line.gaps == ((BEGAN + 4_000, BEGAN + 5_300),)
    assert line.unread == 1


def test_a_violation_is_marked_at_its_job_and_time_though_the_job_has_no_run() -> None:
    found = (violation(subject="ghost@2026-11-30T06:00:05.250Z"), violation(subject="offset 12"))
    line = timeline(history(), verdict(violations=found))
    [mark] = line.marks
    assert (line.rows[mark.row], mark.at_ms - BEGAN) == ("ghost", 5_250 + (1_796_018_400_000 - BEGAN))
    assert "no record" in mark.what


def test_jobs_beyond_the_rows_share_the_last_one() -> None:
    records = [(BEGAN + n, run(f"job-{n % 100:03d}", BEGAN + n * 1000, RunState.SUCCEEDED)) for n in range(150)]
    line = timeline(history(records), verdict())
    assert len(line.rows) == MAX_ROWS
    assert line.rows[-1] == f"{100 - (MAX_ROWS - 1)} other jobs"
    assert len(line.bars) == 150
    counts = Counter(bar.row for bar in line.bars)
    assert set(counts) == set(range(MAX_ROWS))


# --- geometry -----------------------------------------------------------------------------------------------------------


def test_times_stand_in_proportion() -> None:
    assert STRIP.x(BEGAN) == GUTTER
    assert STRIP.x(BEGAN + 5_000) == GUTTER + PLOT / 2
    assert STRIP.x(BEGAN + 10_000) == WIDTH
    assert STRIP.span(BEGAN + 2_000, BEGAN + 4_000) == (GUTTER + PLOT * 0.2, PLOT * 0.2)
    assert STRIP.span(BEGAN - 5_000, BEGAN + 1_000) == (GUTTER, PLOT * 0.1)
    assert STRIP.span(BEGAN + 3_000, BEGAN + 3_000) == (GUTTER + PLOT * 0.3, LEAST)
    assert STRIP.span(BEGAN - 5_000, BEGAN) is None
    assert STRIP.span(BEGAN + 10_000, BEGAN + 11_000) is None


@settings(deadline=None)
@given(st.integers(-20_000, 30_000), st.integers(0, 30_000))
def test_what_is_drawn_stays_in_the_plot(start: int, length: int) -> None:
    span = STRIP.span(BEGAN + start, BEGAN + start + length)
    assert (span is None) == (start >= 10_000 or start + length < 0 or (start < 0 and start + length == 0))
    if span is not None:
        x, width = span
        assert x >= GUTTER
        assert width >= LEAST
        assert x + width <= WIDTH + 1e-6


@settings(deadline=None)
@given(st.integers(1, 40 * 86_400_000), st.integers(1, 12))
def test_strips_cover_the_whole_without_a_gap(span_ms: int, at_most: int) -> None:
    line = timeline(history(judged_ms=BEGAN + span_ms), verdict())
    cut = strips(line, at_most)
    assert 1 <= len(cut) <= at_most
    assert cut[0].from_ms == line.began_ms
    assert cut[-1].to_ms >= line.ended_ms
    assert all(one.to_ms == other.from_ms for one, other in pairwise(cut))
    assert all(len(strip.marks_ms) <= 12 for strip in cut)


def test_every_run_is_drawn_or_counted_as_left_out() -> None:
    bars = [Bar(row=0, state="succeeded", from_ms=BEGAN + n, to_ms=BEGAN + n + 1) for n in range(1_000)]
    bars.append(Bar(row=0, state="failed", from_ms=BEGAN + 5, to_ms=BEGAN + 6))
    made = drawn(placed(STRIP, bars), grain=1.0)
    assert made.count + made.left_out == 1_001
    assert made.count <= 107  # a tenth of PLOT, and the one that failed
    assert len(made.rectangles[0, "failed"]) == 1, "another state is never left out for it"


def test_thinning_keeps_to_its_limit() -> None:
    line = timeline(*huge())
    cut = strips(line, 12)
    assert sum(one.count for one in thinned(line, cut, 60_000)) >= 10_000
    assert sum(one.count for one in thinned(line, cut, 2_000)) <= 2_000


def test_faults_that_overlap_stand_in_different_lanes() -> None:
    stacked = lanes(STRIP, [fault("a", BEGAN, 5_000), fault("b", BEGAN + 1_000, 5_000), fault("c", BEGAN + 5_500, 100)])
    assert [(lane, one.kind) for lane, _, _, one in stacked] == [(0, "a"), (1, "b"), (0, "c")]
    crowd = lanes(STRIP, [fault("a", BEGAN + n, 9_000) for n in range(2 * LANES)])
    assert Counter(lane for lane, *_ in crowd) == dict.fromkeys(range(LANES), 2)


def test_the_picture_has_bands_rows_terms_and_marks_where_they_belong() -> None:
    told, found = small()
    line = timeline(told, found)
    [drawing] = thinned(line, [STRIP], 1_000)
    text = picture(line, STRIP, drawing, {"kill-leader": 1}, "p")
    kill_x = f"{GUTTER + PLOT * 0.4:.1f}"
    assert re.search(rf'<path d="M{kill_x} 18h1.0V[\d.]+h-1.0z" class="band"/>', text), "the fault tints all rows"
    assert re.search(rf'<rect x="{kill_x}" y="18.0" width="1.0" height="8" class="f0"><title>kill-leader s1, an instant', text)
    done = re.search(r'<path d="M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z" class="s-succeeded"/>', text)
    assert done is not None
    x, y, width, height = map(float, done.groups())
    assert x == GUTTER + PLOT * 0.1
    assert width == PLOT * 0.02
    [name_y] = [float(found_y) for found_y in re.findall(r'y="([\d.]+)" text-anchor="end">tick', text)]
    assert y < name_y < y + height + 5, "the run stands in the row that has its job's name"
    gap = re.search(r'<rect x="([\d.]+)"[^>]* width="([\d.]+)"[^>]* class="gap">', text)
    assert gap is not None
    assert (float(gap[1]), float(gap[2])) == (GUTTER + PLOT * 0.4, PLOT * 0.13)
    assert text.count('class="term') == 2
