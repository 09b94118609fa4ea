"""The numbers of findings are computed twice, by code that has nothing in common, and a wrong one is seen."""

import ast
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

import tests.evidence.recompute as recompute
from ledgerops.diagnosis.causes import CAUSES
from ledgerops.diagnosis.rules import RULES
from ledgerops.drills.scoring.score import replay
from ledgerops.model.recording import encode
from ledgerops.model.recording import read as read_recording
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime.replay import verdicts
from tests.build import T0, spark_json
from tests.drills.test_score import NAMES, made, stage
from tests.evidence.numbers import compare, wrong
from tests.evidence.recompute import Compared
from tests.evidence.recompute.profile import BORN, GROWN, NORMAL, OWNED

PACKAGE = Path(recompute.__file__).parent
ALLOWED = ("tests.evidence.recompute", "tests.evidence.tape")


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


def test_every_number_of_a_slow_sink_is_there(tmp_path):
    bundle = made(tmp_path, NAMES["main"])
    found = list(compare(bundle.recording, replay(bundle)))

    assert {number.rule for number in found} >= {"slow-sink", "trigger-overrun"}
    assert wrong(found) == ()


def test_findings_whose_numbers_are_not_in_the_recording_are_seen(tmp_path):
    bundle = made(tmp_path, NAMES["main"])

    def tenth_more(finding):
        return replace(finding, evidence=tuple(replace(each, value=each.value * 1.1) for each in finding.evidence))

    lying = (replace(each, findings=tuple(map(tenth_more, each.findings))) for each in replay(bundle))

    told = {" ".join(line.split()[:2]) for line in wrong(compare(bundle.recording, lying))}
    assert {"slow-sink: after_tasks_seconds", "slow-sink: profile_seconds"} <= told


def recorded(folder, lines):
    """The numbers of all findings of a recording of these lines."""
    (folder / "recording-000001.jsonl").write_bytes(b"".join(lines))
    return list(compare(folder, verdicts(read_recording(folder))))


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


@pytest.mark.parametrize(
    ("reads", "batches", "rules"),
    [
        pytest.param(files, 30, set(), id="a cap on files"),
        pytest.param(commits, 90, {"many-small-files", "retention-risk"}, id="a table"),
    ],
)
def test_every_number_of_a_capped_source_is_there(tmp_path, reads, batches, rules):
    """Of a query that reads at most one file in each batch, every 2 s."""
    run = {"run_id": spark_json()["runId"]}
    plan = {"trigger": "processing_time", "trigger_interval": 2.0, "rate_limits": {"maxFilesPerTrigger": "1"}}
    lines = [encode(T0, "plan", "capped", orjson.dumps(run | plan))]
    for number in range(batches):
        at = T0 + 2.0 * number
        description, offsets, kind, read = reads(number, at)
        record = spark_json(
            name="capped",
            timestamp=format_instant(at),
            batchId=number,
            durationMs={"addBatch": 300 + number, "triggerExecution": 400 + number},
            sources=[{"description": description, "numInputRows": 100, "latestOffset": None, **offsets}],
            sink={"description": "DeltaSink[/out]", "numOutputRows": -1},
        )
        lines.append(encode(at + 0.43, "progress", "capped", orjson.dumps(record)))
        lines.append(encode(at + 0.5, kind, "capped", orjson.dumps({**run, "batch_id": number, **read})))

    found = recorded(tmp_path, lines)

    assert {number.rule for number in found} == {"rate-limited", "falling-behind", *rules}
    assert wrong(found) == ()


@pytest.mark.parametrize(
    ("told", "given", "agrees"),
    [
        pytest.param(10.0, [10.05], True, id="within one percent"),
        pytest.param(10.0, [10.2], False, id="two percent off"),
        pytest.param(0.0, [0.001], True, id="within a millisecond"),
        pytest.param(0.002, [0.005], False, id="more than a millisecond off"),
        pytest.param(3.0, [], False, id="not in the recording"),
        pytest.param(-5.0, [5.0], False, id="of another sign"),
        pytest.param(7.0, [3.0, 7.0], True, id="one of the choices that a rule has"),
    ],
)
def test_within_one_percent_is_the_same(told, given, agrees):
    assert Compared("x", told, given).agrees is agrees


