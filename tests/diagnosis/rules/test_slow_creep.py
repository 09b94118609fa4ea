from math import pi, sin

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.slow_creep import RULE
from tests.diagnosis.conftest import told_by
from tests.diagnosis.rules.retelling import beside_another
from tests.tables import cases

MOMENTS, DAYS = (20, 40, 50, 54, 57, 60), (90.0, 120.0, 300.0, 900.0, 3600.0)


def load(history, shape, batches=60, per_row=0.001, overhead=0.2, **changes):
    """A load of shape(seconds) rows a second; a batch takes `overhead` and `per_row` for each row of its 2 s."""
    rows = [max(1, round(2 * shape(2.0 * n))) for n in range(batches)]
    case = {"seconds": [overhead + per_row * each for each in rows], "rows": rows, "backlog": [0] * batches}
    return history(**case | {"warm": 1} | changes)


def rising(seconds):
    return 400.0 + 4.4 * seconds  # 930 rows/s after two minutes, of which 900 fill the interval


def test_a_load_that_rises_to_the_limit_is_the_only_root_before_anything_is_late(history):
    [root] = Diagnoser()(load(history, rising, batches=54)).root_causes

    assert root.rule == "slow-creep"
    assert root.summary.startswith("arrival rose by ")
    assert "of the trigger interval; at this rate the limit will be reached in about " in root.summary
    assert told_by(root)["seconds_to_capacity"] == pytest.approx((900 - rising(108)) / 4.4, abs=8)


def test_a_cap_may_be_what_gets_full(history):
    view = load(history, rising, batches=54, per_row=0.0001, plan={"rate_limits": {"maxRowsPerTrigger": "1850"}})
    [finding] = RULE.check(view)

    assert "of the rows allowed per batch; at this rate" in finding.summary
    assert finding.remedies[0].action == "ask the producer how far the load will rise"
    assert finding.remedies[1].action == "raise the limit on the rows of a batch at the next start"


def test_what_a_batch_reads_of_several_sources_is_not_compared_with_the_cap_of_each(history):
    view = load(history, rising, batches=54, per_row=0.0001, plan={"rate_limits": {"maxRowsPerTrigger": "1850"}})
    assert list(RULE.check(beside_another(view, 500, heads=False))) == []


def test_a_rise_that_takes_minutes_shows_over_a_longer_window(history):
    [finding] = RULE.check(load(history, lambda seconds: 540.0 + 0.85 * seconds, batches=190))
    assert " in 5 min to " in finding.summary


def day(period):
    return lambda seconds: 900.0 * (0.55 + 0.35 * sin(2 * pi * seconds / period))


@cases(
    "shape, moments",
    ("level and high", lambda s: 860.0, MOMENTS),
    ("a twentieth more in a minute", lambda s: 770.0 + 0.7 * s, MOMENTS),
    ("rising, but far below", lambda s: 400.0 + 3.0 * s, MOMENTS),
    ("falling", lambda s: 890.0 - 4.0 * s, MOMENTS),
    ("a step", lambda s: 300.0 if s < 90 else 880.0, MOMENTS),
    ("a burst", lambda s: 300.0 if s < 108 else 890.0, MOMENTS),
    ("a rise that levels off", lambda s: 300.0 + 580.0 * (1 - 0.97 ** min(s, 120.0)), MOMENTS),
    *((f"a day of {period} s whose peak stays below", day(period), range(10, 190, 3)) for period in DAYS),
)
def test_others_are_not(history, shape, moments):
    for batches in moments:
        assert list(RULE.check(load(history, shape, batches=batches))) == []


def test_a_batch_in_real_time_mode_fills_its_interval_whatever_there_is_to_do(history):
    always = {"per_row": 0.0, "overhead": 2.0, "batches": 54}
    assert list(RULE.check(load(history, rising, **always)))
    assert list(RULE.check(load(history, rising, plan={"trigger": "real_time"}, **always))) == []


@cases("case", ("a start", {"warm": 0}), ("level", {"seconds": [1.0] * 20}), ("back to back", {"interval": 0.0}))
def test_a_query_of_which_little_is_known_is_not(history, case):
    assert list(RULE.check(history(**case))) == []
