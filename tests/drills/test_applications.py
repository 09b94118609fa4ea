"""The applications of drawn drills run by themselves, with plain Spark and nothing else."""

import importlib
import json
import runpy
import sys
import time
from pathlib import Path

import pytest

import ledgerops.drills as drills

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
APPLICATIONS = Path(drills.__file__).parent / "applications"
NAMES = sorted(file.stem for file in APPLICATIONS.glob("*.py") if file.stem != "outside")
ROWS = 40
MAX_BATCH_SECONDS = 120.0  # on a busy machine


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """The module that applications share, in an empty folder with two inputs; what it serves ends after one batch."""
    for folder in ("input", "second"):
        (tmp_path / folder).mkdir()
        rows = [
            {"id": str(number), "key": str(number % 5), "amount": number / 10, "event_time": "2026-11-22T10:00:00Z"}
            for number in range(ROWS)
        ]
        (tmp_path / folder / "part.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "plan.yaml").write_text("seed: 11\nstart: now\nphases: [{shape: constant, rate: 100}]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OUTSIDE", str(tmp_path / "outside.json"))
    monkeypatch.syspath_prepend(str(APPLICATIONS))
    module = importlib.import_module("outside")
    served = []

    def serve(spark, opts, *begins):
        for begin in begins:
            query = begin()
            limit = time.monotonic() + MAX_BATCH_SECONDS
            while not any(progress["numInputRows"] for progress in query.recentProgress):
                assert query.exception() is None
                assert time.monotonic() < limit, "no batch with rows"
                time.sleep(0.05)
            served.append(query)
            query.stop()

    monkeypatch.setattr(module, "serve", serve)
    module.served = served
    yield module
    del sys.modules["outside"]


@pytest.mark.parametrize("name", NAMES)
def test_an_application_processes_rows(spark, outside, monkeypatch, tmp_path, name):
    source = "files" if name in ("merged", "payments") else "rate"
    argv = [f"{name}.py", "--source", source, "--trigger", "500 milliseconds", "--name", f"app_{name}"]
    for place in ("input", "second", "checkpoint", "output"):  # the JVM has a working directory of its own
        argv += [f"--{place}", str(tmp_path / place)]
    monkeypatch.setattr(sys, "argv", argv)
    shuffle = spark.conf.get("spark.sql.shuffle.partitions")

    runpy.run_path(str(APPLICATIONS / f"{name}.py"), run_name="__main__")

    spark.conf.set("spark.sql.shuffle.partitions", shuffle)
    assert len(outside.served) == (2 if name == "reports" else 1)
