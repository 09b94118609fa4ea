"""`ledgerops load`: what arrives is the plan's, byte for byte, and the manifest says so."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from itertools import chain

import psutil
import pytest
from confluent_kafka.admin import NewTopic

from ledgerops.cli import main
from ledgerops.common.kafka import reach
from ledgerops.ledger.plan.manifest import read_manifest
from ledgerops.ledger.plan.plan import load_plan
from ledgerops.ledger.plan.poison import KEYLESS, MAX_VALUE_BYTES, REASONS
from ledgerops.load.generator.validity import spent
from ledgerops.servers.process import free_port
from tests import topics
from tests.load.generator.expected import expected_records
from tests.load.generator.targets import read_samples
from tests.programs import until

PLAN = """
seed: 5
start: 2026-01-01T00:00:00Z
phases: [{shape: constant, rate: 20000}]
keys: {customers: 40, accounts: 50}
partitions: {idle: [3], pinned: {partition: 1, share: 0.5}}
disorder: {late: {share: 0.05}}
duplicates: {share: 0.1}
poison: {share: 0.02}
"""
CHANGING = """
seed: 5
phases: [{shape: constant, rate: 100, duration: 5}, {shape: constant, rate: 0}]
duplicates: {share: 0.1}
changes:
  - {from: 1s, to: 4s, duplicates: {share: 0.3, conflicting: 0.5}, disorder: {future: {count: 3, ahead: 1h}}}
