import importlib
import inspect

import pytest

from load.bench.__main__ import PARTS, main, page, verdict
from load.bench.lines import NO, UNKNOWN, YES, Line, Measured


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


def test_the_verdict_counts_what_holds_and_names_what_does_not():
    lines = [Line("a", "", holds=YES), Line("b", "", holds=NO), Line("c", "", holds=UNKNOWN), Line("d", "")]

    assert verdict([Measured("growth", "", 0, "", lines)]) == ("1 of 3 budgets hold. Not held: b. Within noise: c")


@pytest.mark.parametrize(("holds", "code"), [(YES, 0), ("", 0), (UNKNOWN, 0), (NO, 1)])
def test_only_a_broken_budget_makes_the_exit_code(tmp_path, capsys, holds, code):
    kept(tmp_path / "kept", "growth", Line("a", "1", holds=holds))

    assert main(["--page", str(tmp_path / "page.md"), "--kept", str(tmp_path / "kept")]) == code
    assert (tmp_path / "page.md").read_text().startswith("# Performance\n")
    assert "growth" in capsys.readouterr().out
