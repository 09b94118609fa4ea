"""The numbers of findings are computed twice, by code that has nothing in common, and a wrong one is seen."""

import ast
from pathlib import Path

import orjson
import pytest

import tests.evidence.recompute as recompute
from ledgerops.diagnosis.causes import CAUSES
from ledgerops.model.recording import encode
from ledgerops.model.recording import read as read_recording
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime.replay import verdicts
from tests.build import T0, spark_json
from tests.drills.test_score import stage
from tests.evidence.numbers import compare, wrong
from tests.evidence.recompute import Compared
from tests.evidence.recompute.profile import BORN, GROWN, NORMAL, OWNED
from tests.tables import cases

PACKAGE = Path(recompute.__file__).parent
ALLOWED = ("tests.evidence.recompute", "tests.evidence.tape")
RUN = {"run_id": spark_json()["runId"]}
PLAN = RUN | {"trigger": "processing_time", "trigger_interval": 2.0}


@pytest.mark.parametrize("file", [*PACKAGE.glob("*.py"), PACKAGE.parent / "tape.py"], ids=lambda file: file.stem)
def test_it_shares_nothing_with_what_it_checks(file):
    nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
    imported = [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    imported += [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]

    assert [name for name in imported if name.startswith(("ledgerops", "tests")) and not name.startswith(ALLOWED)] == []


def test_the_parts_of_each_cause_are_recomputed():
    assert {cause.slug: cause.parts for cause in CAUSES} == OWNED
    assert {cause.slug: cause.grown for cause in CAUSES if cause.grown} == GROWN
    assert {cause.slug: cause.born for cause in CAUSES if cause.born} == BORN
    assert {cause.slug: cause.normal for cause in CAUSES if cause.normal} == NORMAL


@cases(
    "told, given, agrees",
    ("within one percent", 10.0, [10.05], True),
    ("two percent off", 10.0, [10.2], False),
    ("within a millisecond", 0.0, [0.001], True),
    ("more than a millisecond off", 0.002, [0.005], False),
    ("not in the recording", 3.0, [], False),
    ("of another sign", -5.0, [5.0], False),
    ("one of the choices that a rule has", 7.0, [3.0, 7.0], True),
)
def test_within_one_percent_is_the_same(told, given, agrees):
    assert Compared("x", told, given).agrees is agrees


def line(at, kind, data):
    return encode(at, kind, None if kind == "host" else "q", orjson.dumps(data))


def batch(at, number, seconds, **changes):
    """The progress record of a batch, most of it add_batch."""
    lasts = {"addBatch": round(900 * seconds), "triggerExecution": round(1000 * seconds)}
    changes = {"durationMs": lasts} | changes
    return line(at + seconds, "progress", spark_json(name="q", timestamp=format_instant(at), batchId=number, **changes))


def capped(read, batches):
    """A query that reads at most one file in each batch, every 2 s."""
    yield line(T0, "plan", PLAN | {"rate_limits": {"maxFilesPerTrigger": "1"}})
    for number in range(batches):
        at = T0 + 2.0 * number
        description, offsets, kind, data = read(number, at)
        source = {"description": description, "numInputRows": 100, "latestOffset": None} | offsets
        sink = {"description": "DeltaSink[/out]", "numOutputRows": -1}
        yield batch(at, number, 0.4 + number / 1000, sources=[source], sink=sink)
        yield line(at + 0.55, kind, RUN | {"batch_id": number} | data)


def files(number, at):
    """A file each 1.25 s, of which a batch reads one."""
    offsets = {"startOffset": {"logOffset": number - 1} if number else None, "endOffset": {"logOffset": number}}
    modified = T0 + 1.25 * number
    read = {"files": 1, "oldest": modified, "newest": modified, "folder_changed": at}
    return "FileStreamSource[file:/landing]", offsets, "files", {"sources": {"FileStreamSource": read}}


def commits(number, at):
    """A commit each 1 s, of which a batch reads one, and 30 small files in each commit of its own. Of the source the
    commits of the last 100 s are left."""
    offset = {"reservoirId": "t", "reservoirVersion": number, "index": -1, "isStartingVersion": False}
    read = {"head": 2 * number + 1, "versions": number + 1, "since": T0 + number, "oldest": 1}
    read["oldest_at"] = max(T0 - 60, at - 100)
    commit = {"version": number, "at": at + 0.3, "batch_id": number, "rows": 9, "files": 30, "bytes": 90_000}
    tables = {"sources": {"in": read}, "commits": [commit], "head": number, "checkpoint": None}
    return "DeltaSource[file:/in]", {"startOffset": offset, "endOffset": offset}, "tables", tables


def read_three_times(kafka):
    """By batches of 4 s at an interval of 2 s; each reading takes longer than the one before."""
    yield line(T0, "plan", PLAN | {"sink": "ForeachBatchSink"})
    for number in range(30):
        at, rows = T0 + 4.0 * number, 600 + 10 * (number % 3)
        ends = {"startOffset": {"t": {"0": 1000 * number}}, "endOffset": {"t": {"0": 1000 * number + rows}}}
        source = {"description": "KafkaV2[Subscribe[t]]", **ends} if kafka else {"description": "RateStreamV2[x]"}
        source = {"startOffset": None, "endOffset": None, "latestOffset": None, "numInputRows": 3 * rows} | source
        yield batch(at, number, 4.0, numInputRows=3 * rows, sources=[source])
        reads = {"records": rows, "records_median": rows / 2, "records_max": rows / 2, "reads_shuffle": False}
        stages = [
            stage(at) | reads | {"stage_id": place, "started": at + began, "ended": at + began + 0.9 + took}
            for place, began in enumerate((0.1, 1.2, 2.4))
            for took in [began / 20 + number / 1000]
        ]
        yield line(at + 4.01, "tasks", RUN | {"batch_id": number, "stages": stages, "python_seconds": None})


def lists_that_grow(rocksdb):
    """40 of them, which gain 10 MB in each batch."""
    zeros = ("active_tasks", "failed_tasks", "completed_tasks", "run_seconds", "gc_seconds", "memory_used_bytes")
    driver = {"executor_id": "driver", "active": True, "cores": 2, "memory_max_bytes": 10**9, **dict.fromkeys(zeros, 0)}
    host = {"cpu_count": 2, "memory_total_bytes": 2**34, "memory_available_bytes": 2**33, "disk_free_bytes": 2 * 10**9}
    host |= dict.fromkeys(("cpu_busy_ratio", "disk_total_bytes")) | {"processes": [], "executors": [driver]}
    for number in range(30):
        at, held = T0 + 3.0 * number, 50_000_000 + 10_000_000 * number
        state = {"operatorName": "stateStoreSave", "numRowsTotal": 40, "numRowsUpdated": 40, "numRowsRemoved": 0}
        state |= {"memoryUsedBytes": 9**7 * number if rocksdb else held}
        state |= {"customMetrics": {"rocksdbSstFileSize": held} if rocksdb else {}}
        yield line(at + 0.9, "host", host | {"at": at + 0.9})
        yield batch(at, number, 1.0, stateOperators=[state])


READ_AGAIN = {"times_read", "saving_seconds", "profile_seconds"}
GROWTH, OF_TABLE = {"state_bytes_per_row", "seconds_to_limit"}, ("many-small-files", "retention-risk")


@cases(
    "lines, rules, names",
    ("a cap on files", capped(files, 30), {"rate-limited", "falling-behind"}, set()),
    ("a cap on a table", capped(commits, 90), {"rate-limited", "falling-behind", *OF_TABLE}, set()),
    ("a source that is read three times, by offsets", read_three_times(True), {"input-recomputed"}, READ_AGAIN),
    ("a source that is read three times, by stages", read_three_times(False), {"input-recomputed"}, READ_AGAIN),
    ("rows that get larger on the heap", lists_that_grow(False), {"state-growth"}, GROWTH),
    ("rows that get larger on the disk", lists_that_grow(True), {"state-growth"}, GROWTH),
)
def test_every_number_is_there(tmp_path, lines, rules, names):
    (tmp_path / "recording-000001.jsonl").write_bytes(b"".join(lines))
    found = [each for each in compare(tmp_path, verdicts(read_recording(tmp_path))) if each.rule in rules]

    assert {each.rule for each in found} == rules
    assert names <= {each.compared.name for each in found}
    assert wrong(found) == ()
