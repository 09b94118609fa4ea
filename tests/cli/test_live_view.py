import io
import itertools

import pytest
from rich.console import Console

from ledgerops.cli.live_view import PHASES, LiveView, is_live, phase_bar, plain_line, print_plain, watch
from ledgerops.common.format import clean
from ledgerops.common.terminal import sparkline
from ledgerops.runtime.status import status_document
from tests.runtime.demo import HOSTILE, NOW, demo_fleet


@pytest.fixture(scope="module")
def document():
    return status_document(demo_fleet(), NOW)


def shown(document, width, height):
    file = io.StringIO()
    Console(file=file, width=width, height=height, force_terminal=False).print(LiveView(document, "ledgerops run"))
    return file.getvalue().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (160, 50), (200, 50)])
def test_the_view_fits_the_terminal(document, width, height):
    lines = shown(document, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert not any(line.rstrip().endswith("…") for line in lines[:3]), "a heading is cut"


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_query_shows_its_status_in_words_its_figures_and_its_verdict(document, width):
    text = "\n".join(shown(document, width, 60))
    figures = ("8,072", "8,188", "117k", " 16 min", "6.6 s", "36 s", "4,060", "406 kB")
    assert [part for part in ("falling behind", *figures, "key-skew:") if part not in text] == []


def test_a_terminal_that_is_too_low_shows_the_worst_queries_and_how_many_are_left_out(document):
    text = "\n".join(shown(document, 80, 12))
    assert "large_credits" not in text
    shows = ("enriched_transactions", "daily_counts", "5 more queries not shown")
    assert [part for part in shows if part not in text] == []


@pytest.mark.parametrize(("width", "height"), [(80, 12), (80, 24), (120, 40), (200, 50)])
def test_the_legend_has_the_names_of_the_phases_that_everything_else_has(document, width, height):
    legend = " ".join(" ".join(shown(document, width, height)[-2:]).split())
    assert [name for name in PHASES if f"={name}" not in legend] == []
    assert legend.endswith("full bar = trigger interval")


def test_a_tall_terminal_shows_the_next_step(document):
    assert any("do first: aggregate in two steps" in line for line in shown(document, 120, 50))


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_with_room_shows_the_whole_verdict_and_step(document, width):
    query = next(each for each in document["queries"] if each["verdict"]["remedies"])
    long = query["verdict"] | {"summary": "word " * 40 + "end", "remedies": [{"action": "step " * 40 + "last"}]}
    lines = shown({"queries": [query | {"verdict": long}]}, width, 30)
    text = " ".join(" ".join(lines).split())

    assert "word " * 40 + "end" in text
    assert "do first: " + "step " * 40 + "last" in text
    assert max(map(len, lines)) <= width


def test_a_short_verdict_leaves_room_for_the_throughput(document):
    query = document["queries"][0]
    lines = shown({"queries": [query | {"verdict": query["verdict"] | {"summary": "short"}}]}, 80, 30)
    assert any("short" in line and any(spark in line for spark in "▁▂▃▄▅▆▇█") for line in lines)


def test_no_query_yet_is_said():
    assert any("no query yet" in line for line in shown({"queries": []}, 80, 24))


def test_the_bar_shares_the_trigger_interval_among_the_phases():
    phases = {"latest_offset": 0.1, "query_planning": 0.4, "add_batch": 1.0}
    longer = {"seconds": 4.0, "phases": {"add_batch": 4.0}}
    assert phase_bar({"seconds": 1.5, "phases": phases}, 2.0, 20).plain == "▚▓▓▓▓██████████·····"
    assert phase_bar(longer, 2.0, 10).plain == "█" * 10


def test_every_phase_has_a_glyph_and_a_colour_of_its_own():
    for column in range(2):
        assert len({phase[column] for phase in PHASES.values()}) == len(PHASES)


@pytest.mark.parametrize(
    ("values", "line"), [([0, 4, 8], "▁▄█"), ([None, 8], " █"), ([], "   "), ([0, 0], "▁▁"), ([1, 1, 1, 8], "▁▁█")]
)
def test_a_sparkline_goes_from_zero_to_the_largest(values, line):
    assert sparkline(values, 3) == line.rjust(3)


def test_control_characters_of_a_name_never_reach_the_terminal(document):
    line = plain_line({**document["queries"][0], "query": "evil\x1b[2J\x07name"})
    assert line.startswith("evil?[2J?name: idle") and "\x1b" not in line
    assert clean("one\ntwo") == "one?two"


def test_markup_in_a_name_is_text(document):
    query = {**document["queries"][0], "query": "[red]x[/red]"}
    assert any("[red]x[/red]" in line for line in shown({"queries": [query]}, 80, 24))


def test_without_a_terminal_each_query_is_one_line_without_control_codes(document):
    file = io.StringIO()
    turns = iter([False, True])
    watch(lambda: document, lambda: "", lambda seconds: next(turns), Console(file=file))
    lines = file.getvalue().splitlines()

    assert len(lines) == len(document["queries"])
    assert "\x1b" not in file.getvalue()
    assert lines[0] == (  # what is not known is left out
        f"{HOSTILE}: idle; no new rows to read; in 0/s, processed 0/s, backlog 0, "
        "batch 0.48 s (add_batch 0.32 s, query_planning 0.06 s), skew 2.0×"
    )
    assert lines[2] == (
        "daily_counts: falling behind; key-skew: one task read 48,120 of 52,400 rows: 14.9 times the median, "
        "all of customer C00000042; do first: aggregate in two steps, with a salt on the key; "
        "in 8,072/s, processed 8,188/s, backlog 117k (clears in 16 min 52 s), "
        "batch 6.6 s (add_batch 4.5 s, query_planning 0.79 s), watermark lag 36 s, state 4,060 rows 406 kB, skew 2.0×"
    )


def test_without_a_terminal_what_is_gone_is_said_once_and_its_queries_no_more(document):
    file = io.StringIO()
    looks = iter([document, document, document, {"queries": document["queries"][:1]}])
    contacts = iter(["here", "here", "gone", "gone", "gone", "here", "here"])
    turns = iter([False] * 4 + [True])
    watch(lambda: next(looks), str, lambda seconds: next(turns), Console(file=file), contact=lambda: next(contacts))
    lines = file.getvalue().splitlines()

    assert [number for number, line in enumerate(lines) if line.startswith(f"{HOSTILE}: idle")] == [0, len(lines) - 2]
    assert (lines.count("gone"), lines[-1]) == (1, "here")


def test_without_a_terminal_a_title_with_a_clock_is_not_told_again_and_again(document):
    file = io.StringIO()
    clock, turns = itertools.count(), iter([False] * 3 + [True])
    watch(lambda: document, lambda: f"{next(clock)} s", lambda seconds: next(turns), Console(file=file))
    assert len(file.getvalue().splitlines()) == len(document["queries"])


def test_without_a_terminal_queries_that_wait_share_a_line_and_a_first_batch_has_its_own(document):
    waiting = next(query for query in document["queries"] if query["status"] == "starting")
    busy = {**waiting, "query": "busy", "verdict": {**waiting["verdict"], "summary": "its first batch is running"}}
    file = io.StringIO()

    said = print_plain({"queries": [waiting, busy, {**waiting, "query": "other"}]}, Console(file=file))
    said = print_plain({"queries": [busy, {**waiting, "query": "other"}]}, Console(file=file), said)
    print_plain({"queries": [{**waiting, "query": "late"}]}, Console(file=file), said)

    assert file.getvalue().splitlines() == [
        "busy: starting; its first batch is running",
        f"waiting for the first batch of {waiting['query']}, other",
        "busy: starting; its first batch is running",
        "waiting for the first batch of late",
    ]


@pytest.mark.parametrize(
    ("environ", "live"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({}, False)],
)
def test_the_view_is_drawn_only_where_the_terminal_can(monkeypatch, environ, live):
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert is_live(Console(file=io.StringIO(), force_terminal=True)) is live
