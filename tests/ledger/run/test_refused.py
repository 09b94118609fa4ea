"""Command lines of `ledgerops run` that are refused in one line, before anything starts."""

import socket
import time
from functools import partial

import pytest


@pytest.fixture
def refused(refusal):
    return partial(refusal, "run")


HELP = "; see ledgerops run --help"
DURATION = "write 90, 90s, 2m, 1h or 2d" + HELP
GONE = "127.0.0.1:1"  # where nothing listens
KAFKA = f"--source kafka --bootstrap-servers {GONE}"
POSTGRES = "postgresql://me:hush@127.0.0.1:1/ledger"
# a command line -> what is said of it
LINES = {
    "daily_cuonts": "no job named 'daily_cuonts'; did you mean daily_counts?",
    "--duration soon": f"argument --duration: not a duration: 'soon'; {DURATION}",
    "--duration 0": f"argument --duration: not a duration: '0'; {DURATION}",
    "--cores 0": f"argument --cores: not a positive whole number: '0'{HELP}",
    "--port 70000": f"argument --port: not a port: '70000'; write a number from 0 to 65535{HELP}",
    "--source replay": "nothing to replay; set LEDGEROPS_DATA to the folder that holds transactions.csv",
    "--source replay --plan whale": "--plan and --rate-scale are for the embedded source; a replay takes --rate",
    "--rate 100": "--rate is for a replay; the embedded source takes --rate-scale",
    "--source kafka": "--source kafka needs --bootstrap-servers HOST:PORT",
    f"--bootstrap-servers {GONE}": "--bootstrap-servers needs --source kafka or --sink kafka",
    "--start latest": "--start needs --source kafka",
    "--source files": "--source files needs --landing FOLDER",
    "--source files --landing nowhere": (
        "no landing folder nowhere; create it, with a folder for each table: transactions, customers, ad_events"
    ),
    "--source files --landing . --max-rows-per-trigger 5": (
        "--max-rows-per-trigger cannot be used with --source files, whose number of rows is not known; "
        "use --max-files-per-trigger"
    ),
    "--until-caught-up": (
        "--until-caught-up cannot be used with the embedded source, which never ends; use --duration"
    ),
    "--sink postgres": "--sink postgres needs a database: add --postgres URL, or set LEDGEROPS_POSTGRES",
    "dead_letters": (
        "dead_letters reads rejects, which the source does not provide; it has ad_events, credits, customers, debits, "
        "transactions"
    ),
    "--out s3a://bucket/runs": (  # it would become a folder of that name
        "argument --out: not a folder: 's3a://bucket/runs'; an object store must be mounted, at the same path on "
        f"every machine{HELP}"
    ),
    "--conf executor.memory=4g": (
        f"argument --conf: not a Spark setting: 'executor.memory=4g'; write spark.NAME=VALUE{HELP}"
    ),
    "--properties-file absent.conf": "cannot read absent.conf: no such file or directory",
}
LINES_WITH_JARS = {
    f"{KAFKA} --start yesterday": (
        "invalid start: 'yesterday'; write earliest, latest or a time like 2024-03-01T10:00:00Z"
    ),
    f"{KAFKA} --plan whale": "--plan, --rate-scale and --rate are not for --source kafka, which sets its own rate",
    KAFKA: f"cannot reach Kafka at {GONE}: connection refused",
}


@pytest.mark.parametrize(("argv", "line"), LINES.items(), ids=LINES)
def test_a_run_that_cannot_be_is_refused_in_one_line(refused, tmp_path, argv, line):
    assert refused(*argv.split()) == line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("argv", "line"), LINES_WITH_JARS.items(), ids=LINES_WITH_JARS)
def test_a_server_that_is_not_asked_rightly_or_not_there_is_refused(refused, server_jars, tmp_path, argv, line):
    began = time.monotonic()
    assert refused(*argv.split()) == line
    assert time.monotonic() - began < 30  # Kafka's client of its own waits for a minute, and Spark's for longer
    assert list(tmp_path.iterdir()) == []


def test_a_postgres_that_is_not_there_is_refused(refused, server_jars):
    assert refused(*f"large_credits --sink postgres --postgres {POSTGRES}".split()) == (
        "cannot reach postgresql://me@127.0.0.1:1/ledger: connection failed: connection to server at "
        '"127.0.0.1", port 1 failed: Connection refused'
    )


def test_a_bad_plan_is_refused_with_its_line(refused, tmp_path):
    (tmp_path / "mine.yaml").write_text("seed: 1\nphases:\n  - shape: constant\n    rate: fast\n")
    assert refused("--plan", "mine.yaml").startswith("mine.yaml:4:")


def test_a_missing_data_file_is_refused_with_its_path(refused, tmp_path, monkeypatch):
    monkeypatch.setenv("LEDGEROPS_DATA", str(tmp_path))
    assert refused() == (
        f"cannot read {tmp_path}/transactions.csv: no such file or directory; "
        "LEDGEROPS_DATA must name the folder that holds transactions.csv"
    )


def test_a_port_in_use_is_refused_before_spark_starts(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refused("--port", str(port)) == (
            f"cannot use port {port}: address already in use; give another --port, or 0 for any free port"
        )


def test_a_folder_that_cannot_be_written_is_refused(refused, tmp_path):
    (tmp_path / "file").write_text("")
    (loop := tmp_path / "loop").symlink_to(loop)
    assert refused("--out", "file") == f"cannot write to {tmp_path}/file/default: not a directory"
    assert refused("--out", str(loop)) == f"cannot write to {loop}/default: too many levels of symbolic links"
    assert refused("--source", "files", "--landing", str(loop)).startswith(f"no landing folder {loop}; create it")


def test_missing_jars_are_refused_with_the_command_that_fetches_them(refused, tmp_path, monkeypatch):
    monkeypatch.setenv("LEDGEROPS_JARS", str(tmp_path / "jars"))
    assert refused(*KAFKA.split()).endswith("; run ledgerops jars to download them")
