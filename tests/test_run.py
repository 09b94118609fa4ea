"""`ledgerops run` as a person starts it: in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from ledgerops.cli import main

SLOW = 600  # seconds for what takes ten on an idle machine: a build machine may run other things

TWO_JOBS = ("large_credits", "daily_counts")


class Ledgerops:
    """A process of ledgerops in a folder, without the variables of this machine; its output goes to files."""

    def __init__(self, folder, name, *argv, **variables):
        environ = {name: value for name, value in os.environ.items() if not name.startswith("LEDGEROPS_")}
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ledgerops", *argv], cwd=folder, env=environ | variables, stdout=out, stderr=err
            )

    @property
    def out(self):
        return self._out.read_text("utf-8")

    @property
    def err(self):
        return self._err.read_text("utf-8")

    def url(self):
        """The exporter's address, from the first line of the output."""
        until(lambda: "\n" in self.out or self.process.poll() is not None, SLOW, "the first line")
        line = self.out.partition("\n")[0]
        found = re.fullmatch(r"live page (http://127\.0\.0\.1:\d+)/  metrics http://127\.0\.0\.1:\d+/metrics", line)
        assert found, (line, self.err)
        return found.group(1)

    def ended(self):
        """The exit code."""
        return self.process.wait(SLOW)


@pytest.fixture
def command(tmp_path):
    begun = []

    def begin(*argv, **variables):
        begun.append(Ledgerops(tmp_path, f"process-{len(begun)}", *argv, **variables))
        return begun[-1]

    yield begin
    for each in begun:
        each.process.kill()
        each.process.wait()


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """The one line with which a command line is refused, in this process: nothing may start before it."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LEDGEROPS_")]:
        monkeypatch.delenv(name)

    def line(*argv):
        assert main(["run", *argv]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.count("\n") == 1
        return told.err.strip().removeprefix("ledgerops: ")

    return line


def until(condition, seconds, what):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        found = condition()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} s: {what}")


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def queries(url):
    return [query["query"] for query in json.loads(fetch(f"{url}/status"))["queries"]]


def committed(folder):
    """The newest batch that a checkpoint has committed, -1 before the first."""
    commits = folder / "commits"
    return (
        max((int(each.name) for each in commits.iterdir() if each.name.isdigit()), default=-1)
        if commits.exists()
        else -1
    )


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        pytest.param(
            ["daily_cuonts"], "no job named 'daily_cuonts'; did you mean daily_counts?", id="a job that there is not"
        ),
        pytest.param(
            ["--duration", "soon"],
            "argument --duration: not a length of time: 'soon'; write 90, 90s, 2m or 1h; see ledgerops run --help",
            id="a duration that is none",
        ),
        pytest.param(
            ["--duration", "0"],
            "argument --duration: not a length of time: '0'; write 90, 90s, 2m or 1h; see ledgerops run --help",
            id="no duration at all",
        ),
        pytest.param(
            ["--cores", "0"],
            "argument --cores: not a whole number above zero: '0'; see ledgerops run --help",
            id="no core",
        ),
        pytest.param(
            ["--port", "70000"],
            "argument --port: not a port: '70000'; write a number from 0 to 65535; see ledgerops run --help",
            id="a port that there is not",
        ),
        pytest.param(
            ["--source", "replay"],
            "nothing to replay; set LEDGEROPS_DATA to the folder that holds transactions.csv",
            id="a replay of nothing",
        ),
        pytest.param(
            ["--source", "replay", "--plan", "whale"],
            "--plan and --rate-scale are for the embedded source; a replay takes --rate",
            id="a plan for a replay",
        ),
        pytest.param(
            ["--rate", "100"],
            "--rate is for a replay; the embedded source takes --rate-scale",
            id="a replay's rate for the embedded source",
        ),
    ],
)
def test_a_run_that_cannot_be_is_refused_in_one_line(refused, tmp_path, argv, line):
    assert refused(*argv) == line
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_there_is_not_is_refused_with_the_nearest(refused):
    assert "whale" in refused("--plan", "whael")


def test_a_bad_plan_is_refused_with_its_line(refused, tmp_path):
    (tmp_path / "mine.yaml").write_text("seed: 1\nphases:\n  - shape: constant\n    rate: fast\n")

    assert refused("--plan", "mine.yaml").startswith("mine.yaml:4:")


def test_a_missing_data_file_is_refused_with_its_path(refused, tmp_path, monkeypatch):
    monkeypatch.setenv("LEDGEROPS_DATA", str(tmp_path))

    assert refused() == (
        f"cannot read {tmp_path}/transactions.csv: no such file or directory; "
        "LEDGEROPS_DATA names the folder that holds it"
    )


def test_a_port_in_use_is_refused_before_spark_starts(refused):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        assert refused("--port", str(port)) == (
            f"cannot use port {port}: address already in use; give another --port, or 0 for any free one"
        )


def test_a_folder_that_cannot_be_written_is_refused(refused, tmp_path):
    (tmp_path / "file").write_text("")

    assert refused("--out", "file") == f"cannot write to {tmp_path}/file/default: not a directory"


@pytest.mark.timeout(3 * SLOW)
@pytest.mark.spark
def test_two_jobs_run_are_served_and_end_after_the_duration(command, tmp_path):
    run = command("run", *TWO_JOBS, "--duration", "25", "--port", "0", "--out", "runs")
    url = run.url()
    until(lambda: queries(url) == sorted(TWO_JOBS), 20, "both jobs on /status")

    assert run.ended() == 0, run.err
    assert run.err.splitlines() == ["starting Spark and 2 jobs ..."]
    for part in (
        "large_credits, daily_counts on the embedded source, plan default",
        "\ndaily_counts: ",
        "0:25 are over",
        "output      runs/default/output/JOB",
        "next: ledgerops diagnose --from runs/default/recording",
    ):
        assert part in run.out
    assert "\x1b" not in run.out
    folder = tmp_path / "runs" / "default"
    assert list((folder / "recording").iterdir())
    assert (folder / "spark.log").stat().st_size > 0


@pytest.mark.timeout(3 * SLOW)
@pytest.mark.spark
def test_a_run_that_is_terminated_ends_in_order_and_goes_on_where_it_ended(command, tmp_path):
    argv = ("run", "large_credits", "--port", "0", "--no-view", "--trigger", "1s")
    folder = tmp_path / "runs" / "default"
    checkpoint = folder / "checkpoints" / "large_credits"
    first = command(*argv)
    url = first.url()
    until(lambda: committed(checkpoint) >= 1, SLOW, "two batches")
    until(lambda: "ledgerops_batches_total" in fetch(f"{url}/metrics"), SLOW, "a batch on /metrics")
    first.process.send_signal(signal.SIGTERM)

    assert first.ended() == 0, first.err
    assert ": terminated\n" in first.out
    assert "Traceback" not in first.err
    assert list((folder / "output" / "large_credits").glob("*.parquet"))

    note, done = (folder / "run.json").read_text(), committed(checkpoint)
    second = command(*argv)
    second.url()
    until(lambda: committed(checkpoint) > done, SLOW, "a batch after the restart")
    other = command(*argv)

    assert other.ended() == 2
    assert re.fullmatch(r"ledgerops: .*/runs/default is in use by process \d+; stop that run, or .*\n", other.err)

    second.process.send_signal(signal.SIGINT)

    assert second.ended() == 0, second.err
    assert "goes on where the last run ended" in second.out
    assert ": interrupted\n" in second.out
    assert (folder / "run.json").read_text() == note


@pytest.mark.timeout(3 * SLOW)
@pytest.mark.spark
def test_a_checkpoint_of_another_job_is_refused_and_left_alone(command, tmp_path):
    checkpoints = tmp_path / "runs" / "default" / "checkpoints"
    assert command("run", "large_credits", "--port", "0", "--no-view", "--duration", "1").ended() == 0
    for name in ("{}", "{}.job.json"):
        (checkpoints / name.format("large_credits")).rename(checkpoints / name.format("daily_counts"))
    run = command("run", "daily_counts", "--port", "0", "--no-view", "--duration", "1")

    assert run.ended() == 2, run.out
    assert "is the checkpoint of job large_credits, not daily_counts" in run.err.splitlines()[-1]
    assert (checkpoints / "daily_counts" / "offsets").is_dir()


@pytest.mark.timeout(3 * SLOW)
@pytest.mark.spark
def test_a_replay_ends_by_itself_when_the_file_is_worked_off(command, tmp_path):
    header = "trans_id,account_id,type,operation,amount,balance,k_symbol,fulldatewithtime,customer_id\n"
    rows = [
        f"T{n:08},A{n % 7:08},Credit,Credit in Cash,50000.00,1.00,,2013-01-01T{n % 24:02}:00:00,C{n % 5:08}\n"
        for n in range(200)
    ]
    (tmp_path / "transactions.csv").write_text(header + "".join(rows))
    run = command("run", "large_credits", "--port", "0", "--no-view", "--rate", "100", LEDGEROPS_DATA=str(tmp_path))

    assert run.ended() == 0, run.err
    assert "everything is worked off" in run.out
    assert f"a replay of {tmp_path}/transactions.csv" in run.out
    assert list((tmp_path / "runs" / "replay" / "output" / "large_credits").glob("*.parquet"))
