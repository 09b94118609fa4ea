"""`ledgerops run` as a person starts it: in a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta
from functools import partial

import duckdb
import psutil
import pytest

from ledgerops.common.kafka import reach
from ledgerops.ledger.sinks.committed import committed_files
from ledgerops.ledger.sources.kafka import TOPICS
from ledgerops.servers.process import Guard
from tests import topics
from tests.programs import until, without_settings
from tests.serving import fetched

SLOW = 600  # seconds for what takes ten on an idle machine: a build machine may run other things
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3 * SLOW)]
TWO_JOBS = ("large_credits", "daily_counts")
STEADY = ("run", "large_credits", "--port", "0", "--no-view", "--trigger", "1s")


class Ledgerops:
    """A process of ledgerops in a folder, without the variables of this machine; its output goes to files."""

    def __init__(self, folder, name, *argv, **variables):
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        with self._out.open("w") as out, self._err.open("w") as err:
            begun, env = [sys.executable, "-m", "ledgerops", *argv], without_settings(**variables)
            self.process = subprocess.Popen(begun, cwd=folder, env=env, stdout=out, stderr=err, start_new_session=True)
        self.guard = Guard(self.process.pid)

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
        each.guard.release()


@pytest.fixture
def refused(refusal):
    return partial(refusal, "run")


def queries(url):
    return [query["query"] for query in json.loads(fetched(f"{url}/status", SLOW))["queries"]]


def committed(folder):
    """The newest batch that a checkpoint has committed, -1 before the first."""
    return max((int(each.name) for each in folder.glob("commits/*") if each.name.isdigit()), default=-1)


def test_two_jobs_run_are_served_and_end_after_the_duration(command, tmp_path):
    run = command("run", *TWO_JOBS, "--duration", "25", "--port", "0", "--out", "runs")
    url = run.url()
    until(lambda: queries(url) == sorted(TWO_JOBS), 20, "both jobs on /status")

    assert run.ended() == 0, run.err
    assert run.err.splitlines() == ["starting Spark and 2 jobs ..."]
    for part in (
        "large_credits, daily_counts on the embedded source, plan default",
        "\ndaily_counts: ",
        "reached --duration 0:25",
        "output      runs/default/output/JOB",
        "next: ledgerops diagnose runs/default/recording",
    ):
        assert part in run.out
    assert "\x1b" not in run.out
    folder = tmp_path / "runs" / "default"
    assert list((folder / "recording").iterdir())
    assert (folder / "spark.log").stat().st_size > 0


# Spark gives the process of a source ten seconds to connect
SLOW_IMPORTS = """
import os, sys, time
if "python_streaming_source_runner" in " ".join(sys.orig_argv):
    time.sleep(12)
