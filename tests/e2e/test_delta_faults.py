"""Faults of a query from one Delta table to another: the first line and the first step, live and from the event log."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ledgerops.errors import UserError
from ledgerops.servers import jars
from tests.paths import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture
def told(tmp_path):
    """`told(fault, seconds)`: what `ledgerops diagnose` says of it live and from the event log."""
    try:
        jars.fetch()
    except UserError as error:
        if os.environ.get("LEDGEROPS_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(str(error))

    def run(fault, seconds):
        command = [sys.executable, "-m", "tests.e2e.table_faults", str(tmp_path)]
        command += [",".join(map(str, jars.delta_jars())), fault, str(seconds)]
        live = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
        assert live.returncode == 0, live.stderr[-3000:]
        later = subprocess.run(
            [sys.executable, "-m", "ledgerops", "diagnose", "--from", str(tmp_path / "eventlog")],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        print(live.stdout, later.stdout)
        return live.stdout, later.stdout

    return run


@pytest.mark.parametrize(
    ("fault", "seconds", "said", "first"),
    [
        pytest.param(
            "schema",
            60,
            "the schema of the source changed, and the query stopped to continue with the new one",
            "start the query again with the same checkpoint",
            id="a column is added to the source",
        ),
        pytest.param(
            "conflict",
            60,
            "another writer added rows to the table while the batch was being committed",
            "start the query again with the same checkpoint",
            id="another writer changes the table",
        ),
        pytest.param(
            "vacuumed",
            40,
            "a file that the source lists is gone, most often because of VACUUM or a rule of the object store",
            "stop VACUUM, snapshot expiry and lifecycle rules on the source, and keep the checkpoint",
            id="files are gone",
        ),
    ],
)
def test_a_failure_is_named_live_and_from_the_event_log(told, fault, seconds, said, first):
    for text in told(fault, seconds):
        assert "critical query-failed  silver" in text
        assert said in text and first in text


def test_a_cap_that_binds_is_named_with_the_option_and_a_number(told):
    live, _ = told("cap", 120)

    assert "falling-behind  silver" in live or "rate-limited  silver" in live
    assert "raise maxFilesPerTrigger to about" in live


def test_many_small_files_are_named(told):
    live, _ = told("small_files", 110)

    assert "info many-small-files  silver, sink DeltaSink" in live
    assert "files of" in live and "by the last" in live


def test_of_a_healthy_query_nothing_is_said(told):
    live, _ = told("healthy", 90)

    assert "nothing found" in live
