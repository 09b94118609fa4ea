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

TWO_JOBS = ("large_credits", "daily_counts")


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Starts ledgerops in an empty folder, without the variables of the machine."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LEDGEROPS_")}
    processes = []

    def begin(*argv, **variables):
        process = subprocess.Popen(
            [sys.executable, "-m", "ledgerops", *argv],
            cwd=tmp_path,
            env=environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


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


def url_of(process):
    """The exporter's address, from the first line of the output."""
    found = re.match(r"live page (http://127\.0\.0\.1:\d+)/  metrics http://127\.0\.0\.1:\d+/metrics$", first(process))
    assert found
    return found.group(1)


def first(process):
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return line.strip()


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


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


@pytest.mark.spark
def test_two_jobs_run_are_served_and_end_after_the_duration(command, tmp_path):
    process = command("run", *TWO_JOBS, "--duration", "25", "--port", "0", "--out", "runs")
    url = url_of(process)
    until(lambda: "ledgerops_batches_total" in fetch(f"{url}/metrics"), 60, "a batch on /metrics")
    status = json.loads(fetch(f"{url}/status"))
    out, err = process.communicate(timeout=120)

    assert [query["query"] for query in status["queries"]] == sorted(TWO_JOBS)
    assert process.returncode == 0, err
    assert err.splitlines() == ["starting Spark and 2 jobs ..."]
    for part in (
        "large_credits, daily_counts on the embedded source, plan default",
        "\ndaily_counts: ",
        "0:25 are over",
        "output      runs/default/output/JOB",
        "next: ledgerops diagnose --from runs/default/recording",
    ):
        assert part in out
    assert "\x1b" not in out
    run = tmp_path / "runs" / "default"
    assert list((run / "output" / "large_credits").glob("*.parquet"))
    assert list((run / "recording").iterdir())
    assert (run / "spark.log").stat().st_size > 0


@pytest.mark.spark
def test_a_run_that_is_terminated_ends_in_order_and_goes_on_where_it_ended(command, tmp_path):
    argv = ("run", "large_credits", "--port", "0", "--no-view", "--trigger", "1s")
    run = tmp_path / "runs" / "default"
    checkpoint = run / "checkpoints" / "large_credits"
    process = command(*argv)
    url_of(process)
    until(lambda: committed(checkpoint) >= 1, 90, "two batches")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    origin = json.loads((run / "run.json").read_text())["origin"]
    done = committed(checkpoint)

    assert process.returncode == 0, err
    assert ": terminated\n" in out
    assert "Traceback" not in err

    process = command(*argv)
    url_of(process)
    until(lambda: committed(checkpoint) > done, 90, "a batch after the restart")
    other = command(*argv)
    told = other.communicate(timeout=30)[1]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert other.returncode == 2
    assert re.fullmatch(r"ledgerops: .*/runs/default is in use by process \d+; stop that run, or .*\n", told)
    assert process.returncode == 0, err
    assert "goes on where the last run ended" in out
    assert ": interrupted\n" in out
    assert json.loads((run / "run.json").read_text())["origin"] == origin

    (run / "run.json").write_text(json.dumps(json.loads((run / "run.json").read_text()) | {"digest": "another"}))
    process = command(*argv)
    err = process.communicate(timeout=60)[1]

    assert process.returncode == 2
    assert "holds a run of another plan" in err
    assert committed(checkpoint) > done

    process = command(*argv, "--fresh", "--duration", "1")
    out, err = process.communicate(timeout=120)

    assert process.returncode == 0, err
    [aside] = (tmp_path / "runs").glob("default-before-*")
    assert committed(aside / "checkpoints" / "large_credits") > done


@pytest.mark.spark
def test_a_checkpoint_of_another_job_is_refused_and_left_alone(command, tmp_path):
    run = tmp_path / "runs" / "default"
    process = command("run", "large_credits", "--port", "0", "--no-view", "--duration", "1")
    process.communicate(timeout=120)
    (run / "checkpoints" / "large_credits").rename(run / "checkpoints" / "daily_counts")
    note = run / "checkpoints" / "large_credits.job.json"
    note.rename(run / "checkpoints" / "daily_counts.job.json")
    process = command("run", "daily_counts", "--port", "0", "--no-view", "--duration", "1")
    out, err = process.communicate(timeout=120)

    assert process.returncode == 2, out
    assert "is the checkpoint of job large_credits, not daily_counts" in err.splitlines()[-1]
    assert (run / "checkpoints" / "daily_counts").is_dir()


@pytest.mark.spark
def test_a_replay_ends_by_itself_when_the_file_is_worked_off(command, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    header = "trans_id,account_id,type,operation,amount,balance,k_symbol,fulldatewithtime,customer_id\n"
    rows = [
        f"T{n:08},A{n % 7:08},Credit,Credit in Cash,50000.00,1.00,,2013-01-01T{n % 24:02}:00:00,C{n % 5:08}\n"
        for n in range(200)
    ]
    (data / "transactions.csv").write_text(header + "".join(rows))
    process = command("run", "large_credits", "--port", "0", "--no-view", "--rate", "100", LEDGEROPS_DATA=str(data))
    out, err = process.communicate(timeout=150)

    assert process.returncode == 0, err
    assert "everything is worked off" in out
    assert f"a replay of {data}/transactions.csv" in out
    assert list((tmp_path / "runs" / "replay" / "output" / "large_credits").glob("*.parquet"))
