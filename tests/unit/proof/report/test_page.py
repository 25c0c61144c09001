"""The page: complete, one file, nothing from elsewhere, safe with any text, small enough."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from proof.history.acts import STARVED
from proof.history.history import History
from proof.history.verdict import Kind, TakeOver, Verdict
from proof.report.document import document
from proof.report.figures import figures
from proof.report.markup import duration, element, escape, since
from proof.report.page import page
from proof.report.setting import this_setting
from proof.report.style import STYLE
from proof.report.summary import print_summary
from proof.report.writing import write_report
from tests.unit.proof.report.worlds import BEGAN, SETTING, fault, history, huge, small, take_over, verdict, violation

LIMIT_BYTES = 5_000_000
HOSTILE = "</title></style><script>alert(1)</script>\" onload='x' &\x00\u202e\ud800[red]"


class Reader(HTMLParser):
    """Tags, texts and attributes; that what is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(*pairs: tuple[History, Verdict]) -> Reader:
    reader = Reader()
    reader.feed(page(pairs, figures(pairs), SETTING, BEGAN))
    reader.close()
    return reader


def said(reader: Reader) -> str:
    return " ".join(" ".join(reader.texts).split())


def test_a_trouble_stands_before_everything_else() -> None:
    told, found = small()
    broken = (told, replace(found, troubles=("w1: exit 1: Traceback",)))
    text = said(read(broken))
    assert "The run is broken: no violation, but 1 trouble." in text
    assert text.index("by hand: w1: exit 1: Traceback") < text.index("Violations")
    assert "The promise held" not in text
    assert "Troubles" not in said(read(small()))
    assert "BROKEN: no violation in 5 due times, but 1 trouble" in printed(broken)
    assert "trouble: by hand: w1: exit 1: Traceback" in printed(broken)


def test_a_note_is_told_and_breaks_nothing() -> None:
    told, found = small()
    noted = (replace(told, noted=replace(told.noted, notes=("s1: exit 70",))), found)
    text = said(read(noted))
    assert "The promise held" in text
    assert "by hand: s1: exit 70" in text
    assert document([noted], figures([noted]), SETTING, BEGAN)["notes"] == ["by hand: s1: exit 70"]
    assert "Notes" not in said(read(small()))


def test_the_page_says_all_that_it_should() -> None:
    text = said(read(small()))
    for words in (
        "The promise held: no violation.", "1 fault, 5 due times judged", "Faults by kind", "Runs by lateness",
        "Steps executed again", "Take-over times", "Time without a leader: 1.3 s", "make faults SEED=7", "4.3.1", "two cores",
        "Runs by job", "Terms", "kill-leader, session 1 s", "undecodable: 1 record",
    ):  # fmt: skip
        assert words in text, words
    assert text.count("How it was counted.") >= 7
    for kind in Kind:
        assert re.search(rf"\b0 {kind.value}\b", text), f"{kind} is not in the headline"


def test_every_picture_has_a_title_words_and_a_table() -> None:
    """Each chart and strip names its title and description, which exist; swatches are hidden from screen readers."""
    text = page([small()], figures([small()]), SETTING, BEGAN)
    ids = set(re.findall(r'\bid="([^"]+)"', text))
    assert len(ids) == len(re.findall(r'\bid="([^"]+)"', text))
    pictures = re.findall(r"<svg [^>]*>", text)
    assert pictures
    for picture in pictures:
        labelled = re.search(r'aria-labelledby="([^"]+)"', picture)
        assert 'aria-hidden="true"' in picture or (labelled and set(labelled[1].split()) <= ids and 'role="img"' in picture)
    assert text.count("<caption>") >= 9


def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing() -> None:
    reader = read(small())
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "use", "image"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name in {"src", "href", "xlink:href", "style"}]
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in reader.attributes
    for words in ("prefers-color-scheme:dark", "@media print"):
        assert words in STYLE
    assert ("content", "width=device-width, initial-scale=1") in reader.attributes


def test_hostile_text_stays_text() -> None:
    told = history((), [fault(HOSTILE, BEGAN, 100, HOSTILE, HOSTILE)], title=HOSTILE)
    found = verdict(
        violations=(violation(subject=f"{HOSTILE}@2026-11-30T06:00:05Z", what=HOSTILE),), runs_by_state={HOSTILE: 1},
        take_overs=(take_over(HOSTILE, BEGAN, 99_000),), steps_again=((HOSTILE, 1),), lateness_ms=(1,),
    )  # fmt: skip
    plain, hostile = read(small()), read((told, found))
    assert hostile.wrong == []
    assert hostile.open == []
    assert set(hostile.tags) <= {*plain.tags, "circle", "path"}
    assert {name for name, _ in hostile.attributes} <= {name for name, _ in plain.attributes}
    text = page([(told, found)], figures([(told, found)]), SETTING, BEGAN)
    assert "\x00" not in text
    assert "\u202e" not in text
    text.encode()
    assert "<script>alert(1)</script>" in said(hostile), "it is shown, as text"


def test_tags_are_closed_in_order() -> None:
    reader = read(small(), huge())
    assert reader.wrong == []
    assert reader.open == []


