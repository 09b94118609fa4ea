"""A query from one table to another under watch: what is said of them against the tables' own logs and metadata.

Iceberg has no release for the Spark that the tests use: LEDGEROPS_ICEBERG names an environment of its own, a folder
with `venv` (pyspark 4.0, orjson, psutil) and, anywhere in it, the jar of `iceberg-spark-runtime-4.0_2.13`.
"""

import json
import os
import sys
from bisect import bisect_right
from pathlib import Path

import pytest

from ledgerops.model.recording import read
from ledgerops.runtime.replay import replay
from ledgerops.servers import jars
from tests.paths import ROOT
from tests.programs import finished

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def run(folder, python, jars_, seconds, form, **environ):
    """The folder of a run, and what it printed in the end."""
    command = [python, "-m", "tests.e2e.table_app", folder, jars_, seconds, form]
    done = finished(*command, cwd=ROOT, timeout=500, env={**os.environ, **environ})
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def delta(tmp_path_factory, server_jars):
    return run(tmp_path_factory.mktemp("delta"), sys.executable, ",".join(map(str, jars.delta_jars())), 75, "delta")


@pytest.fixture(scope="module")
def iceberg(tmp_path_factory):
    place = Path(os.environ.get("LEDGEROPS_ICEBERG", "absent")).absolute()
    python, jar = place / "venv" / "bin" / "python", next(place.rglob("*iceberg-spark-runtime-*.jar"), None)
    if jar is None or not python.exists():
        pytest.skip("LEDGEROPS_ICEBERG names no environment with pyspark and the Iceberg runtime")
    return run(tmp_path_factory.mktemp("iceberg"), python, jar, 60, "iceberg", PYSPARK_PYTHON=str(python))


def samples(folder):
    """What was recorded of the tables."""
    return [each for each in read(folder / "recording") if each.kind == "tables" and each.data["sources"]]


def with_offsets(folder):
    """The same, each with the offset that the reader of the table had then."""
    seen = [each for each in read(folder / "recording") if each.kind == "progress"]
    batches = [each for each in seen if each.data["sources"][0]["endOffset"]]
    moments = [each.at for each in batches]
    for sample in samples(folder):
        yield sample, batches[bisect_right(moments, sample.at) - 1].data["sources"][0]["endOffset"]


def commits(folder):
    """The commits that were recorded, by version."""
    told = [each for each in read(folder / "recording") if each.kind == "tables"]
    return {commit["version"]: commit for each in told for commit in each.data["commits"]}


def log_of(table):
    """Version -> (time of modification, sizes of files with new rows, all rows), read from the log without our code."""
    found = {}
    for entry in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        added = [action["add"] for action in actions if "add" in action]
        rows = sum(json.loads(add["stats"])["numRecords"] for add in added)
        sizes = [add["size"] for add in added if add["dataChange"]]
        found[int(entry.stem)] = entry.stat().st_mtime, sizes, rows, len(added), sum(add["size"] for add in added)
    return found


def left_in_log(log, offset, head):
    """What a reader at an offset has left up to a version, by the log."""
    first, index = offset["reservoirVersion"], offset["index"]
    unread = {version: log[version][1] for version in range(first, head + 1)}
    files = [size for version, sizes in unread.items() for size in sizes[index + 1 if version == first else 0 :]]
    since = log[first][0] if first <= head else None
    return {"versions": max(0, head - first + 1), "files": len(files), "bytes": sum(files), "since": since}


def test_backlog_and_lag_of_a_reader_equal_the_tables_own_log_at_every_moment(delta):
    folder, _ = delta
    log = log_of(folder / "bronze")
    compared = late = 0
    for sample, offset in with_offsets(folder):
        said = sample.data["sources"]["bronze"]
        if offset["isStartingVersion"]:
            assert said["files"] is None
            continue
        expected = left_in_log(log, offset, said["head"])
        if said["files"] is None:  # not all entries were read yet
            assert said["versions"] == expected["versions"]
            continue
        if any(said[name] != expected[name] for name in ("versions", "files", "bytes")):
            late += 1  # a batch has ended between the collector's turn and the line of its sample
            continue
        assert said["since"] == pytest.approx(expected["since"], abs=0.002) if expected["since"] else not said["since"]
        compared += 1
    assert compared >= 10
    assert late <= 0.2 * len(samples(folder))
    assert max(each.data["sources"]["bronze"]["files"] or 0 for each in samples(folder)) > 10  # it had fallen behind