def test_every_rule_says_how_its_numbers_are_computed():
    assert [rule.slug for rule in RULES if "\nEvidence:" not in rule.runbook] == []


@pytest.mark.parametrize("kafka", [pytest.param(True, id="by offsets"), pytest.param(False, id="by stages")])
def test_every_number_of_a_source_that_is_read_three_times_is_there(tmp_path, kafka):
    """By batches of 4 s at an interval of 2 s; each reading takes longer than the one before."""
    run = {"run_id": spark_json()["runId"]}
    plan = {"trigger": "processing_time", "trigger_interval": 2.0, "sink": "ForeachBatchSink"}
    lines = [encode(T0, "plan", "again", orjson.dumps(run | plan))]
    for number in range(30):
        at, rows = T0 + 4.0 * number, 600 + 10 * (number % 3)
        ends = {"startOffset": {"t": {"0": 1000 * number}}, "endOffset": {"t": {"0": 1000 * number + rows}}}
        source = {"description": "KafkaV2[Subscribe[t]]", **ends} if kafka else {"description": "RateStreamV2[x]"}
        record = spark_json(
            name="again", timestamp=format_instant(at), batchId=number, numInputRows=3 * rows,
            durationMs={"addBatch": 3900, "triggerExecution": 4000},
            sources=[{"startOffset": None, "endOffset": None, "latestOffset": None, "numInputRows": 3 * rows} | source],
        )  # fmt: skip
        stages = [
            ran(at + began, records=rows, records_median=rows / 2, records_max=rows / 2, reads_shuffle=False,
                ended=at + began + 0.9 + began / 20 + number / 1000, stage_id=place)
            for place, began in enumerate((0.1, 1.2, 2.4))
        ]  # fmt: skip
        lines.append(encode(at + 4.0, "progress", "again", orjson.dumps(record)))
        tasks = run | {"batch_id": number, "stages": stages, "python_seconds": None}
        lines.append(encode(at + 4.01, "tasks", "again", orjson.dumps(tasks)))

    found = recorded(tmp_path, lines)

    told = {number.compared.name for number in found if number.rule == "input-recomputed"}
    assert told == {"times_read", "saving_seconds", "profile_seconds"}
    assert wrong(number for number in found if number.rule == "input-recomputed") == ()


def ran(at, **more):
    return stage(at) | {"started": at} | more


@pytest.mark.parametrize("rocksdb", [pytest.param(False, id="on the heap"), pytest.param(True, id="on the disk")])
def test_every_number_of_rows_that_get_larger_is_there(tmp_path, rocksdb):
    """Of 40 lists that gain 10 MB in each batch."""
    zeros = ("active_tasks", "failed_tasks", "completed_tasks", "run_seconds", "gc_seconds", "memory_used_bytes")
    driver = {"executor_id": "driver", "active": True, "cores": 2, "memory_max_bytes": 10**9, **dict.fromkeys(zeros, 0)}
    unknown = dict.fromkeys(("cpu_busy_ratio", "disk_total_bytes"))
    host = {"cpu_count": 2, "memory_total_bytes": 2**34, "memory_available_bytes": 2**33, "disk_free_bytes": 2 * 10**9}
    host |= unknown | {"processes": [], "executors": [driver]}
    lines = []
    for number in range(30):
        at, held = T0 + 3.0 * number, 50_000_000 + 10_000_000 * number
        state = {"operatorName": "stateStoreSave", "numRowsTotal": 40, "numRowsUpdated": 40, "numRowsRemoved": 0}
        state |= {"memoryUsedBytes": 9**7 * number if rocksdb else held}
        state |= {"customMetrics": {"rocksdbSstFileSize": held} if rocksdb else {}}
        times = {"addBatch": 800, "triggerExecution": 1000}
        record = spark_json(
            name="lists", timestamp=format_instant(at), batchId=number, stateOperators=[state], durationMs=times
        )
        lines.append(encode(at + 0.9, "host", None, orjson.dumps(host | {"at": at + 0.9})))
        lines.append(encode(at + 1.0, "progress", "lists", orjson.dumps(record)))

    found = [each for each in recorded(tmp_path, lines) if each.rule == "state-growth"]

    assert {"state_bytes_per_row", "seconds_to_limit"} <= {number.compared.name for number in found}
    assert wrong(found) == ()