"""
COUNT = 20_000
ORIGIN = 0.0  # the plan says when it starts
LONG = 120.0  # seconds that nothing takes: on a busy machine another process may be slow to begin


@pytest.fixture
def plan(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(PLAN)
    return file


@pytest.fixture
def load(plan, tmp_path):
    """Runs the command; gives its exit code and the manifest."""

    def run(*argv, first=plan):
        file = tmp_path / "manifest.json"
        code = main([str(each) for each in ("load", first, "--manifest", file, *argv)])
        return code, read_manifest(file)

    return run


@pytest.fixture
def refused(refusal):
    return partial(refusal, "load")


def interrupted(begun, *argv):
    """Exit code, stdout and stderr of a load that is interrupted once `begun` says so."""
    command = [sys.executable, "-m", "ledgerops", "load", *argv, "--late-budget", "300s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: begun() or process.poll() is not None, LONG, "a load that is under way")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LONG)
        finally:
            process.kill()
    return process.returncode, out, err


def make(kafka, prefix, partitions=5, name="transactions", **config):
    topics.make(reach(kafka.client), NewTopic(prefix + name, partitions, 1, config=config))
    return prefix + name


def to(kafka, prefix):
    return ["--bootstrap-servers", kafka.servers, "--topic-prefix", prefix]


def test_the_metrics_are_served_on_the_address_in_the_setting_host(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEDGEROPS_HOST", "127.0.0.2")
    port = free_port()

    assert main(["load", "default", "--to", "out", "--records", "10", "--at-once", "--metrics-port", str(port)]) == 0

    assert f"metrics of the load on 127.0.0.2, port {port}, path /metrics" in capsys.readouterr().err


def test_a_topic_holds_what_the_plan_and_the_manifest_say_and_a_second_load_the_same_bytes(kafka, load, plan, capsys):
    expected = expected_records(load_plan(plan), ORIGIN, COUNT)
    found = []
    for prefix in ("once.", "twice."):
        topic = make(kafka, prefix)
        code, manifest = load(*to(kafka, prefix), "--records", str(COUNT), "--at-once")
        assert code == 0
        found.append(topics.read(kafka.servers, topic))

    assert found[0] == found[1]
    assert {p: each for p, each in expected.items() if each} == found[0]
    reasons = Counter(reason(*record) for each in found[0].values() for record in each)
    assert reasons == {None: COUNT, **manifest.poison}
    assert set(manifest.poison) == set(REASONS)
    assert (manifest.topic, manifest.records, manifest.summary.all.rows) == ("twice.transactions", COUNT, COUNT)
    sent = COUNT + sum(manifest.poison.values())
    assert manifest.sent.items() >= {"planned": sent, "produced": sent, "acknowledged": sent, "refused": 0}.items()
    assert f"records   {sent:,} due, {sent:,} sent, {sent:,} acknowledged, 0 refused\n" in capsys.readouterr().out


def reason(key, value):
    if value is None:
        return "tombstone"
    if key is None:
        return "null_key"
    if len(value) > MAX_VALUE_BYTES:
        return "oversized"
    try:
        row = json.loads(value)
    except ValueError:
        return "invalid_json"
    if len(row) < 8:
        return "missing_field"
    return "wrong_type" if row["amount"] == "much" else None


def test_debits_alone_go_to_their_own_topic(kafka, load):
    topic = make(kafka, "sides.", name="transactions.debits")
    code, manifest = load(*to(kafka, "sides."), "--table", "debits", "--records", "2000", "--at-once")

    records = chain.from_iterable(topics.read(kafka.servers, topic).values())
    rows = [json.loads(value) for key, value in records if reason(key, value) is None]

    assert code == 0
    assert {row["type"] for row in rows} == {"Debit"}
    assert len(rows) == manifest.summary.all.rows < manifest.records == 2000


def test_a_refused_record_is_an_error_and_not_counted_as_sent(kafka, load, plan, capsys):
    plan.write_text(PLAN.replace("{share: 0.02}", "{share: 0.02, kinds: [oversized]}"))
    make(kafka, "small.", **{"max.message.bytes": "2000"})
    code, manifest = load(*to(kafka, "small."), "--records", "500", "--duration", "1")

    assert code == 1
    assert not manifest.exact
    assert manifest.sent["refused"] > 0
    assert manifest.sent["acknowledged"] < manifest.sent["planned"]
    assert "failed: " in capsys.readouterr().err


def test_a_missing_topic_and_one_of_too_few_partitions_are_told(kafka, refused, plan):
    make(kafka, "few.", partitions=2)

    assert refused(str(plan), *to(kafka, "none.")) == (
        f"no topic none.transactions at {kafka.servers}; ledgerops topics creates the ledger's topics"
    )
    assert refused(str(plan), *to(kafka, "few.")) == (
        "topic few.transactions has 2 partitions and the load 5; create it again with that number, or "
        "change partitions in the plan"
    )


def test_a_topic_that_is_not_empty_is_pointed_out(kafka, load, capsys):
    make(kafka, "full.")
    for _ in range(2):
        _, manifest = load(*to(kafka, "full."), "--records", "100", "--at-once")
    sent = manifest.sent["planned"]

    assert capsys.readouterr().err == (
        f"ledgerops: topic full.transactions is not empty ({sent} records so far): the manifest counts only what this "
        "load adds\n"
    )


def test_the_real_transactions_go_out_as_they_are(kafka, load, data_dir):
    topic = make(kafka, "real.")
    code, manifest = load(*to(kafka, "real."), "--data", str(data_dir), "--at-once", first="replay")
    found = topics.read(kafka.servers, topic)

    assert (code, sum(map(len, found.values()))) == (0, 49_102)
    assert json.loads(found[4][0][1]) == {
        "transaction_id": "T00695247",
        "account_id": "A00002378",
        "customer_id": "C00002873",
        "event_time": "2013-01-01T09:19:27.000000Z",
        "type": "Credit",
        "operation": "Credit in Cash",
        "amount": 700.0,
        "balance": 700.0,
    }
    assert (manifest.source, manifest.plan, manifest.poison) == ("replay", "transactions.csv", {})


def test_a_landing_folder_gets_whole_files_without_what_a_file_cannot_hold(load, tmp_path, plan):
    code, manifest = load("--to", str(tmp_path / "land"), "--records", str(COUNT), "--at-once")
    files = sorted((tmp_path / "land" / "transactions").iterdir())
    lines = [line for file in files for line in file.read_bytes().splitlines()]

    assert (code, {file.suffix for file in files}) == (0, {".jsonl"})
    assert Counter(reason(b"C", line) for line in lines) == {None: COUNT, **manifest.poison}
    assert "tombstone" not in manifest.poison


def test_a_load_ends_with_its_plan_and_tells_what_is_out_of_order_in_it(load, plan, tmp_path, capsys):
    plan.write_text(CHANGING)
    code, manifest = load("--to", str(tmp_path / "land"), "--at-once")

    assert (code, manifest.records, manifest.summary.future) == (0, 500, 3)
    distinct, conflicting = manifest.summary.distinct.rows, manifest.summary.conflicting
    copies = manifest.summary.all.rows - distinct
    told = rf"rows +500 \({distinct} distinct, {copies} copies, 0 late, {conflicting} with another amount, 3 dated"
    assert re.search(told, capsys.readouterr().out)
    assert copies > conflicting > 0


def test_a_load_that_is_later_than_its_budget_is_invalid(load, plan, tmp_path, capsys):
    plan.write_text(PLAN.replace("20000", "500"))
    code, manifest = load("--to", str(tmp_path / "land"), "--records", "200", "--late-budget", "0.01ms")

    late = manifest.sent["late_seconds"]["p99"]
    why = (
        f"p99 lateness was {spent(late)} (at most 0 ms allowed): this generator cannot keep up; "
        "use more --workers or a lower --rate-scale, see ledgerops load calibrate"
    )
    assert (code, manifest.exact, manifest.sent["valid"]) == (1, True, False)
    assert f"verdict   INVALID: {why}\n" in capsys.readouterr().out
    assert manifest.sent["invalid_because"] == why


def test_a_load_on_schedule_and_within_its_budget_is_valid_and_samples_are_kept(load, plan, tmp_path, capsys):
    plan.write_text(PLAN.replace("20000", "500"))
    samples, began = tmp_path / "samples.jsonl", time.monotonic()
    argv = ["--to", tmp_path / "land", "--duration", 2, "--late-budget", "300s"]
    code, manifest = load(*argv, "--samples", samples)

    out = capsys.readouterr().out
    assert time.monotonic() - began >= 1.99
    assert (code, manifest.records) == (0, 1000)
    assert (manifest.sent["valid"], manifest.sent["invalid_because"]) == (True, None)
    assert "verdict   valid\n" in out
    assert "latency   scheduled to acknowledged: " in out
    assert {each["number"] % 5 for each in read_samples(samples)} == set(range(5))  # of every partition


def test_several_workers_send_exactly_what_one_does(load, plan, tmp_path):
    found = []
    for workers in ("1", "3"):
        folder, samples = tmp_path / workers, tmp_path / f"samples-of-{workers}.jsonl"
        argv = ["--to", folder, "--records", COUNT, "--at-once", "--workers", workers]
        code, manifest = load(*argv, "--samples", samples)
        assert (code, manifest.exact) == (0, True)
        lines = sorted(line for file in folder.rglob("*.jsonl") for line in file.read_bytes().splitlines())
        sampled = sorted(each["number"] for each in read_samples(samples))
        found.append((lines, sampled, manifest.records, manifest.summary, manifest.poison, dict(manifest.sent)))

    assert found[0] == found[1]
    assert [each.name for each in tmp_path.glob("samples-of-3*")] == ["samples-of-3.jsonl"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_load_that_is_interrupted_ends_at_one_record_with_a_manifest_of_what_was_sent(plan, tmp_path, workers):
    folder, file = tmp_path / "land", tmp_path / "manifest.json"
    argv = [str(plan), "--to", str(folder), "--manifest", str(file), "--workers", workers]
    code, out, err = interrupted(lambda: len(list(folder.rglob("*.jsonl"))) >= 2, *argv)
    manifest = read_manifest(file)
    lines = sorted(line for each in folder.rglob("*.jsonl") for line in each.read_bytes().splitlines())
    made = expected_records(load_plan(plan), ORIGIN, manifest.records, kinds=KEYLESS)

    assert (code, err) == (0, ""), out
    assert f"manifest  {file}" in out
    assert manifest.exact
    assert lines == sorted(value for each in made.values() for _, value in each)


def test_an_interrupt_while_the_workers_begin_is_no_traceback(plan, tmp_path):
    command = [sys.executable, "-m", "ledgerops", "load", str(plan), "--to", str(tmp_path / "land"), "--workers", "2"]
    command += ["--manifest", str(tmp_path / "manifest.json"), "--late-budget", "300s"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:

        def begun():
            return sum("spawn_main" in " ".join(each.cmdline()) for each in psutil.Process(process.pid).children())

        try:
            until(lambda: begun() == 2, LONG, "two workers")
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers hear it, too
            _, err = process.communicate(timeout=LONG)
        finally:
            process.kill()

    assert err == ""
    assert process.returncode in (130, 0)  # 0: they were quicker, and the load had begun


def test_a_load_at_once_ends_now_and_has_no_lateness_to_judge(load, plan, tmp_path, capsys):
    plan.write_text(PLAN.replace("start: 2026-01-01T00:00:00Z\n", ""))
    before = time.time()
    code, manifest = load("--to", tmp_path / "land", "--records", COUNT, "--at-once", "--late-budget", "0.01ms")

    assert before - 0.001 <= manifest.origin + 1 <= time.time() + 0.001  # it is told to the millisecond
    assert (code, "valid" in manifest.sent) == (0, False)
    assert "verdict" not in capsys.readouterr().out


TOO_MANY = "too many records for one load; reduce --records, --duration or --rate-scale"
TOO_FAST = "times its rates plan default sends more than 1,000,000,000 records per second; give a smaller factor"
REFUSED = {
    "--topic-prefix a.": "--kafka-config and --topic-prefix are for Kafka, not for --to",
    "--at-once": "this plan never ends, and --at-once ignores its schedule; add --records N or --duration TIME",
    "--data y": "--data is for replay; a plan generates its own rows",
    f"--at-once --records {'9' * 22}": TOO_MANY,
    "--duration 365d --rate-scale 1e5": TOO_MANY,
    "--duration 60 --rate-scale 1e308": f"at 1e+308 {TOO_FAST}",
    "--duration 1 --rate-scale 1e300": f"at 1e+300 {TOO_FAST}",
    "--at-once --records 10 --rate-scale 1e-300": (
        "at this rate the records would start before 1970; give a larger --rate-scale or fewer --records"
    ),
    "--duration 1 --samples /dev/full": "cannot write /dev/full: no space left on device",
    "--duration 1 --manifest .": "cannot write .: it is a folder",
    "--duration 1 --manifest /dev/null/manifest.json": (
        "cannot write /dev/null/manifest.json: /dev/null is not a folder"
    ),
}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        *((f"default --to x {options}", message) for options, message in REFUSED.items()),
        ("default", "no target; give either --bootstrap-servers HOST:PORT or --to FOLDER"),
        ("default --bootstrap-servers 127.0.0.1:1", "cannot reach Kafka at 127.0.0.1:1: connection refused"),
        ("replay --to x", "nothing to replay; give --data FOLDER, or set LEDGEROPS_DATA, with transactions.csv"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_sent(refused, tmp_path, argv, message):
    assert refused(*argv.split()) == message
    assert not (tmp_path / "x").exists() or "/dev/full" in argv  # of which only a write tells


def test_a_folder_that_holds_the_load_already_is_refused(load, capsys, refused, plan, tmp_path, data_dir):
    argv = ["--to", tmp_path / "land", "--data", data_dir, "--at-once"]
    code, manifest = load(*argv, first="replay")
    assert (code, manifest.data) == (0, str(data_dir.resolve()))
    capsys.readouterr()

    assert refused("replay", *argv, "--manifest", tmp_path / "manifest.json") == (
        f"{tmp_path}/land/transactions already contains this load; give another folder, or empty it"
    )