"""


def test_every_job_of_the_default_runs_though_the_processes_of_its_sources_are_slow_to_import(command, tmp_path):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "sitecustomize.py").write_text(SLOW_IMPORTS)
    path = os.pathsep.join([str(tmp_path / "slow"), os.environ.get("PYTHONPATH", "")])
    run = command("run", "--port", "0", PYTHONPATH=path)
    names, checkpoints = queries(run.url()), tmp_path / "runs" / "default" / "checkpoints"
    until(lambda: all(committed(checkpoints / name) >= 1 for name in names), SLOW, "two batches of every job")
    run.process.send_signal(signal.SIGTERM)

    assert run.ended() == 0, run.err
    assert len(names) == 3
    assert "failed" not in run.out + run.err


def test_a_run_that_is_terminated_ends_in_order_and_goes_on_where_it_ended(command, tmp_path):
    folder = tmp_path / "runs" / "default"
    checkpoint = folder / "checkpoints" / "large_credits"
    first = command(*STEADY)
    url = first.url()
    until(lambda: committed(checkpoint) >= 1, SLOW, "two batches")
    until(lambda: "ledgerops_batches_total" in fetched(f"{url}/metrics", SLOW), SLOW, "a batch on /metrics")
    first.process.send_signal(signal.SIGTERM)

    assert first.ended() == 0, first.err
    assert ": terminated\n" in first.out
    assert "Traceback" not in first.err
    assert list((folder / "output" / "large_credits").glob("*.parquet"))

    note, done = (folder / "run.json").read_text(), committed(checkpoint)
    second = command(*STEADY)
    second.url()
    until(lambda: committed(checkpoint) > done, SLOW, "a batch after the restart")
    other = command(*STEADY)

    assert other.ended() == 2
    assert re.fullmatch(r"ledgerops: .*/runs/default is in use by process \d+; stop that run, or .*\n", other.err)

    second.process.send_signal(signal.SIGINT)

    assert second.ended() == 0, second.err
    assert "resuming the run that began" in second.out
    assert ": interrupted\n" in second.out
    assert (folder / "run.json").read_text() == note


# one run after the other: each goes on where the one before it ended
WAYS = (
    ("only the JVM is killed", signal.SIGKILL, False, "Spark has ended"),
    ("only the JVM is terminated", signal.SIGTERM, False, "Spark has ended"),
    ("terminated with its JVM", signal.SIGTERM, True, "terminated"),
)


def test_a_run_whose_jvm_ends_says_so_and_goes_on_where_it_ended(command, tmp_path):
    checkpoint = tmp_path / "runs" / "default" / "checkpoints" / "large_credits"
    for way, number, both, reason in WAYS:
        before = committed(checkpoint)
        run = command(*STEADY)
        run.url()
        until(lambda least=before + 1: committed(checkpoint) >= least, SLOW, f"a batch: {way}")
        java = {"name": "java", "ppid": run.process.pid}
        [jvm] = [each for each in psutil.process_iter([*java]) if each.info == java]
        if both:
            run.process.send_signal(number)
        jvm.send_signal(number)

        assert run.ended() == (0 if both else 1), (way, run.err)
        assert f": {reason}\n" in run.out, way
        assert "ledgerops/cli" not in run.err, way  # no traceback of its own; a thread of PySpark's may print one
        assert re.findall("failed: (.*):", run.err) == ([] if both else ["Spark: its JVM has ended"]), way

    done = committed(checkpoint)
    last = command(*STEADY)
    last.url()
    until(lambda: committed(checkpoint) > done, SLOW, "a batch after the restart")


def test_a_replay_ends_by_itself_when_the_file_is_worked_off(command, tmp_path):
    header = "trans_id,account_id,type,operation,amount,balance,k_symbol,fulldatewithtime,customer_id\n"
    rows = [
        f"T{n:08},A{n % 7:08},Credit,Credit in Cash,50000.00,1.00,,2013-01-01T{n % 24:02}:00:00,C{n % 5:08}\n"
        for n in range(200)
    ]
    (tmp_path / "transactions.csv").write_text(header + "".join(rows))
    run = command("run", "large_credits", "--port", "0", "--no-view", "--rate", "100", LEDGEROPS_DATA=str(tmp_path))

    assert run.ended() == 0, run.err
    assert "processed everything" in run.out
    assert f"a replay of {tmp_path}/transactions.csv" in run.out
    assert list((tmp_path / "runs" / "replay" / "output" / "large_credits").glob("*.parquet"))


KAFKA = ("--source", "kafka", "--bootstrap-servers")


class Bank:
    """The ledger's topics under a prefix of their own, and what was sent to them."""

    def __init__(self, kafka):
        from confluent_kafka import Producer

        self.kafka, self.prefix = kafka, f"bank-{uuid.uuid4().hex[:8]}."
        self.admin, self._producer = reach(kafka.client), Producer(kafka.client.librdkafka())
        self.make(*TOPICS)

    def make(self, *tables):
        from confluent_kafka.admin import NewTopic

        news = [NewTopic(self.prefix + TOPICS[table], 1 if table == "customers" else 5, 1) for table in tables]
        topics.make(self.admin, *news)

    def delete(self, table):
        for done in self.admin.delete_topics([self.prefix + TOPICS[table]]).values():
            done.result(30)

    def send(self, table, *records):
        for key, value in records:
            self._producer.produce(self.prefix + TOPICS[table], key=key, value=value)
        assert self._producer.flush(30) == 0


@pytest.fixture
def bank(kafka):
    return Bank(kafka)


def paid(number, **changed):
    """Key and value of a large credit."""
    at = f"2024-03-01T10:{number % 60:02}:00.5Z"
    fields = {"transaction_id": f"T{number}", "account_id": "A1", "customer_id": f"C{number % 7}", "event_time": at}
    fields |= {"type": "Credit", "operation": None, "amount": 50_000.25, "balance": 1, **changed}
    given = {name: value for name, value in fields.items() if value is not ...}
    return given.get("customer_id"), json.dumps(given).encode()


POISON = {
    "invalid_json": ("C1", b"{"),
    "missing_field": paid(900, amount=...),
    "wrong_type": paid(901, amount="much"),
    "oversized": paid(902, operation="x" * 70_000),
    "null_key": (None, paid(903)[1]),
    "tombstone": ("C1", None),
}


def rows(folder, job, columns):
    files = [str(file) for file in committed_files(folder / "output" / job)]
    return duckdb.execute(f"SELECT {columns} FROM read_parquet(?) ORDER BY ALL", [files]).fetchall()


