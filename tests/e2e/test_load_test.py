"""`ledgerops load test` with Spark."""

import json
from pathlib import Path

import pytest

from ledgerops.cli import main

pytestmark = pytest.mark.spark


def test_a_light_load_passes_with_spark(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # a light load, generous objectives, and time for five batches: a build machine may run other things
    slos = [each for text in ("p99 latency < 30s", "processed > 50%", "state < 1GB") for each in ("--slo", text)]
    argv = ["load", "test", "--job", "large_credits", "--rate", "200", "--trigger", "1s", "--duration", "14s", *slos]
    code = main(argv)
    told = capsys.readouterr()
    assert code == 0, told
    assert told.out.startswith("large_credits  PASSED: p99 latency ")
    [folder] = Path("runs").glob("test-*")
    [job] = json.loads((folder / "test.json").read_text())["jobs"]
    assert job["offered_rows_per_second"] == pytest.approx(200.0)
    assert job["processed_ratio"] == pytest.approx(1.0, abs=0.3)
    assert job["latency_seconds"]["p50"] >= job["batch_seconds"]["p50"] / 2
    assert not (folder / "run" / "output").exists()
    assert (folder / "run" / "recording").is_dir()
