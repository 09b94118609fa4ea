"""A query from one Iceberg table to another under watch: what is said of them against the tables' own metadata.

Iceberg has no release for the Spark that the tests use: LEDGEROPS_ICEBERG names an environment of its own, a folder
with `venv` (pyspark 4.0, orjson, psutil) and, anywhere in it, the jar of `iceberg-spark-runtime-4.0_2.13`.
"""

import json
import os
import subprocess
from bisect import bisect_right
from pathlib import Path

import pytest

from ledgerops.model.recording import read
from ledgerops.runtime.replay import replay
from tests.paths import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
SECONDS = 60


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run, and what it printed in the end."""
    place = Path(os.environ.get("LEDGEROPS_ICEBERG", "absent"))
    jar = next(place.rglob("*iceberg-spark-runtime-*.jar"), None)
    if jar is None or not (place / "venv" / "bin" / "python").exists():
        pytest.skip("LEDGEROPS_ICEBERG names no environment with pyspark and the Iceberg runtime")
    python = str(place.absolute() / "venv" / "bin" / "python")
    folder = tmp_path_factory.mktemp("iceberg")
    done = subprocess.run(
        [python, "-m", "tests.e2e.table_app", str(folder), str(jar.absolute()), str(SECONDS), "iceberg"],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": python},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


def snapshots_of(table):
    """The snapshots by the newest metadata file, oldest first, read without our code; each has one parent."""
    newest = max((table / "metadata").glob("v*.metadata.json"), key=lambda file: int(file.name[1:].split(".")[0]))
    known = json.loads(newest.read_text())
    by_id = {each["snapshot-id"]: each for each in known["snapshots"]}
    path, at = [], known["current-snapshot-id"]
    while at is not None:
        path.append(by_id[at])
        at = by_id[at].get("parent-snapshot-id")
    return path[::-1]


def left_of(path, offset, head):
    """What a reader at an offset has left up to a snapshot."""
    ids = [each["snapshot-id"] for each in path]
    wanted = path[ids.index(offset["snapshot_id"]) : ids.index(head) + 1]
    added = [int(each["summary"]["added-data-files"]) for each in wanted]
    first = max(0, added[0] - offset["position"])
    unread = wanted if first else wanted[1:]
    known = first in (0, added[0])  # bytes and rows of a snapshot that was read in part are not
    return {
        "versions": len(unread),
        "files": first + sum(added[1:]),
        "bytes": sum(int(each["summary"]["added-files-size"]) for each in unread) if known else None,
        "rows": sum(int(each["summary"]["added-records"]) for each in unread) if known else None,
        "since": unread[0]["timestamp-ms"] / 1000 if unread else None,
    }


def samples_of(folder):
    return [each for each in read(folder / "recording") if each.kind == "tables" and each.data["sources"]]


def test_backlog_and_lag_of_the_reader_equal_the_tables_own_history_at_every_moment(run):
    folder, _ = run
    path = snapshots_of(folder / "db" / "bronze")
    seen = list(read(folder / "recording"))
    batches = [each for each in seen if each.kind == "progress" and each.data["sources"][0]["endOffset"]]
    compared = late = whole = 0
    for sample in samples_of(folder):
        said = sample.data["sources"]["iceberg"]
        offset = batches[bisect_right([each.at for each in batches], sample.at) - 1].data["sources"][0]["endOffset"]
        expected = left_of(path, offset, said["head"])
        if {name: said[name] for name in expected} != expected:
            late += 1  # a batch has ended between the collector's turn and the line of its sample
            continue
        compared, whole = compared + 1, whole + (expected["bytes"] is not None)
    assert compared >= 10 and whole >= 3
    assert late <= 0.2 * len(samples_of(folder))
    assert max(each.data["sources"]["iceberg"]["files"] for each in samples_of(folder)) > 10  # it had fallen behind


def test_a_new_snapshot_is_seen_within_the_interval_of_the_questions(run):
    folder, printed = run
    path = snapshots_of(folder / "db" / "bronze")
    ids = [each["snapshot-id"] for each in path]
    for sample in samples_of(folder):
        newer = path[ids.index(sample.data["sources"]["iceberg"]["head"]) + 1 :]
        assert all(each["timestamp-ms"] / 1000 > sample.at - 15 for each in newer)
    assert printed["asked"]["refresh"] <= 2 * (printed["seconds"] / 10 + 2)  # of both tables
    assert printed["asked"]["exists"] == printed["asked"]["status"] == 0


def test_rows_files_and_bytes_that_were_written_are_those_of_the_commits(run):
    folder, printed = run
    path = snapshots_of(folder / "db" / "silver")
    commits = {
        commit["version"]: commit
        for each in read(folder / "recording")
        if each.kind == "tables"
        for commit in each.data["commits"]
    }
    assert sorted(commits) == sorted(each["snapshot-id"] for each in path)
    [state] = replay(read(folder / "recording")).registry.queries.values()
    assert state.totals.counters["ledgerops_output_rows_total"] == {(): printed["rows"]}
    for unit, name in (("files", "added-data-files"), ("bytes", "added-files-size")):
        assert sum(each[unit] for each in commits.values()) == sum(int(each["summary"][name]) for each in path)
