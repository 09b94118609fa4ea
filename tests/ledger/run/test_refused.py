"""Command lines of `ledgerops run` that are refused in one line, before anything starts."""

from __future__ import annotations

import socket
import time
from functools import partial

import pytest


@pytest.fixture
def refused(refusal):
    return partial(refusal, "run")


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        pytest.param(
            ["daily_cuonts"], "no job named 'daily_cuonts'; did you mean daily_counts?", id="a job that there is not"
        ),
        pytest.param(
            ["--duration", "soon"],
            "argument --duration: not a duration: 'soon'; write 90, 90s, 2m, 1h or 2d; see ledgerops run --help",
            id="a duration that is none",
        ),
        pytest.param(
            ["--duration", "0"],
            "argument --duration: not a duration: '0'; write 90, 90s, 2m, 1h or 2d; see ledgerops run --help",
            id="no duration at all",
        ),
        pytest.param(
            ["--cores", "0"],
            "argument --cores: not a positive whole number: '0'; see ledgerops run --help",
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
            f"cannot use port {port}: address already in use; give another --port, or 0 for any free port"
        )


def test_a_folder_that_cannot_be_written_is_refused(refused, tmp_path):
    (tmp_path / "file").write_text("")
    assert refused("--out", "file") == f"cannot write to {tmp_path}/file/default: not a directory"


def test_folders_that_link_to_themselves_are_refused_in_one_line(refused, tmp_path):
    (loop := tmp_path / "loop").symlink_to(loop)
    assert refused("--out", str(loop)) == f"cannot write to {loop}/default: too many levels of symbolic links"
    assert refused("--source", "files", "--landing", str(loop)).startswith(f"no landing folder {loop}; create it")


KAFKA = ("--source", "kafka", "--bootstrap-servers")
GONE = "127.0.0.1:1"  # where nothing listens


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        pytest.param(
            ["--source", "kafka"],
            "--source kafka needs --bootstrap-servers HOST:PORT",
            id="Kafka without an address",
        ),
        pytest.param(
            ["--bootstrap-servers", GONE],
            "--bootstrap-servers needs --source kafka or --sink kafka",
            id="an address for nothing",
        ),
        pytest.param(
            [*KAFKA, GONE, "--start", "yesterday"],
            "invalid start: 'yesterday'; write earliest, latest or a time like 2024-03-01T10:00:00Z",
            id="a start that is none",
        ),
        pytest.param(
            ["--start", "latest"],
            "--start needs --source kafka",
            id="a start for the embedded source",
        ),
        pytest.param(
            [*KAFKA, GONE, "--plan", "whale"],
            "--plan, --rate-scale and --rate are not for --source kafka, which sets its own rate",
            id="a plan for Kafka",
        ),
        pytest.param(
            ["--source", "files", "--landing", "nowhere"],
            "no landing folder nowhere; create it, with a folder for each table: transactions, customers, ad_events",
            id="a landing folder that is not there",
        ),
        pytest.param(
            ["--source", "files"],
            "--source files needs --landing FOLDER",
            id="files without a folder",
        ),
        pytest.param(
            ["--source", "files", "--landing", ".", "--max-rows-per-trigger", "5"],
            "--max-rows-per-trigger cannot be used with --source files, whose number of rows is not known; "
            "use --max-files-per-trigger",
            id="rows of files",
        ),
        pytest.param(
            ["--until-caught-up"],
            "--until-caught-up cannot be used with the embedded source, which never ends; use --duration",
            id="the end of an endless source",
        ),
        pytest.param(
            ["--sink", "postgres"],
            "--sink postgres needs a database: add --postgres URL, or set LEDGEROPS_POSTGRES",
            id="Postgres without an address",
        ),
        pytest.param(
            ["dead_letters"],
            "dead_letters reads rejects, which the source does not provide; it has ad_events, credits, customers, "
            "debits, transactions",
            id="a job whose input the source has not",
        ),
        pytest.param(
            ["large_credits", "--sink", "postgres", "--postgres", "postgresql://me:hush@127.0.0.1:1/ledger"],
            "cannot reach postgresql://me@127.0.0.1:1/ledger: connection failed: connection to server at "
            '"127.0.0.1", port 1 failed: Connection refused',
            id="a Postgres that is not there",
        ),
    ],
)
def test_a_source_or_sink_that_cannot_be_is_refused_in_one_line(refused, server_jars, argv, line):
    assert refused(*argv) == line


def test_a_broker_that_is_not_there_is_refused_before_spark_starts(refused, server_jars, tmp_path):
    began = time.monotonic()
    assert refused(*KAFKA, GONE) == f"cannot reach Kafka at {GONE}: connection refused"
    assert time.monotonic() - began < 30  # Kafka's client of its own waits for a minute, and Spark's for longer
    assert list(tmp_path.iterdir()) == []


def test_missing_jars_are_refused_with_the_command_that_fetches_them(refused, tmp_path, monkeypatch):
    monkeypatch.setenv("LEDGEROPS_JARS", str(tmp_path / "jars"))
    assert refused(*KAFKA, GONE).endswith("; run ledgerops jars to download them")


def test_a_topic_that_is_not_there_is_refused(refused, kafka):
    assert refused(*KAFKA, kafka.servers, "--topic-prefix", "none.", "large_credits") == (
        f"no topic none.transactions at {kafka.servers}; ledgerops topics creates the ledger's topics"
    )
