"""The load under locust as its users start it: options, statistics, workers, reports, exactly the plan's records."""

import csv
import os
import signal
import subprocess
import sys
from argparse import Namespace

import pytest

from ledgerops.ledger.plan.manifest import read_manifest
from ledgerops.ledger.plan.plan import load_plan
from ledgerops.ledger.plan.poison import KEYLESS
from ledgerops.servers.process import free_port
from load.options import read
from tests.load.generator.expected import expected_records
from tests.paths import ROOT
from tests.programs import until, without_settings
from tests.refusals import refusal_of
from tests.tables import cases

PLAN = """
seed: 5
start: 2026-01-01T00:00:00Z
phases: [{shape: constant, rate: 2000}]
disorder: {late: {share: 0.05}}
duplicates: {share: 0.1}
poison: {share: 0.02}
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "mine.yaml").write_text(PLAN)
    return tmp_path


def command(place, *argv):
    """locust in a folder that is not the repository's: the locustfile finds its parts by itself."""
    given = ["--headless", "--only-summary", "--plan", "mine.yaml", "--to", "land", "--manifest", "manifest.json"]
    python = [sys.executable, "-W", "ignore", "-m", "locust", "-f", str(ROOT / "load" / "locustfile.py")]
    port = str(free_port())  # where its workers find it: the usual one may be another load's
    return subprocess.Popen(
        [*python, *given, "--master-bind-port", port, "--master-port", port, *argv],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=without_settings(PYTHONUNBUFFERED="1"),
    )


def locust(place, *argv):
    with command(place, *argv) as process:
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    return process.returncode, out, err


def sent(place):
    """The lines of the files that are whole: what begins with a dot is still being written."""
    return sorted(line for file in (place / "land").rglob("[!.]*.jsonl") for line in file.read_bytes().splitlines())


def expected(place, count):
    made = expected_records(load_plan(place / "mine.yaml"), 0.0, count, kinds=KEYLESS)
    return sorted(value for each in made.values() for _, value in each)


def test_records_are_the_plans_and_locusts_own_statistics_count_them(place):
    code, out, err = locust(place, "--run-time", "1s", "--late-budget", "300s", "--csv", "out", "--html", "out.html")
    manifest = read_manifest(place / "manifest.json")
    [row, _] = csv.DictReader((place / "out_stats.csv").read_text().splitlines())

    assert (code, manifest.records, manifest.exact) == (0, 2_000, True), err
    assert sent(place) == expected(place, 2_000)
    assert (row["Type"], row["Name"], row["Failure Count"]) == ("PRODUCE", "transactions", "0")
    assert int(row["Request Count"]) == manifest.sent["produced"]
    # locust rounds to two digits
    assert int(row["99%"]) / 1000 == pytest.approx(manifest.sent["late_seconds"]["p99"], rel=0.05)
    assert "verdict   valid\n" in out
    assert "transactions" in (place / "out.html").read_text()


def test_workers_share_the_plan_out_without_overlap(place):
    code, _, err = locust(place, "--records", "30000", "--at-once", "--processes", "2")
    manifest = read_manifest(place / "manifest.json")

    assert (code, manifest.records, manifest.exact) == (0, 30_000, True), err
    assert sent(place) == expected(place, 30_000)
    assert {file.name.split("-")[2] for file in (place / "land").rglob("*.jsonl")} == {"0", "1"}


@cases(
    "end",
    # as a terminal does: the workers hear it, too
    ("Ctrl-C", lambda process: os.killpg(process.pid, signal.SIGINT)),
    # as a container's runtime does
    ("stop of a container", lambda process: process.send_signal(signal.SIGTERM)),
)
def test_a_load_that_is_interrupted_ends_at_one_record(place, end):
    with command(place, "--processes", "2", "--late-budget", "300s") as process:
        try:
            until(lambda: len(sent(place)) >= 500 or process.poll() is not None, 120, "a load that is under way")
            end(process)
            _, err = process.communicate(timeout=120)
        finally:
            process.kill()
    manifest = read_manifest(place / "manifest.json")

    assert (process.returncode, manifest.exact) == (0, True), err
    assert sent(place) == expected(place, manifest.records)


INTERRUPTED = """
import os, signal
from types import SimpleNamespace as Fake
import gevent
from load.locust_worker import LoadWorker

def step():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass
    print("the step is done")

runner, quitting = Fake(register_message=lambda *_: None), Fake(add_listener=lambda _: None)
LoadWorker(Fake(runner=runner, events=Fake(quitting=quitting), parsed_options=Fake(headless=False)))
gevent.spawn(step)
try:
    gevent.sleep(30)
except KeyboardInterrupt:
    print("locust ends")
"""


MISSING = """
from types import SimpleNamespace as Worker
from load.locust_master import GONE_SECONDS, gone

clients = {
    "well": Worker(state="running", heartbeat=3),
    "held up": Worker(state="missing", heartbeat=-2),
    "dead": Worker(state="missing", heartbeat=-GONE_SECONDS - 1),
}
print(*(name for name in ("well", "held up", "dead", "left") if gone(clients, name)), sep=", ")
"""


@cases(
    "code, printed",
    ("an interrupt breaks off no step of a sender", INTERRUPTED, "the step is done\nlocust ends\n"),
    ("a worker that is held up for some seconds is not lost", MISSING, "dead, left\n"),
)
def test_in_a_process_of_locust(code, printed):
    command = [sys.executable, "-W", "ignore", "-c", code]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert told.stdout == printed, told.stderr


@cases(
    "block, line",
    (
        "a manifest that finds no place",
        lambda place: (place / "manifest.json").mkdir(),
        "cannot write manifest.json: it is a folder",
    ),
    ("no folder", lambda place: (place / "land").touch(), "cannot write to land/transactions: not a directory"),
)
def test_a_load_that_cannot_begin_is_told_in_one_line_and_sends_nothing(place, block, line):
    block(place)
    code, out, err = locust(place, "--run-time", "1s")

    assert (code, line in err) == (2, True)
    assert "Traceback" not in err
    assert "verdict" not in out
    assert sent(place) == []


def options(**given):
    return Namespace(**{"plan": "default", "to": "land", **given})


def test_texts_of_the_web_interface_are_read():
    given = {"records": "", "duration": "2m", "rate_scale": "2", "late_budget": "80ms", "run_time": 60}
    request, budget, port = read(options(metrics_port="9100", **given))
    assert (request.records, budget, port) == (600 * 2 * 60, 0.08, 9100)  # whichever is shorter
    assert read(options(metrics_port="", **given))[2] is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rate_scale": "fast"}, "--rate-scale: not a positive number: 'fast'"),
        ({"records": "-3"}, "--records: not a positive whole number: '-3'"),
        ({"plan": "defualt"}, "no plan defualt (did you mean default?); give the path of a YAML file, or one of: "),
        ({"to": ""}, "no target; give either --bootstrap-servers HOST:PORT or --to FOLDER"),
    ],
)
def test_what_does_not_fit_is_told_as_by_ledgerops_load(given, message):
    assert refusal_of(read, options(**given)).startswith(message)
