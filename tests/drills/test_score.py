"""A score is what the verdicts are worth against the truth: late, wrong, misplaced and early ones cost."""

import json

import orjson
import pytest

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import scripted
from ledgerops.drills.harness.effects import at_once
from ledgerops.drills.scoring.score import score
from ledgerops.model.recording import encode
from ledgerops.model.spark_progress import format_instant
from tests.build import T0, spark_json

BATCHES = 60
SLOW = range(20, 40)  # batches whose sink is slow
NAMES = {"main": "amber_badger", "other": "calm_delta"}


@pytest.fixture
def bundle(tmp_path):
    """Batches each 2 s of 0.6 s; from the 20th to the 39th they take 4 s, nearly all of it outside tasks."""
    return made(tmp_path, NAMES["main"])


def made(folder, query, slow=SLOW):
    (folder / "recording").mkdir()
    lines, at = [], T0
    for number in range(BATCHES):
        seconds = 4.0 if number in slow else 0.6
        record = spark_json(
            name=query, timestamp=format_instant(at), batchId=number, batchDuration=round(seconds * 1000),
            sources=[read(number)],
            durationMs={"addBatch": round(seconds * 1000) - 100, "triggerExecution": round(seconds * 1000)},
        )  # fmt: skip
        lines.append(encode(at + seconds, "progress", query, orjson.dumps(record)))
        tasks = {"run_id": record["runId"], "batch_id": number, "stages": [stage(at)], "python_seconds": None}
        lines.append(encode(at + seconds + 0.01, "tasks", query, orjson.dumps(tasks)))
        at += max(2.0, seconds)
    plan = {"run_id": spark_json()["runId"], "trigger": "processing_time", "trigger_interval": 2.0}
    lines.insert(1, encode(T0 + 0.6, "plan", query, orjson.dumps(plan)))
    (folder / "recording" / "recording-000001.jsonl").write_bytes(b"".join(lines))
    (folder / "drill.json").write_text(json.dumps({"drill": "test", "seed": 1, "names": NAMES}))
    times = {"origin": T0, "injected": T0 + 39, "repaired": T0 + 120, "ended": T0 + 155, "effect": T0 + 42}
    (folder / "times.json").write_text(json.dumps(times))
    return Bundle(folder)


def read(number):
    offsets = {"transactions": {"0": 300 * number}}
    ends = {"transactions": {"0": 300 * (number + 1)}}
    topic = {"description": "KafkaV2[Subscribe[transactions]]", "numInputRows": 300}
    return {**topic, "startOffset": offsets, "endOffset": ends, "latestOffset": ends}


def stage(at):
    whole = {"tasks": 2, "failed_tasks": 0, "run_seconds": 0.4, "cpu_seconds": 0.4, "gc_seconds": 0.0}
    spread = {"seconds_median": 0.2, "seconds_max": 0.2, "records": 300, "records_median": 150, "records_max": 150}
    sizes = {"input_bytes": 0, "shuffle_read_bytes": 0, "shuffle_write_bytes": 0, "spill_bytes": 0}
    place = {"stage_id": 1, "name": "save", "started": at + 0.1, "ended": at + 0.4, "reads_shuffle": True}
    return {**whole, **spread, **sizes, **place, "executors": {}}


def drill(**changes):
    values = {
        "name": "test", "id": "T1", "effect": at_once, "expected": ("slow-sink",), "component": ("sink",),
        "remedy": "write", "may": ("trigger-overrun", "falling-behind", "freshness-breach"),
    }  # fmt: skip
    return scripted(**{**values, **changes})


def test_a_fault_that_is_named_in_time_passes(bundle):
    found = score(drill(), bundle)

    [fault] = found.faults
    assert found.passed
    assert 0 < fault.seconds <= 20
    assert (fault.is_root, fault.is_first, fault.in_place, fault.has_remedy) == (True, True, True, True)


def test_the_wrong_answer_fails_and_costs(bundle):
    found = score(drill(expected=("key-skew",), may=("trigger-overrun",)), bundle)

    assert not found.passed
    assert found.faults[0].seconds is None
    assert "slow-sink" in found.untrue


def test_a_finding_on_a_healthy_neighbour_is_not_true(tmp_path):
    found = score(drill(roles=("main", "other")), made(tmp_path, NAMES["other"]))
    assert found.faults[0].seconds is None
    assert "slow-sink" in found.untrue


def test_what_is_said_before_the_fault_costs_everything(bundle):
    bundle.note(injected=T0 + 90, effect=T0 + 90)
    found = score(drill(), bundle)

    assert "slow-sink" in found.early
    assert not found.passed


def test_a_fault_without_effect_proves_nothing(bundle):
    del bundle.times["effect"]
    found = score(drill(), bundle)

    assert found.void
    assert not found.passed


def test_too_late_is_not_found(bundle):
    assert score(drill(deadline_seconds=1.0), bundle).faults[0].seconds is None


@pytest.mark.parametrize(("slow", "passed"), [((), True), (SLOW, False)])
def test_a_control_passes_when_nothing_is_found(tmp_path, slow, passed):
    control = drill(healthy=True, expected=(), may=(), effect=None)
    found = score(control, made(tmp_path, NAMES["main"], slow))
    assert found.passed is passed


def test_the_place_may_be_named_by_the_role(bundle):
    named = {"expected": ("trigger-overrun",), "component": ("query={main}",), "may": ("slow-sink",)}
    found = score(drill(deadline_seconds=80.0, **named), bundle)

    assert found.faults[0].in_place
    assert not found.faults[0].is_root  # it is explained by the sink