def test_a_broken_promise_stands_at_the_top_with_its_evidence() -> None:
    many = tuple(violation(subject=f"job-{number}@2026-11-30T06:00:05Z") for number in range(700))
    text = said(read((history(), verdict(violations=many))))
    assert "The promise was broken: 700 violations." in text
    assert "The promise held" not in text
    assert "t.runs-0@12" in text
    assert "200 more are in report.json." in text


def test_a_report_of_nothing_says_so() -> None:
    for pairs in ([], [(history(), verdict(due_times=0, runs=0))]):
        assert "Nothing was judged: this report shows nothing." in said(read(*pairs))


def test_outliers_are_listed_with_the_faults_meanwhile() -> None:
    told = history((), [fault("kill-leader", BEGAN + 1_000, target="s9"), fault("cut", BEGAN + 2_000, 10, "w1>b2")])
    text = said(read((told, verdict(take_overs=(take_over("kill-leader", BEGAN + 1_000, 4_000),)))))
    assert "0:00:01.000" in text
    assert "kill-leader s9; cut w1>b2" in text


@pytest.mark.parametrize(("took", "text"), [((), "None was measured."), ((take_over("kill", BEGAN, 900),), "900 ms")])
def test_what_was_not_measured_is_said_and_no_share_of_the_time_is_given(took: tuple[TakeOver, ...], text: str) -> None:
    told = said(read((history(), verdict(take_overs=took, leaderless_ms=900 * len(took), unmeasured=3))))
    assert text in told
    assert "without 3 changes of terms that were not measured, since a broker's clock was moved" in told
    assert "of the judged time" not in told


def test_a_huge_run_gives_a_page_that_a_browser_likes(tmp_path: Path) -> None:
    written, html = write_report([huge()], tmp_path / "out", SETTING, BEGAN)
    assert html.stat().st_size < LIMIT_BYTES
    assert html.read_text().count("<svg") > 8
    assert json.loads(written.read_text())["figures"]["due_times"] == 10_000


def test_the_same_histories_make_the_same_files(tmp_path: Path) -> None:
    first = write_report([small()], tmp_path / "a", SETTING, BEGAN)
    second = write_report([small()], tmp_path / "b", SETTING, BEGAN)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_many_histories_keep_the_page_small(tmp_path: Path) -> None:
    pairs = [small() for _ in range(300)]
    _, html = write_report(pairs, tmp_path, SETTING, BEGAN)
    assert html.stat().st_size < LIMIT_BYTES
    assert "260 histories have no picture here" in html.read_text()


def test_the_setting_names_versions_but_no_path_of_the_machine() -> None:
    setting = this_setting("make faults N=5 SEED={seed}")
    assert setting.command(42) == "make faults N=5 SEED=42"
    assert setting.versions["Apache Kafka"] == "4.3.1"
    assert {"Python", "dueline", "confluent-kafka"} <= set(setting.versions)
    assert "unknown" not in {version for name, version in setting.versions.items() if name != "commit"}
    assert setting.versions["commit"]
    assert "/" not in setting.machine + "".join(setting.versions.values())


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [(0, "0 ms"), (999, "999 ms"), (1_250, "1.25 s"), (61_000, "1 min 1 s"), (7_500_000, "2 h 05 min"), (-5, "−5 ms")],
)
def test_durations_are_readable(value_ms: int, text: str) -> None:
    assert duration(value_ms) == text


def test_markup_escapes_whatever_is_not_markup() -> None:
    assert element("p", "<b>", element("b", "&"), class_='"') == '<p class="&quot;">&lt;b&gt;<b>&amp;</b></p>'
    assert escape(12) == "12"
    assert since(3_723_004) == "1:02:03.004"


def test_a_machine_that_stood_still_has_bands_of_its_own_on_the_page_and_in_the_terminal() -> None:
    told = history((), [fault("cut", BEGAN, 500), fault(STARVED, BEGAN + 1_000, 1_400)])
    text = page([(told, verdict())], figures([(told, verdict())]), SETTING, BEGAN)
    assert text.count('class="starved"') == 2, "one band, and its swatch in the legend"
    assert STARVED not in text, "it stands in no table and no chart of faults"
    assert "1 fault, " in text
    assert "gave no process a turn 1 time, for 1.4 s altogether" in text
    console = printed((told, verdict()))
    assert "machine stood still (no fault)" in console
    assert STARVED not in console
    assert "stood still" not in printed(small())


# --- the terminal -----------------------------------------------------------------------------------------------------


def printed(*pairs: tuple[History, Verdict]) -> str:
    out = io.StringIO()
    print_summary(pairs, Console(file=out, width=120, force_terminal=False))
    return out.getvalue()


def test_the_summary_says_verdict_figures_and_faults() -> None:
    text = printed(small())
    assert "HELD: no violation in 5 due times" in text
    for words in ("missed", "doubled", "early", "unexplained", "kill-leader", "1 of 1", "1.3 s"):
        assert words in text


def test_the_summary_says_what_is_broken_and_styles_nothing_by_foreign_text() -> None:
    found = verdict(violations=tuple(violation(what="[bold]\x1b[31m") for _ in range(15)))
    text = printed((history(), found))
    assert "BROKEN: 15 violations in 1 due times" in text
    assert "and 5 more" in text
    assert "\x1b" not in text
    assert "[bold]" in text
    assert "NOTHING JUDGED" in printed((history(), verdict(due_times=0)))
