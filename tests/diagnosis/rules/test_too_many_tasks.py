from dataclasses import replace

import pytest

from ledgerops.diagnosis.rules.too_many_tasks import RULE
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.rules.conftest import stage

TINY = [stage("save", records=[5] * 200, seconds=[0.03] * 200, wall=4.0)]


def test_tiny_tasks_are_told_with_their_number_and_size(history):
    [finding] = RULE.check(history(seconds=[5] * 4, stages=[TINY] * 4, cores=2, plan={"stateful": True}))

    assert finding.summary == "200 tasks on 2 cores take 4.0 s of a batch of 5.0 s, with 5 records and 30 ms each"
    assert finding.remedies[0].action == (
        "start with a new checkpoint and spark.sql.shuffle.partitions=6, or repartition the state"
    )
    assert finding.share == pytest.approx(0.8)


def test_without_state_the_setting_is_enough(history):
    [finding] = RULE.check(history(seconds=[5] * 4, stages=[TINY] * 4, cores=2))

    assert finding.remedies[0].action == "set spark.sql.shuffle.partitions to 4 to 6 and start the query again"


def test_those_of_the_source_are_told_apart(history):
    reading = [stage("scan", records=[5] * 200, seconds=[0.03] * 200, wall=4.0, shuffle=False)]
    [finding] = RULE.check(history(seconds=[5] * 4, stages=[reading] * 4, cores=2))

    assert finding.remedies[0].action == "read the source in 4 to 6 partitions"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [1.9] * 4, "stages": [TINY] * 4, "cores": 2}, id="no harm"),
        pytest.param({"seconds": [5] * 4, "stages": [TINY] * 4, "cores": None}, id="cores unknown"),
        pytest.param({"seconds": [5] * 4, "stages": [TINY] * 4, "cores": 64}, id="three tasks a core"),
        pytest.param({"seconds": [9] * 4, "stages": [TINY] * 4, "cores": 2}, id="something else takes the batch"),
        pytest.param(
            {
                "seconds": [5] * 4,
                "stages": [[stage(records=[5000] * 200, seconds=[0.04] * 200, wall=4)]] * 4,
                "cores": 2,
            },
            id="they have work to do",
        ),
        pytest.param(
            {"seconds": [9] * 4, "stages": [[stage(records=[5] * 20, seconds=[0.8] * 20, wall=8)]] * 4, "cores": 2},
            id="each takes long",
        ),
        pytest.param({"seconds": [5, 1, 1, 1], "stages": [TINY] * 4, "cores": 2}, id="once"),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


@pytest.mark.parametrize(("tasks", "past", "found"), [(200, 14, True), (40, 14, False), (40, 0, True)])
def test_on_a_busy_machine_a_past_acquits_all_but_tasks_without_number(history, tasks, past, found):
    """Their own starting and ending keeps every core busy; without a past, most of a batch is theirs."""
    stages = [stage("save", records=[1] * tasks, seconds=[0.03] * tasks, wall=4.0)]
    view = history(warm=past, seconds=[5] * (4 if past else 8), stages=[stages] * (4 if past else 8), cores=2)
    busy = [replace(view.hosts[-1], at=view.now - ago, cpu_busy_ratio=1.0) for ago in (4, 2, 0)]
    full = [replace(each, executors=tuple(replace(e, active_tasks=2) for e in each.executors)) for each in busy]

    assert bool(list(RULE.check(QueryView(view.history, view.now, full)))) is found


def test_it_is_ruled_out_with_its_number(history):
    assert RULE.acquit(history(seconds=[5] * 4, stages=[[stage()]] * 4)) == "a batch has 2 tasks"
