"""Our own observations: what is not what its kind promises is refused, whole."""

import math

import pytest

from ledgerops.model.observations import build
from ledgerops.model.records import BatchFiles, FilesRead, Host, Plan, Running
from ledgerops.model.spark_progress import BadRecord


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("trigger_interval", -0.5, "negative trigger interval: -0.5"),
        ("trigger_interval", 1e300, "expected a number, got 1e+300"),
        ("trigger_interval", math.nan, "expected a number, got nan"),
        ("trigger_interval", "2 s", "expected a number, got '2 s'"),
        ("keys", 5, "expected a list, got 5"),
        ("keys", "customer_id", "expected a list, got 'customer_id'"),
        ("watermarks", [], "expected an object, got []"),
        ("stateful", 1, "expected true or false, got 1"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(field, value, said):
    with pytest.raises(BadRecord) as refused:
        build(Plan, {"run_id": "r", field: value})
    assert str(refused.value) == said


def test_what_a_plan_does_not_say_is_unknown():
    plan = build(Plan, {"run_id": "r", "keys": None, "trigger_interval": 0, "later": "ignored"})
    assert (plan.keys, plan.trigger_interval, plan.stateful) == ((), 0.0, None)


@pytest.mark.parametrize("given", [{}, {"processes": None}, {"processes": []}])
def test_a_list_that_is_absent_or_null_is_empty(given):
    assert build(Host, given, at=2.0).processes == ()


def test_records_within_records_are_read_by_the_annotations_of_their_fields():
    read = {"files": 3, "oldest": 1.0, "newest": 2}
    files = build(BatchFiles, {"run_id": "r", "batch_id": 4, "sources": {"landing": read}})
    assert files.sources["landing"] == build(FilesRead, read)
    with pytest.raises(BadRecord, match="expected a number, got 'three'"):
        build(BatchFiles, {"run_id": "r", "batch_id": 4, "sources": {"landing": {**read, "files": "three"}}})


def test_a_record_without_its_run_is_refused():
    with pytest.raises(BadRecord, match="no run_id"):
        build(Running, {"since": 1.0, "message": "m"}, at=2.0)


@pytest.mark.parametrize("role", ["driver_python", "a role of a later version"])
def test_the_role_of_a_process_is_a_text_also_one_of_a_later_version(role):
    process = {"role": role, "cpu_seconds": 1, "memory_bytes": 1, "threads": 1, "open_files": 1, "processes": 1}
    assert build(Host, {"processes": [process]}, at=2.0).processes[0].role == role
    with pytest.raises(BadRecord, match="expected text, got 7"):
        build(Host, {"processes": [{**process, "role": 7}]}, at=2.0)
