"""A query from one Delta table to another under watch: what is said of them against the tables' own logs."""

import json
import subprocess
import sys
from bisect import bisect_right
from datetime import datetime

import pytest

from ledgerops.model.recording import read
from ledgerops.runtime.replay import replay
from ledgerops.servers import jars
from tests.paths import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
SECONDS = 75


@pytest.fixture(scope="module")
def run(tmp_path_factory, server_jars):
    """The folder of a run, and what it printed in the end."""
    folder = tmp_path_factory.mktemp("delta")
    command = [sys.executable, "-m", "tests.e2e.table_app", str(folder)]
    paths = ",".join(map(str, jars.delta_jars()))
    done = subprocess.run(
        [*command, paths, str(SECONDS), "delta"], cwd=ROOT, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


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


def left_of(log, offset, head):
    """What a reader at an offset has left up to a version, by the log."""
    first, index = offset["reservoirVersion"], offset["index"]
    files = [
        size for version in range(first, head + 1) for size in log[version][1][index + 1 if version == first else 0 :]
    ]
    return {
        "versions": max(0, head - first + 1),
        "files": len(files),
        "bytes": sum(files),
        "since": log[first][0] if first <= head else None,
    }


def test_backlog_and_lag_of_the_reader_equal_the_tables_own_log_at_every_moment(run):
    folder, _ = run
    log = log_of(folder / "bronze")
    seen = list(read(folder / "recording"))
    batches = [each for each in seen if each.kind == "progress" and each.data["sources"][0]["endOffset"]]
    samples = [each for each in seen if each.kind == "tables" and each.data["sources"]]
    compared = late = 0
    for sample in samples:
        said = sample.data["sources"]["bronze"]
        offset = batches[bisect_right([each.at for each in batches], sample.at) - 1].data["sources"][0]["endOffset"]
        if offset["isStartingVersion"]:
            assert said["files"] is None
            continue
        expected = left_of(log, offset, said["head"])
        if said["files"] is None:  # not all entries were read yet
            assert said["versions"] == expected["versions"]
            continue
        if any(said[name] != expected[name] for name in ("versions", "files", "bytes")):
            late += 1  # a batch has ended between the collector's turn and the line of its sample
            continue
        assert said["since"] == pytest.approx(expected["since"], abs=0.002) if expected["since"] else not said["since"]
        compared += 1
    assert compared >= 10
    assert late <= 0.2 * len(samples)
    assert max(each.data["sources"]["bronze"]["files"] or 0 for each in samples) > 10  # it had fallen behind


def test_a_new_version_is_seen_within_the_interval_of_the_questions(run):
    folder, _ = run
    log = log_of(folder / "bronze")
    samples = [each for each in read(folder / "recording") if each.kind == "tables" and each.data["sources"]]
    for sample in samples:
        head = sample.data["sources"]["bronze"]["head"]
        assert all(at > sample.at - 15 for version, (at, *_) in log.items() if version > head)


def test_rows_files_and_bytes_that_were_written_are_those_of_the_commits(run):
    folder, printed = run
    log = log_of(folder / "silver")
    totals = replay(read(folder / "recording")).registry
    commits = {
        commit["version"]: commit
        for each in read(folder / "recording")
        if each.kind == "tables"
        for commit in each.data["commits"]
    }
    assert sorted(commits) == sorted(log)
    assert sum(commit["rows"] for commit in commits.values()) == printed["rows"] == sum(row[2] for row in log.values())
    assert sum(commit["files"] for commit in commits.values()) == sum(row[3] for row in log.values())
    assert sum(commit["bytes"] for commit in commits.values()) == sum(row[4] for row in log.values())
    assert list(totals.queries) == ["silver"]


def test_the_collector_asks_the_file_system_a_bounded_number_of_times(run):
    folder, printed = run
    versions = sum(len(list((folder / table / "_delta_log").glob("*.json"))) for table in ("bronze", "silver"))
    turns = 2 * printed["seconds"] / 10  # of both tables
    assert sum(printed["asked"].values()) < 4 * versions + 4 * turns


def test_the_source_is_called_by_its_table_and_its_kind_is_known(run):
    folder, _ = run
    [state] = replay(read(folder / "recording")).registry.queries.values()
    assert [(source.name, source.kind) for source in state.history.last.sources] == [("bronze", "delta")]
    assert datetime.fromtimestamp(state.history.commits[-1].at).year >= 2026
