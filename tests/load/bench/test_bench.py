import importlib
import inspect
import re

import pytest

from load.bench.__main__ import DEMO, PARTS, demo_page, main, page, verdict
from load.bench.lines import KEPT, NO, UNKNOWN, YES, Line, Measured, read
from tests.paths import ROOT


def kept(folder, part="growth", *lines):
    Measured(part, "2026-01-01 10:00 UTC", 12.4, "2 cores", list(lines)).write(folder)
    return folder


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_part_is_a_function_that_takes_whom_to_tell(part):
    module, name = part.make.split(":")
    made = getattr(importlib.import_module(f"load.bench.{module}"), name)
    assert next(iter(inspect.signature(made).parameters)) == "say"
    assert inspect.isgeneratorfunction(made)


def test_a_section_has_its_command_its_time_and_its_figures(tmp_path):
    text = page(kept(tmp_path, "growth", Line("an event", "1 ms", "", "<= 5 ms", YES)))

    assert "## Growth of the observer's cost\n" in text
    assert "`python -m load.bench --only growth`: 12 s, 2026-01-01 10:00 UTC; 2 cores\n" in text
    assert "| an event | 1 ms | <= 5 ms | yes |\n" in text
    assert "PrometheusServlet" not in text


def test_a_page_begins_with_what_it_costs_how_that_grows_and_what_was_tried(tmp_path):
    share = "attached: CPU seconds of the observer's threads (driver)"
    kept(tmp_path, "overhead", Line(f"`a`, {share}", "1.0169 of a bare run's"), Line("throughput", "1.0"))
    kept(tmp_path, "jobs", Line(f"`b`, {share}", "1.0080 of a bare run's"))
    kept(tmp_path, "soak", Line("changes and scrapes", "3 starts"))

    assert re.findall(r"^\| What .*", page(tmp_path).partition("## Overhead")[0], re.MULTILINE) == [
        "| What it costs | CPU seconds of the observer's threads, 2 kinds of job | 0.80 to 1.69 % of a bare run's | "
        "[Overhead on a windowed job](#overhead-on-a-windowed-job) |",
        "| What it was tested to | changes and scrapes | 3 starts | [Soak](#soak) |",
    ]


def test_what_was_never_measured_is_no_answer(tmp_path):
    assert "| question |" not in page(kept(tmp_path, "profile", Line("an event", "1 ms")))


def test_the_answers_are_lines_of_the_figures_that_are_kept():
    answered = page(KEPT).partition("## ")[0]
    lead = " ".join(answered.partition("| question")[0].split())
    costs = [row.split(" | ")[2] for row in answered.splitlines() if row.startswith(("| What it costs", "|  |"))][:3]

    assert "Observing queries takes" in lead and all(cost.lstrip("+") in lead for cost in costs)
    assert [line.split(" | ")[0] for line in answered.splitlines() if line.startswith("| ")] == [
        "| question", "| ---",
        "| What it costs", "| ", "| ",
        "| How it grows", "| ", "| ",
        "| What it was tested to", "| ", "| ", "| ",
    ]  # fmt: skip


@pytest.mark.parametrize("part", [part for part in PARTS if part.demo], ids=lambda part: part.name)
def test_what_the_demonstration_reaches_has_a_page_of_its_own(tmp_path, part):
    kept(tmp_path, part.name, Line("a", "1"))
    assert f"## {part.title}\n" in demo_page(tmp_path) and part.title not in page(tmp_path)


def test_both_pages_are_those_of_the_figures_and_each_section_says_its_version():
    written = (ROOT / "docs" / "performance.md").read_text("utf-8"), (ROOT / "docs" / DEMO).read_text("utf-8")
    assert written == (page(KEPT), demo_page(KEPT))
    assert all("ledgerops 0." in found.machine for part in PARTS if (found := read(KEPT, part.name)))


def test_the_verdict_counts_what_holds_and_names_what_does_not():
    lines = [Line("a", "", holds=YES), Line("b", "", holds=NO), Line("c", "", holds=UNKNOWN), Line("d", "")]
    assert verdict([Measured("growth", "", 0, "", lines)]) == "1 of 3 budgets hold, 1 within noise. Not held: b"


@pytest.mark.parametrize(("holds", "code"), [(YES, 0), ("", 0), (UNKNOWN, 0), (NO, 1)])
def test_only_a_broken_budget_makes_the_exit_code(tmp_path, capsys, holds, code):
    kept(tmp_path / "kept", "growth", Line("a", "1", holds=holds))

    assert main(["--page", str(tmp_path / "page.md"), "--kept", str(tmp_path / "kept")]) == code
    assert (tmp_path / "page.md").read_text().startswith("# Performance\n")
    assert (tmp_path / DEMO).read_text().startswith("# Performance of the demonstration\n")
    assert "growth" in capsys.readouterr().out
