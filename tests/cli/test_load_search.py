"""`ledgerops load search`, on a simulated system: what it says, writes and refuses."""

import json

import pytest

from ledgerops.cli import build_parser
from ledgerops.cli.load_search import run as search
from tests.load.test.simulated import System
from tests.refusals import refusal_of


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs the command with a system in place of Spark: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(system, *argv):
        args = build_parser("load search").parse_args(["load search", "daily_counts", *argv])
        return search(args, system.perform), *capsys.readouterr()

    return run


@pytest.fixture
def found(tmp_path):
    """Where a search puts what it found."""
    return tmp_path / "runs" / "search-daily_counts"


def test_it_ends_with_a_table_and_the_rate(command, found):
    code, out, err = command(System(noise=0.03))
    lines = out.splitlines()
    assert code == 0
    assert " ".join(lines[0].split()) == "rows/s trials lag slope p99 latency batch p50 batch p95 verdict"
    assert "daily_counts sustains 2" in out
    found_rate = json.loads((found / "search.json").read_text())["sustainable_rows_per_second"]
    assert lines[-1] == f"next: ledgerops load test --job daily_counts --rate {0.9 * found_rate:.0f}"
    assert err.startswith("about 8 trials of 30 s, some ")
    assert {each.name for each in found.iterdir()} == {"search.json", "search.html", "trials"}


def test_progress_says_what_it_does_now_and_each_trial_is_in_the_document(command, found):
    system = System(noise=0.0)
    _, _, err = command(system)

    said = ("trial 1 of about 8: an estimate, by a load that doubles", "rows/s, again", "rows/s failed: ")
    assert [part for part in said if part not in err] == []
    rates = json.loads((found / "search.json").read_text())["rates"]
    assert sum(len(rate["trials"]) for rate in rates) == len(system.rates) - 1  # the estimate is no trial
    assert {rate["held"] for rate in rates} == {True, False}


def test_json_is_one_document_and_the_same_as_the_file(command, found):
    code, out, _ = command(System(noise=0.0), "--json", "--quick")
    told = json.loads(out)
    assert (code, told["repeat"]) == (0, 1)
    assert told == json.loads((found / "search.json").read_text())
    assert told["failed_rows_per_second"] / told["sustainable_rows_per_second"] <= 1.21


def test_no_rate_is_exit_code_1_and_says_why(command):
    code, out, _ = command(System(overhead=3.0, noise=0.0), "--quick")
    assert code == 1
    assert "daily_counts: found no rate that it sustains (even " in out
    assert "next:" not in out


def test_an_earlier_search_is_moved_aside_by_one_that_ends(command, found):
    command(System(noise=0.0), "--quick")
    first = (found / "search.json").read_text()
    for _ in range(2):
        assert refusal_of(command, System(fails="no table"), "--quick") == "cannot run daily_counts: no table"
    assert (found / "search.json").read_text() == first
    assert not list(found.parent.glob("search-daily_counts-before-*"))

    command(System(noise=0.0, per_row=1e-4), "--quick")
    [aside] = found.parent.glob("search-daily_counts-before-*")
    assert (aside / "search.json").read_text() == first != (found / "search.json").read_text()
    assert not (found.parent / "search-daily_counts-unfinished").exists()


def test_own_objectives_replace_the_defaults(command):
    _, out, _ = command(System(noise=0.0), "--slo", "p99 latency < 1s", "--quick", "--json")
    told = json.loads(out)
    assert told["slos"] == ["p99 latency < 1s"]
    assert told["sustainable_rows_per_second"] is None  # a row may have to wait for two seconds at any rate


def test_a_job_that_fails_at_once_is_refused(command):
    line = refusal_of(command, System(fails="[TABLE_OR_VIEW_NOT_FOUND] no table"))
    assert line == "cannot run daily_counts: [TABLE_OR_VIEW_NOT_FOUND] no table"


REFUSED = {
    "dayly_counts": "no job named 'dayly_counts'; did you mean daily_counts?",
    "windows": "windows is a group of 5 jobs; give one job: daily_counts, ...",
    "daily_counts --slo fast": "--slo 'fast': write a measure, a comparison and a value, such as 'p99 latency < 5s'",
    "daily_counts --min 1e300": "--min 1e+300: too high a rate; give at most 10,000,000 rows/s",
    "daily_counts --max 2e7": "--max 2e+07: too high a rate; give at most 10,000,000 rows/s",
    "daily_counts --min 9 --max 3": "--min 9 is not below --max 3",
    "daily_counts --min -5": "argument --min: not a positive number: '-5'; see ledgerops load search --help",
    "daily_counts --trial 5s": "--trial 5s is too short for 6 batches at a trigger interval of 2 s; give at least 12s",
    "daily_counts --precision 7": "--precision 7: give 0.01 to 1, the width of the answer",
    "daily_counts --precision 0.0001": "--precision 0.0001: give 0.01 to 1, the width of the answer",
    "daily_counts --out /dev/null": "cannot write to /dev/null/search-daily_counts-unfinished: not a directory",
}


@pytest.mark.parametrize(("argv", "line"), REFUSED.items(), ids=REFUSED)
def test_nonsense_is_refused_before_anything_starts(refusal, argv, line):
    assert refusal("load", "search", *argv.split()) == line
