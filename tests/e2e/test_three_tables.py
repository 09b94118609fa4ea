"""The ledger on tables: bronze from Kafka, silver from bronze, gold from silver, with the driver killed twice."""

import re
import sys
import uuid
from functools import partial
from pathlib import Path

import pytest

from ledgerops.common.kafka import reach
from ledgerops.ledger.sinks.delta_files import newest_version
from ledgerops.ledger.sources.kafka import TOPICS
from ledgerops.model.recording import read
from ledgerops.servers.process import Process
from tests.programs import finished, without_settings
from tests.topics import make

SLOW = 600
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3 * SLOW)]
TABLES = ("landed_transactions", "masked_transactions", "daily_counts")
RECORDS = 40_000
PLAN = """
start: 2026-01-01T00:00:00Z
phases: [{shape: constant, rate: 0.1}]   # a row each ten seconds: four days and a half
keys: {customers: 400, accounts: 450}
duplicates: {share: 0.01, within: 5s}
"""


@pytest.fixture
def ledgerops(tmp_path):
    """Runs ledgerops to its end, without the variables of this machine."""
    options = {"cwd": tmp_path, "env": without_settings(), "timeout": SLOW}
    return partial(finished, sys.executable, "-m", "ledgerops", **options)


def test_no_row_is_lost_or_repeated_on_its_way_through_three_tables(kafka, ledgerops, tmp_path):
    from confluent_kafka.admin import NewTopic

    prefix, folder = f"tables-{uuid.uuid4().hex[:8]}.", tmp_path / "runs"
    make(reach(kafka.client), *(NewTopic(prefix + topic, 5, 1) for topic in TOPICS.values()))
    (tmp_path / "slow.yaml").write_text(PLAN)
    source = ("--bootstrap-servers", kafka.servers, "--topic-prefix", prefix)
    sent = ledgerops("load", "slow.yaml", *source, "--records", RECORDS, "--at-once", "--manifest", "manifest.json")
    assert sent.returncode == 0, sent.stdout + sent.stderr
    usual = ("run", *TABLES, "--source", "kafka", *source, "--sink", "delta", "--no-view", "--port", "0")
    slowly = (*usual, "--out", str(folder), "--trigger", "1s", "--max-rows-per-trigger", "2000")
    for number, batches in enumerate((2, 5)):
        command = [sys.executable, "-m", "ledgerops", *slowly]
        driver = Process("the driver", command, tmp_path / f"driver-{number}.log", cwd=tmp_path)
        try:
            driver.wait_until(lambda least=batches: newest_version(gold(folder)) >= least, SLOW)
        finally:
            driver.kill()  # SIGKILL, and the JVM and the Python workers too
    again = ledgerops(*usual, "--out", folder, "--trigger", "1s", "--until-caught-up")
    assert again.returncode == 0, again.stdout + again.stderr

    [run] = folder.iterdir()
    verified = ledgerops("verify", run, "--manifest", tmp_path / "manifest.json")
    print(verified.stdout)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert re.search(r"[1-9] windows were written", verified.stdout)
    seen = [each for each in read(run / "recording") if each.kind == "tables" and each.query == "daily_counts"]
    assert "masked_transactions" in seen[-1].data["sources"]
    (run / "output" / "masked_transactions" / "_delta_log" / f"{1:020}.json").unlink()
    damaged = ledgerops("verify", run, "--manifest", tmp_path / "manifest.json")
    assert damaged.returncode == 2
    assert "has no log entry for version 1; the output is damaged" in damaged.stderr


def gold(folder: Path) -> Path:
    return next(folder.glob("*"), folder) / "output" / "daily_counts"
