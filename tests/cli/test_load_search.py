"""`ledgerops load search`, on a simulated system: what it says, writes and refuses."""

from __future__ import annotations

import csv
import json
from functools import partial

import pytest

from ledgerops.cli import build_parser
from ledgerops.cli.load_search import search
from ledgerops.errors import UserError
from tests.load.test.simulated import System


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs the command with a system in place of Spark: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(system, *argv):
        args = build_parser("load search").parse_args(["load search", "daily_counts", *argv])
        code = search(args, system.perform)
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


@pytest.fixture
def refused(refusal):
    return partial(refusal, "load", "search")


def test_it_ends_with_a_table_and_the_rate(command, tmp_path):
    code, out, err = command(System(noise=0.03))
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == [
        "rows/s",
        "trials",
        "lag",
        "slope",
        "p99",
        "latency",
        "batch",
        "p50",
        "batch",
        "p95",
        "verdict",
    ]
    assert "daily_counts sustains 2" in out
    assert lines[-1] == "next: ledgerops load test --job daily_counts --load 0.9"
    assert err.startswith("about 8 trials of 30 s, some ")
    assert {each.name for each in (tmp_path / "runs" / "search-daily_counts").iterdir()} == {
        *("search.json", "search.csv", "search.html", "trials")
    }


def test_progress_says_what_it_does_now(command):
    _, _, err = command(System(noise=0.0))
    assert "trial 1 of about 8: an estimate, by a load that doubles" in err
    assert "rows/s, again" in err
    assert "rows/s failed: " in err


def test_json_is_one_document_and_the_same_as_the_file(command, tmp_path):
    code, out, _ = command(System(noise=0.0), "--json", "--quick")
    told = json.loads(out)
    assert code == 0
    assert told == json.loads((tmp_path / "runs/search-daily_counts/search.json").read_text())
    assert told["failed_rows_per_second"] / told["sustainable_rows_per_second"] <= 1.21
    assert told["repeat"] == 1


def test_each_trial_is_a_line_of_the_table(command, tmp_path):
    system = System(noise=0.0)
    command(system)
    with (tmp_path / "runs/search-daily_counts/search.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(system.rates) - 1  # the estimate is no trial
    assert {line["held"] for line in lines} == {"0", "1"}


def test_no_rate_is_exit_code_1_and_says_why(command):
    code, out, _ = command(System(overhead=3.0, noise=0.0), "--quick")
    assert code == 1
    assert "daily_counts: found no rate that it sustains (even " in out
    assert "next:" not in out


def test_an_earlier_search_is_moved_aside(command, tmp_path):
    command(System(noise=0.0), "--quick")
    first = (tmp_path / "runs/search-daily_counts/search.csv").read_text()
    command(System(noise=0.0, per_row=1e-4), "--quick")
    [aside] = (tmp_path / "runs").glob("search-daily_counts-before-*")
    assert (aside / "search.csv").read_text() == first


def test_a_search_that_does_not_end_leaves_the_last_answer_where_it_is(command, tmp_path):
    command(System(noise=0.0), "--quick")
    first = (tmp_path / "runs/search-daily_counts/search.json").read_text()
    for _ in range(2):
        with pytest.raises(UserError):
            command(System(fails="no table"), "--quick")
    assert (tmp_path / "runs/search-daily_counts/search.json").read_text() == first
    assert not list((tmp_path / "runs").glob("search-daily_counts-before-*"))
    command(System(noise=0.0, per_row=1e-4), "--quick")
    assert (tmp_path / "runs/search-daily_counts/search.json").read_text() != first
    assert not (tmp_path / "runs/search-daily_counts-unfinished").exists()


def test_own_objectives_replace_the_defaults(command):
    _, out, _ = command(System(noise=0.0), "--slo", "p99 latency < 1s", "--quick", "--json")
    told = json.loads(out)
    assert told["slos"] == ["p99 latency < 1s"]
    assert told["sustainable_rows_per_second"] is None  # a row may have to wait for two seconds at any rate


def test_a_job_that_fails_at_once_is_refused(command):
    with pytest.raises(UserError) as told:
        command(System(fails="[TABLE_OR_VIEW_NOT_FOUND] no table"))
    assert str(told.value) == "cannot run daily_counts: [TABLE_OR_VIEW_NOT_FOUND] no table"


def test_nonsense_is_refused_before_anything_starts(refused):
    assert refused("dayly_counts").startswith("no job named 'dayly_counts'")
    assert refused("windows").startswith("windows is a group of ")
    assert refused("daily_counts", "--slo", "fast") == (
        "--slo 'fast': write a measure, a comparison and a value, such as 'p99 latency < 5s'"
    )
    assert refused("daily_counts", "--min", "1e300").startswith("--min 1e+300: too high a rate; give at most ")
    assert refused("daily_counts", "--max", "2e7").startswith("--max 2e+07: too high a rate; give at most 10,000,000")
    assert refused("daily_counts", "--min", "9", "--max", "3") == "--min 9 is not below --max 3"
    assert refused("daily_counts", "--trial", "5s") == (
        "--trial 5s is too short for 6 batches at a trigger interval of 2 s; give at least 12s"
    )
    for precision in ("7", "0.0001"):
        assert refused("daily_counts", "--precision", precision).startswith(f"--precision {precision}: give 0.01 to 1")
    assert "not a positive number" in refused("daily_counts", "--min", "-5")


def test_a_place_that_cannot_be_written_is_refused(refused, tmp_path):
    (tmp_path / "file").write_text("")
    assert refused("daily_counts", "--out", "file") == (
        "cannot write to file/search-daily_counts-unfinished: not a directory"
    )