def test_a_new_version_is_seen_within_the_interval_of_the_questions(delta):
    folder, _ = delta
    log = log_of(folder / "bronze")
    for sample in samples(folder):
        head = sample.data["sources"]["bronze"]["head"]
        assert all(at > sample.at - 15 for version, (at, *_) in log.items() if version > head)


def test_rows_files_and_bytes_that_were_written_are_those_of_the_commits(delta):
    folder, printed = delta
    log, found = log_of(folder / "silver"), commits(folder)
    assert sorted(found) == sorted(log)
    assert sum(commit["rows"] for commit in found.values()) == printed["rows"]
    for place, name in ((2, "rows"), (3, "files"), (4, "bytes")):
        assert sum(commit[name] for commit in found.values()) == sum(row[place] for row in log.values())


def test_the_collector_asks_the_file_system_a_bounded_number_of_times(delta):
    folder, printed = delta
    versions = sum(len(list((folder / table / "_delta_log").glob("*.json"))) for table in ("bronze", "silver"))
    turns = 2 * printed["seconds"] / 10  # of both tables
    assert sum(printed["asked"].values()) < 4 * versions + 4 * turns


def test_the_source_is_called_by_its_table_and_its_kind_is_known(delta):
    folder, _ = delta
    [(name, state)] = replay(read(folder / "recording")).registry.queries.items()
    assert (name, [(each.name, each.kind) for each in state.history.last.sources]) == ("silver", [("bronze", "delta")])
    assert state.history.commits[-1].at > 1_767_225_600  # of 2026 or later


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


def left_in_snapshots(path, offset, head):
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


def test_backlog_and_lag_of_a_reader_equal_the_snapshots_at_every_moment(iceberg):
    folder, _ = iceberg
    path = snapshots_of(folder / "db" / "bronze")
    compared = late = whole = 0
    for sample, offset in with_offsets(folder):
        said = sample.data["sources"]["iceberg"]
        expected = left_in_snapshots(path, offset, said["head"])
        if {name: said[name] for name in expected} != expected:
            late += 1  # a batch has ended between the collector's turn and the line of its sample
            continue
        compared, whole = compared + 1, whole + (expected["bytes"] is not None)
    assert compared >= 10 and whole >= 3
    assert late <= 0.2 * len(samples(folder))
    assert max(each.data["sources"]["iceberg"]["files"] for each in samples(folder)) > 10  # it had fallen behind


def test_a_new_snapshot_is_seen_within_the_interval_of_the_questions(iceberg):
    folder, printed = iceberg
    path = snapshots_of(folder / "db" / "bronze")
    ids = [each["snapshot-id"] for each in path]
    for sample in samples(folder):
        newer = path[ids.index(sample.data["sources"]["iceberg"]["head"]) + 1 :]
        assert all(each["timestamp-ms"] / 1000 > sample.at - 15 for each in newer)
    assert printed["asked"]["newest"] <= 2 * (printed["seconds"] / 10 + 2)  # of both tables
    assert printed["asked"]["exists"] == printed["asked"]["status"] == 0


def test_rows_files_and_bytes_that_were_written_are_those_of_the_snapshots(iceberg):
    folder, printed = iceberg
    path, found = snapshots_of(folder / "db" / "silver"), commits(folder)
    assert sorted(found) == sorted(each["snapshot-id"] for each in path)
    [state] = replay(read(folder / "recording")).registry.queries.values()
    assert state.totals.counters["ledgerops_output_rows_total"] == {(): printed["rows"]}
    for unit, name in (("files", "added-data-files"), ("bytes", "added-files-size")):
        assert sum(each[unit] for each in found.values()) == sum(int(each["summary"][name]) for each in path)
