"""Our own observations: what is not what its kind promises is refused, whole."""

from __future__ import annotations

import math

import pytest

from ledgerops.model.observations import decode_plan, decode_running
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
