from dataclasses import replace

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.straggler import CAUSE
from tests.diagnosis.conftest import late, stage
from tests.tables import cases

LONE = [stage("join", records=[500] * 4, seconds=[0.4, 0.4, 0.4, 4])]
TWO = {"1": 2, "2": 2}


def on(first: tuple[int, float], second: tuple[int, float], seconds: list[float]) -> list:
    return [stage("join", records=[500] * 4, seconds=seconds, executors={"1": first, "2": second})]


def test_one_slow_task_is_told_with_what_the_others_wait(history):
    [finding] = check(CAUSE, late(history, LONE, cores=4))

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


@cases(
    "stages",
    ("one of its tasks", on((2, 0.8), (2, 4.4), [0.4, 0.4, 0.4, 4.0])),
    ("all of its tasks", on((2, 0.8), (2, 8.0), [0.4, 0.4, 4.0, 4.0])),
)
def test_an_executor_is_named_when_it_is_always_the_same(history, stages):
    [finding] = check(CAUSE, late(history, stages, cores=TWO))
    assert (finding.component.kind, finding.component.name) == ("executor", "2")
    assert finding.remedies[0].action == "check the machine of executor 2"


@cases(
    "stages, more",
    ("even tasks", [stage(records=[500] * 4, seconds=[4, 4, 4, 4.4])], {}),
    ("it has more records", [stage(records=[100, 100, 100, 900], seconds=[0.4, 0.4, 0.4, 4])], {}),
    ("the only task", [stage(records=[2000], seconds=[4])], {}),
    ("it costs the batch little", [stage(records=[500] * 4, seconds=[0.1, 0.1, 0.1, 0.6])], {}),
    ("once", [LONE] + [[stage("join", records=[500] * 4, seconds=[4, 4, 4, 4.2])]] * 7, {}),
    ("executors that are as fast", on((2, 7.6), (2, 8.4), [3.8, 3.8, 4.2, 4.2]), {"cores": TWO}),
    ("cores unknown", LONE, {"cores": None}),
    ("tasks unknown", None, {}),
    ("the query has the time", LONE, {"interval": 10.0}),
)
def test_others_are_not(history, stages, more):
    assert list(check(CAUSE, late(history, stages, **{"cores": 4} | more))) == []


@cases(
    "wrote, tail, step",
    ("it explodes", 2_500_147, "; it reads at most 500 and writes 2,500,147", "find the record"),
    ("three rows of each are nothing special", 1_400, "", "see what the slow task does"),
    ("not known", None, "", "see what the slow task does"),
)
def test_a_slow_task_that_makes_far_more_rows_than_it_reads_is_told_so(history, wrote, tail, step):
    view = late(history, LONE, cores=4)
    for place, tasks in enumerate(view.history.tasks):
        view.history.tasks[place] = replace(tasks, stages=(replace(tasks.stages[0], slowest_wrote=wrote),))
    [finding] = check(CAUSE, view)

    assert f" for as many records{tail}: the others wait" in finding.summary
    assert finding.remedies[0].action.startswith(step)


@cases(
    "plan, step",
    ("no Python", {"python": False}, "see what the slow task computes or waits for: thread dump of its executor"),
    ("Python", {"python": True}, "see what the slow task does: `py-spy dump --pid PID` on its Python worker"),
    (
        "a function that the plan does not show",
        {"python": False, "sink": "ForeachBatchSink"},
        "see what the slow task does",
    ),
    ("not known", {}, "see what the slow task does: `py-spy dump --pid PID` on its Python worker"),
)
def test_a_python_worker_is_looked_at_unless_the_plan_has_none(history, plan, step):
    [finding] = check(CAUSE, late(history, LONE, cores=4, plan=plan))
    assert finding.remedies[0].action.startswith(step)
