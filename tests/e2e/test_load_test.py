"""`ledgerops load test` with Spark."""

import json
from pathlib import Path

import pytest

from ledgerops.analysis.inputs import open_source
from ledgerops.cli import main
from ledgerops.model.spark_progress import parse_instant, parse_progress

pytestmark = pytest.mark.spark


def processed(document, recording):
    """Rows of the batches that ended in the measured part, after the first of them, over the rows that came in that
    time: 200 a second. After a slow start it is more than one."""
    begin = parse_instant(document["began"]) + document["warm_up_seconds"]
    seen = open_source(str(recording)).observations
    batches = [parse_progress(each.data) for each in seen if each.kind == "progress"]
    inside = [each for each in batches if begin <= each.ended <= begin + document["measured_seconds"]]
    return sum(each.rows for each in inside[1:]) / (200.0 * (inside[-1].ended - inside[0].ended))


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
    document = json.loads((folder / "test.json").read_text())
    [job] = document["jobs"]
    assert job["offered_rows_per_second"] == pytest.approx(200.0)
    assert job["processed_ratio"] == pytest.approx(processed(document, folder / "run" / "recording"), rel=0.02)
    assert job["latency_seconds"]["p50"] >= job["batch_seconds"]["p50"] / 2
    assert not (folder / "run" / "output").exists()
    assert (folder / "run" / "recording").is_dir()
