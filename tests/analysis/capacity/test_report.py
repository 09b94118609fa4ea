from ledgerops.analysis.capacity.answer import UNBOUNDED, CapacityAnswer, Question, answer
from ledgerops.analysis.capacity.bottleneck import Limit
from ledgerops.analysis.capacity.fit import Interval
from ledgerops.analysis.capacity.plot import plot
from ledgerops.analysis.capacity.report import document, text
from tests.analysis.capacity.conftest import exact_line, situation
from tests.build import T0


def test_the_text_is_a_line_a_question_and_says_what_limits_once():
    known = situation(arrival=800.0, backlog=6000.0, notes=("no source says how far its head is",))
    asked = [answer(known, question) for question in (Question(), Question(load=2.0), Question(rows=20_000))]
    lines = text([(known, asked)], T0).splitlines()

    assert lines[:3] == [
        "daily_counts  at 2027-01-15 08:00:00 UTC",
        "  trigger 2 s, 2 cores, arrival 800 rows/s, backlog 6,000 rows",
        "  batch time = 0.40 s (0.40 s to 0.40 s) + rows / 5,000 (5,000 to 5,000) rows/s",
    ]
    table = [line.split("  ") for line in lines[lines.index("") + 1 :]]
    assert any(row[0:2] == ["", "now"] for row in table)
    shown = "\n".join(lines)
    assert "keeps up, backlog clears in 1.9 s" in shown
    assert "grows by 15k rows/s, objective missed in 80 s" in shown
    assert "  now: limited by fixed overhead: fixed cost of 0.40 s, 56% of a batch of 1,600 rows" in lines
    assert "  load 20,000/s: batch time unknown: each batch would take longer than the one before" in lines
    assert lines[-1] == "  note: no source says how far its head is"


def test_what_has_no_end_is_null_and_unbounded():
    open_end = CapacityAnswer(
        Question(), 1000.0, 2.0, 2, rows=2000.0, batch=Interval(1.0, 0.5, UNBOUNDED),
        limit=Limit("unknown", "no tasks"),
    )  # fmt: skip
    found = document([(situation(), [open_end])], T0, "a recording")

    assert found["queries"][0]["answers"][0]["batch_seconds"] == {"value": 1.0, "low": 0.5, "high": None}
    shown = text([(situation(), [open_end])], T0)
    assert "1.00 s (0.50 s to unbounded)" in shown
    assert "now: limit unknown: no tasks" in shown


def test_control_characters_in_a_name_do_not_reach_the_terminal():
    assert text([(situation(query="a\x1b[31m"), [])], T0).startswith("a?[31m  at ")


def test_the_plot_holds_every_batch_the_line_and_the_trigger():
    drawn = plot(exact_line(), 2.0)

    assert len({len(line) for line in drawn[:10]}) == 1
    assert sum(line.count("o") for line in drawn[:10]) == 10
    assert drawn[0].startswith("2.1 s |") and "----" in drawn[0]
    assert drawn[-1].strip() == "o batch   . fit   - trigger interval"


def test_a_trigger_far_above_the_batches_is_not_drawn():
    assert "trigger" not in plot(exact_line(), 60.0)[-1]
