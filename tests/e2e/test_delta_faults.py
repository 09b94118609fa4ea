"""Faults of queries on Delta tables: the first line and the first step, live, from the recording and the event log."""

import json
import re

import pytest

from ledgerops.servers import jars
from tests.programs import finished, python
from tests.tables import cases

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1500)]
FULL_BYTES = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a small file system in `full`, where one may be mounted."""
    made = tmp_path_factory.mktemp("faults")
    full = made / "full"
    full.mkdir()
    if finished("mount", "-t", "tmpfs", "-o", f"size={FULL_BYTES}", "tmpfs", full).returncode != 0:
        full.rmdir()
    yield made
    if full.is_dir():
        finished("umount", full)


@pytest.fixture(scope="module")
def live(folder, server_jars):
    """By fault, what `ledgerops diagnose` said while the query ran."""
    done = python("-m", "tests.e2e.table_faults", folder, ",".join(map(str, jars.delta_jars())), timeout=1400)
    assert done.returncode == 0, done.stderr[-3000:]
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {each["fault"]: each["live"] for each in told}


def later(folder, where, query):
    """What is said of a query afterwards, from the recording or the event log."""
    return python("-m", "ledgerops", "diagnose", "--from", folder / where, "--query", query, timeout=120).stdout


@cases(
    "fault, said, first",
    (
        "a column is added to the source",
        "schema",
        "the schema of the source changed, and the query stopped to continue with the new one",
        "start the query again with the same checkpoint",
    ),
    (
        "another writer changes the table",
        "conflict",
        "another writer added rows to the table while the batch was being committed",
        "start the query again with the same checkpoint",
    ),
    (
        "files are gone",
        "vacuumed",
        "a file that the source lists is gone, most often because of VACUUM or a rule of the object store",
        "stop VACUUM, snapshot expiry and lifecycle rules on the source, and keep the checkpoint",
    ),
    ("no space for Parquet files", "full_parquet", "a disk is full", "free space on the disk that the exception names"),
    ("no space for a Delta table", "full_delta", "a disk is full", "free space on the disk that the exception names"),
)
def test_a_failure_is_named_live_and_from_the_recording_and_the_event_log(folder, live, fault, said, first):
    if fault.startswith("full") and not (folder / "full").is_dir():
        pytest.skip("no file system may be mounted here")
    for text in (live[fault], later(folder, "recording", fault), later(folder, "eventlog", fault)):
        assert f"critical query-failed  {fault}" in text
        assert said in text and first in text


def test_a_reader_that_is_overloaded_is_named(folder, live):
    for text in (live["overload"], later(folder, "recording", "overload")):
        assert re.search(r"(warning|critical) (input-overload|falling-behind)  overload", text)


def test_the_number_that_is_advised_for_a_cap_is_enough(live):
    assert re.search(r"(warning|critical) rate-limited  cap, source bronze", live["cap"])
    assert re.search(r"caught up with \d+: True", live["cap"])


def test_many_small_files_are_named(folder, live):
    for text in (live["small_files"], later(folder, "recording", "small_files")):
        assert re.search(r"(many-small-files|slow-sink)  small_files", text)
        assert "files of" in text


def test_of_a_healthy_query_nothing_is_said(live):
    assert "nothing found" in live["healthy"]