def test_a_run_on_kafka_reads_all_once_over_restarts_and_keeps_poison_aside(bank, command, refused, tmp_path):
    (tmp_path / "client.properties").write_text(
        "security.protocol=PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=clerk\nsasl.password=open-sesame-1\n"
    )
    kafka = (*KAFKA, bank.kafka.servers, "--topic-prefix", bank.prefix, "--kafka-config", "client.properties")
    argv = ("run", "large_credits", "dead_letters", *kafka, "--until-caught-up")
    usual = ("--no-view", "--port", "0", "--trigger", "1s")
    folder = tmp_path / "runs" / f"kafka-{bank.prefix.rstrip('.')}"
    bank.send("transactions", *(paid(n) for n in range(40)), *POISON.values())
    bank.send("customers", ("C1", b"[]"))
    first = command(*argv, *usual)

    assert first.ended() == 0, first.err
    assert "caught up" in first.out
    assert f"on Kafka at {bank.kafka.servers}; " in first.out
    assert rows(folder, "large_credits", "count(*), count(DISTINCT transaction_id), sum(amount)::TEXT") == [
        (40, 40, "2000010.00")
    ]
    letters = rows(folder, "dead_letters", "reason, topic, value_length, octet_length(value)")
    sizes = {reason: len(value) if value is not None else None for reason, (_, value) in POISON.items()}
    expected = [
        (reason, f"{bank.prefix}transactions", size, None if size is None else min(size, 1024))
        for reason, size in sizes.items()
    ]
    assert letters == sorted([*expected, ("invalid_json", f"{bank.prefix}customers", 2, 2)])
    counted = [
        row
        for file in (folder / "recording").iterdir()
        for line in file.read_text().splitlines()
        for name, row in json.loads(line)["data"].get("observedMetrics", {}).items()
        if name == "ledgerops_rejects_transactions" and json.loads(line)["query"] == "large_credits"
    ]
    assert {reason: sum(row[f"rejected_{reason}"] for row in counted) for reason in POISON} == dict.fromkeys(POISON, 1)

    bank.send("transactions", *(paid(n) for n in range(40, 50)))
    second = command(*argv, *usual, "--start", "latest", "--cores", "1")

    assert second.ended() == 0, second.err
    assert "--start latest applies only to jobs without a checkpoint; the others resume from theirs" in second.out
    assert rows(folder, "large_credits", "count(*), count(DISTINCT transaction_id)") == [(50, 50)]
    assert len(rows(folder, "dead_letters", "topic")) == len(letters)
    for file in folder.rglob("*"):
        if file.is_file() and file.suffix not in (".parquet", ".crc"):
            assert b"open-sesame" not in file.read_bytes(), file
    assert "open-sesame" not in first.out + first.err + second.out + second.err

    moment = datetime.now(UTC) - timedelta(seconds=1)  # the run that ended took longer
    bank.send("transactions", *(paid(n) for n in range(50, 53)))
    begin = ("--fresh", "--start", moment.isoformat())
    third = command("run", "large_credits", *kafka, "--until-caught-up", *usual, *begin)

    assert third.ended() == 0, third.err
    assert rows(folder, "large_credits", "transaction_id") == [("T50",), ("T51",), ("T52",)]

    again = ("large_credits", *kafka, "--out", str(tmp_path / "runs"))
    assert refused(*again, "--sink", "kafka") == (
        f"{folder} holds a run that wrote to parquet, not to kafka {bank.kafka.servers} {bank.prefix}; "
        "add --fresh to start over, or give another folder with --out"
    )
    bank.delete("transactions")
    until(lambda: bank.prefix + "transactions" not in bank.admin.list_topics(timeout=30).topics, SLOW, "its end")
    bank.make("transactions")
    assert refused(*again) == (
        f"topic {bank.prefix}transactions was deleted and created again since the last run, so the offsets in "
        "the checkpoint are not valid; "
        "add --fresh to start over, or give another folder with --out"
    )


def test_a_run_on_a_landing_folder_takes_new_files_only(command, tmp_path):
    landing = tmp_path / "landing [1]"  # characters that mean something in a pattern
    (landing / "transactions").mkdir(parents=True)
    lines = b"\n".join([*(paid(n)[1] for n in range(20)), b"", b"{}", POISON["wrong_type"][1]])
    (landing / "transactions" / "one.jsonl").write_bytes(lines)
    (landing / "transactions" / "two.jsonl.part").write_bytes(paid(99)[1])
    argv = ("run", "--source", "files", "--landing", str(landing), "large_credits", "dead_letters")
    usual = ("--until-caught-up", "--no-view", "--port", "0", "--trigger", "1s")
    folder = tmp_path / "runs" / "files"

    assert command(*argv, *usual).ended() == 0
    (landing / "transactions" / "two.jsonl.part").rename(landing / "transactions" / "two.jsonl")
    (landing / "customers").mkdir()
    (landing / "customers" / "one.jsonl").write_bytes(b"oh\n")
    second = command(*argv, *usual)

    assert second.ended() == 0, second.err
    assert rows(folder, "large_credits", "count(*), count(DISTINCT transaction_id)") == [(21, 21)]
    assert rows(folder, "dead_letters", 'reason, topic, "partition", "offset"') == [
        ("invalid_json", "customers/one.jsonl", None, None),
        ("missing_field", "transactions/one.jsonl", None, None),
        ("wrong_type", "transactions/one.jsonl", None, None),
    ]
