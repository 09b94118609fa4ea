"""`ledgerops load test`: verdict, exit code, files; on a simulated system, and once with Spark."""

import csv
import json
import re
from pathlib import Path

import pytest

from ledgerops.cli import build_parser
from ledgerops.cli.load_test import run as load_test
from ledgerops.load.test.trial import Trial
from tests.load.test.simulated import System
from tests.refusals import refusal_of

DAILY = ("--job", "daily_counts")


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs the command with a system in place of Spark: exit code, stdout, the folder of the result."""
    monkeypatch.chdir(tmp_path)

    def run(system, *argv):
        args = build_parser("load test").parse_args(["load test", *argv])
        code = load_test(args, system.perform)
        out = capsys.readouterr().out
        [folder] = Path("runs").glob("test-*")
        return code, out, folder

    return run


def test_a_load_that_is_carried_passes(command):
    code, out, folder = command(System(), *DAILY, "--rate", "21600", "--slo", "p99 latency < 5s")
    assert code == 0
    assert re.match(r"daily_counts  PASSED: p99 latency 3\.\d+ s\n", out)
    assert {each.name for each in folder.iterdir()} == {"test.html", "test.json", "test.csv", "run"}


def test_one_that_is_not_fails_and_names_its_cause(command):
    code, out, _ = command(System(noise=0.0), *DAILY, "--rate", "28800", "--slo", "p99 latency < 5s")
    assert code == 1
    assert out.splitlines()[0] == (
        "daily_counts  FAILED: p99 latency 10.7 s, wanted < 5 s; "
        "cause: input-overload (offered 28,800 rows/s, 20% above the sustainable rate of 24,001 rows/s)"
    )


def test_a_plan_is_run_as_it_is(command):
    code, _, folder = command(System(), "burst", *DAILY, "--duration", "90", "--slo", "processed > 95%")
    told = json.loads((folder / "test.json").read_text())
    assert code == 0
    assert (told["plan"], told["load"], told["warm_up_seconds"]) == ("burst", "plan burst", 20.0)


def test_json_is_the_document_of_the_file_and_the_table_marks_what_was_measured(command):
    code, out, folder = command(System(), *DAILY, "--rate", "12000", "--json")

    assert (code, json.loads(out)) == (0, json.loads((folder / "test.json").read_text()))
    lines = list(csv.DictReader((folder / "test.csv").read_text().splitlines()))
    assert {line["measured"] for line in lines if float(line["at_seconds"]) < 20} == {"0"}
    assert {line["measured"] for line in lines if float(line["at_seconds"]) > 21} == {"1"}


def test_a_run_that_dies_on_the_way_fails(command):
    code, out, _ = command(System(fails="the driver was killed by signal 9"), *DAILY, "--rate", "12000")
    assert code == 1
    assert "FAILED: the run failed: the driver was killed by signal 9; cause: query-failed" in out


def test_a_run_that_cannot_begin_is_no_verdict(tmp_path):
    args = build_parser("load test").parse_args(["load test", *DAILY, "--rate", "9", "--out", str(tmp_path)])

    def perform(wanted, folder, say):
        return Trial(folder, wanted, None, {"daily_counts": "the driver exited with code 2: no java"})

    assert refusal_of(load_test, args, perform) == "cannot run daily_counts: the driver exited with code 2: no java"


ONE_LOAD = "give exactly one load: a PLAN, or --rate ROWS"
REFUSED = {
    "--job daily_counts": ONE_LOAD,
    "burst --job daily_counts --rate 5": ONE_LOAD,
    "--job daily_counts --rate 1e12": "invalid rate of 1e+12 rows/s; give a rate above 0 and at most 10,000,000",
    "--job daily_counts --rate 5 --rate-scale 2": "--rate-scale needs a PLAN",
    "--job daily_counts --rate 5 --duration 3": (
        "--duration 3s is too short for 6 batches at a trigger interval of 2 s; give at least 12s"
    ),
    "--job daily_counts --rate 5 --slo lag<5": "--slo 'lag<5': '5' is not a valid value; write 5s or 200ms or trigger",
    "--job dead_letters --rate 5": (
        "dead_letters reads rejects, which the source does not provide; it has ad_events, credits, customers, debits, "
        "transactions"
    ),
}


@pytest.mark.parametrize(("argv", "line"), REFUSED.items(), ids=REFUSED)
def test_nonsense_is_refused_before_anything_starts(refusal, argv, line):
    assert refusal("load", "test", *argv.split()) == line


def test_a_misspelt_plan_is_refused_with_the_names_of_all(refusal):
    assert refusal("load", "test", "brst", *DAILY).startswith("no plan brst (did you mean burst?)")
