"""Our own observations: what is not what its kind promises is refused, whole."""

from __future__ import annotations

import math

import pytest

from ledgerops.model.observations import decode_host, decode_plan, decode_running
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
        decode_plan({"run_id": "r", field: value})
    assert str(refused.value) == said


def test_what_a_plan_does_not_say_is_unknown():
    plan = decode_plan({"run_id": "r", "keys": None, "trigger_interval": 0, "later": "ignored"})
    assert (plan.keys, plan.trigger_interval, plan.stateful) == ((), 0.0, None)


def test_a_record_without_its_run_is_refused():
    with pytest.raises(BadRecord, match="no run_id"):
        decode_running({"since": 1.0, "message": "m"}, 2.0)


@pytest.mark.parametrize("role", ["driver_python", "a role of a later version"])
def test_the_role_of_a_process_is_a_text_also_one_of_a_later_version(role):
    process = {"role": role, "cpu_seconds": 1, "memory_bytes": 1, "threads": 1, "open_files": 1, "processes": 1}
    assert decode_host({"processes": [process]}, 2.0).processes[0].role == role

    with pytest.raises(BadRecord, match="expected text, got 7"):
        decode_host({"processes": [{**process, "role": 7}]}, 2.0)
