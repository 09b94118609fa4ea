from dataclasses import replace

import pytest

from ledgerops.diagnosis.cause import check, ruled_out
from ledgerops.diagnosis.causes.straggler import CAUSE
from tests.diagnosis.conftest import stage

LONE = [stage("join", records=[500] * 4, seconds=[0.4, 0.4, 0.4, 4])]
TWO = {"1": 2, "2": 2}


def late(history, ran, **more):
    told = {"seconds": [5] * 8, "stages": [ran] * 8, "phases": [{"add_batch": 4.6}] * 8, "cores": 4}
    return history(**told | more)


def on(first: tuple[int, float], second: tuple[int, float], seconds: list[float]) -> list:
    return [stage("join", records=[500] * 4, seconds=seconds, executors={"1": first, "2": second})]


def test_one_slow_task_is_told_with_what_the_others_wait(history):
    [finding] = check(CAUSE, late(history, LONE))

    assert finding.summary == (
        "one task of stage 0 takes 4.0 s, another 0.40 s for as many records: the others wait 3.6 s of a batch of 5.0 s"
    )
    assert (finding.component.kind, finding.component.name) == ("stage", "join")
    assert finding.remedies[0].action == (
        "see what the slow task does: `py-spy dump --pid PID` on its Python worker, or a thread dump (Spark UI)"
    )


def test_of_several_executors_it_is_asked_on_which_it_happens(history):
    [finding] = check(CAUSE, late(history, LONE, cores=TWO))

    assert finding.remedies[0].action == "find out on which executor and for which partition it happens"


@pytest.mark.parametrize(
    "stages",
    [
        pytest.param(on((2, 0.8), (2, 4.4), [0.4, 0.4, 0.4, 4.0]), id="one of its tasks"),
        pytest.param(on((2, 0.8), (2, 8.0), [0.4, 0.4, 4.0, 4.0]), id="all of its tasks"),
    ],
)
def test_an_executor_is_named_when_it_is_always_the_same(history, stages):
    [finding] = check(CAUSE, late(history, stages, cores=TWO))

    assert (finding.component.kind, finding.component.name) == ("executor", "2")
    assert finding.remedies[0].action == "check the machine of executor 2"


@pytest.mark.parametrize(
    ("stages", "more"),
    [
        pytest.param([stage(records=[500] * 4, seconds=[4, 4, 4, 4.4])], {}, id="even tasks"),
        pytest.param([stage(records=[100, 100, 100, 900], seconds=[0.4, 0.4, 0.4, 4])], {}, id="it has more records"),
        pytest.param([stage(records=[2000], seconds=[4])], {}, id="the only task"),
        pytest.param([stage(records=[500] * 4, seconds=[0.1, 0.1, 0.1, 0.6])], {}, id="it costs the batch little"),
        pytest.param(on((2, 7.6), (2, 8.4), [3.8, 3.8, 4.2, 4.2]), {"cores": TWO}, id="executors that are as fast"),
        pytest.param(LONE, {"cores": None}, id="cores unknown"),
        pytest.param([], {"stages": None}, id="tasks unknown"),
        pytest.param(LONE, {"interval": 10.0}, id="the query has the time"),
    ],
)
def test_others_are_not(history, stages, more):
    assert list(check(CAUSE, late(history, stages, **more))) == []


def test_once_is_not_a_straggler(history):
    even = [stage("join", records=[500] * 4, seconds=[4, 4, 4, 4.2])]

    assert list(check(CAUSE, late(history, [], stages=[LONE] + [even] * 7))) == []


def test_it_is_ruled_out_by_what_it_takes(history):
    view = late(history, [stage(records=[500] * 4, seconds=[0.2, 0.2, 0.2, 0.8])])

    assert ruled_out(CAUSE, view) == "0.60 s of 5.0 s (12%)"


@pytest.mark.parametrize(
    ("wrote", "tail", "step"),
    [
        pytest.param(2_500_147, "; it reads at most 500 and writes 2,500,147", "find the record", id="it explodes"),
        pytest.param(1_400, "", "see what the slow task does", id="three rows of each are nothing special"),
        pytest.param(None, "", "see what the slow task does", id="not known"),
    ],
)
def test_a_slow_task_that_makes_far_more_rows_than_it_reads_is_told_so(history, wrote, tail, step):
    view = late(history, LONE)
    for place, tasks in enumerate(view.history.tasks):
        view.history.tasks[place] = replace(tasks, stages=(replace(tasks.stages[0], slowest_wrote=wrote),))
    [finding] = check(CAUSE, view)

    assert f" for as many records{tail}: the others wait" in finding.summary
    assert finding.remedies[0].action.startswith(step)
