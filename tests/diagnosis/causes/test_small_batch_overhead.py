import pytest

from ledgerops.diagnosis.cause import check, ruled_out
from ledgerops.diagnosis.causes.small_batch_overhead import CAUSE
from ledgerops.diagnosis.facts.longer_interval import longer_interval
from ledgerops.diagnosis.profile import profile
from tests.diagnosis.conftest import stage

PLANS = {"query_planning": 1.5, "add_batch": 0.4, "wal_commit": 0.1}
LITTLE = [stage("save", records=[10, 10], seconds=[0.1, 0.1], wall=0.2, began=1.6)]


def small(history, **more):
    told = {"rows": 20, "interval": 0.5, "seconds": [2.1] * 20, "phases": [PLANS] * 20, "stages": [LITTLE] * 20}
    return history(**{"warm": 0} | told | more)


def test_planning_and_starting_tasks_are_told_with_an_interval_that_would_do(history):
    [finding] = check(CAUSE, small(history))

    assert finding.summary == "1.7 s of a batch of 2.1 s are its fixed cost: planning, and starting its tasks"
    assert finding.component.detail == "query_planning"
    assert finding.remedies[0].action == "set the trigger interval to 4 s or more, if results may be that old"


@pytest.mark.parametrize(
    ("stages", "phases", "largest"),
    [
        pytest.param(
            stage(records=[9, 9], seconds=[0.2, 0.2], wall=1.7, began=0.1), {"add_batch": 1.9}, "launch", id="launch"
        ),
        pytest.param(
            stage(records=[9, 9], seconds=[1.7, 1.7], began=0.1), {"add_batch": 1.9}, "few_rows", id="hardly any rows"
        ),
        pytest.param(
            stage(records=[900, 900], seconds=[0.2, 0.2], began=1.8),
            {"add_batch": 1.9},
            "driver_before",
            id="the driver before the first task",
        ),
    ],
)
def test_what_costs_most_of_it_is_named(history, stages, phases, largest):
    [finding] = check(CAUSE, small(history, phases=[phases] * 20, stages=[[stages]] * 20))

    assert finding.component.detail == largest


def fixed(planning):
    """Of a batch of 2.1 s so many seconds of planning; tasks that work take most of the rest."""
    works = stage(records=[900, 900], seconds=[1.9 - planning] * 2, began=0.1)
    phases = {"query_planning": planning, "add_batch": 2.0 - planning, "wal_commit": 0.1}
    return {"phases": [phases] * 20, "stages": [[works]] * 20}


def test_what_takes_a_third_of_a_batch_is_told(history):
    [finding] = check(CAUSE, small(history, **fixed(planning=0.75)))

    assert finding.share == pytest.approx(0.75 / 2.1)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(fixed(planning=0.5), id="less than a third of the batch"),
        pytest.param(
            {"phases": [{"add_batch": 2.0}] * 20}
            | {"stages": [[stage(records=[900, 900], seconds=[1.1, 1.1], began=0.9)]] * 20},
            id="a third passes before the first task, maybe in a function",
        ),
        pytest.param({"seconds": [42.0]}, id="a first batch, which pays for warm-up"),
        pytest.param({"interval": 5.0}, id="the query has the time"),
        pytest.param({"seconds": [0.6] * 20}, id="nobody waits for half a second"),
        pytest.param(
            {"phases": [{"add_batch": 2.0}] * 20}
            | {"stages": [[stage(records=[900, 900], seconds=[1.8, 1.8], began=0.1)]] * 20},
            id="the tasks have work",
        ),
        pytest.param(
            {"phases": [{"add_batch": 2.0}] * 20, "stages": [[stage(seconds=[0.2, 0.2])]] * 20}, id="the sink waits"
        ),
        pytest.param(
            {"phases": [{"add_batch": 0.4, "wal_commit": 0.8, "commit_offsets": 0.8}] * 20}, id="the checkpoint is slow"
        ),
    ],
)
def test_others_are_not(history, case):
    assert list(check(CAUSE, small(history, **case))) == []


@pytest.mark.parametrize(("interval", "helps"), [(2.5, True), (5.0, False)], ids=["no room", "room for a batch"])
def test_a_longer_interval_is_advised_where_it_is_longer_than_that_of_the_query(history, interval, helps):
    view = small(history, interval=interval)

    assert CAUSE.holds(view, profile(view)) is helps
    assert bool(longer_interval(view, 2.1)) is helps


def test_it_is_ruled_out_by_what_it_takes(history):
    works = stage(records=[900, 900], seconds=[1.8, 1.8], began=0.1)
    view = small(history, phases=[{"add_batch": 2.0, "query_planning": 0.1}] * 20, stages=[[works]] * 20)

    assert ruled_out(CAUSE, view) == "0.20 s of 2.1 s (10%)"
