from dataclasses import replace

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.straggler import CAUSE
from tests.diagnosis.conftest import late, stage
from tests.tables import cases

LONE = [stage("join", records=[500] * 4, seconds=[0.4, 0.4, 0.4, 4])]
TWO = {"1": 2, "2": 2}


def on(first: tuple[int, float], second: tuple[int, float], seconds: list[float]) -> list:
    return [stage("join", records=[500] * 4, seconds=seconds, executors={"1": first, "2": second})]


OF_TASK = "find out on which executor and for which partition it happens"
DUMP = "see what the slow task does: `py-spy dump --pid PID` on its Python worker, or a thread dump (Spark UI)"
IN_JVM = "see what the slow task computes or waits for: thread dump of its executor (Spark UI, page Executors)"
NO_PYTHON, HIDDEN = {"python": False}, {"python": False, "sink": "ForeachBatchSink"}
ONE_OF_ITS, ALL_OF_ITS = on((2, 0.8), (2, 4.4), [0.4, 0.4, 0.4, 4.0]), on((2, 0.8), (2, 8.0), [0.4, 0.4, 4.0, 4.0])


def test_one_slow_task_is_told_with_what_the_others_wait(history):
    [finding] = check(CAUSE, late(history, LONE, cores=4))

    assert finding.summary == (
        "one task of stage 0 takes 4.0 s, another 0.40 s for as many records: the others wait 3.6 s of a batch of 5.0 s"
    )
    assert (finding.component.kind, finding.component.name) == ("stage", "join")


@cases(
    "stages, case, step",
    ("of several executors it is asked on which it happens", LONE, {"cores": TWO}, OF_TASK),
    ("it is one task of one executor", ONE_OF_ITS, {"cores": TWO}, "check the machine of executor 2"),
    ("it is each task of one executor", ALL_OF_ITS, {"cores": TWO}, "check the machine of executor 2"),
    ("the plan has Python", LONE, {"plan": {"python": True}}, DUMP),
    ("it is not known whether", LONE, {}, DUMP),
    ("no Python", LONE, {"plan": NO_PYTHON}, IN_JVM),
    ("a function that the plan does not show", LONE, {"plan": HIDDEN}, DUMP),
)
def test_the_first_step_is_where_the_task_runs(history, stages, case, step):
    [finding] = check(CAUSE, late(history, stages, **{"cores": 4} | case))
    assert finding.remedies[0].action == step
    place = ("executor", "2") if "machine" in step else ("stage", "join")
    assert (finding.component.kind, finding.component.name) == place


@cases(
    "stages, more",
    ("it has more records", [stage(records=[100, 100, 100, 900], seconds=[0.4, 0.4, 0.4, 4])], {}),
    ("the only task", [stage(records=[2000], seconds=[4])], {}),
    ("it costs the batch little", [stage(records=[500] * 4, seconds=[0.1, 0.1, 0.1, 0.6])], {}),
    ("once", [LONE] + [[stage("join", records=[500] * 4, seconds=[4, 4, 4, 4.2])]] * 7, {}),
    ("executors that are as fast", on((2, 7.6), (2, 8.4), [3.8, 3.8, 4.2, 4.2]), {"cores": TWO}),
)
def test_others_are_not(history, stages, more):
    assert list(check(CAUSE, late(history, stages, **{"cores": 4} | more))) == []


@cases(
    "wrote, size, tail, step",
    ("it explodes", 2_500_147, 0, "; it reads at most 500 and writes 2,500,147", "find the record"),
    ("a row of a file does", 2_500_147, 2**20, "; it reads at most 500 and writes 2,500,147", "find the record"),
    ("three rows of each are nothing special", 1_400, 0, "", "see what the slow task does"),
    ("a record is 10,000 persisted rows", 5_000_000, 2**30, "", "see what the slow task does"),
    ("not known", None, 0, "", "see what the slow task does"),
)
def test_a_slow_task_that_makes_far_more_rows_than_it_reads_is_told_so(history, wrote, size, tail, step):
    view = late(history, LONE, cores=4)
    for place, tasks in enumerate(view.history.tasks):
        ran = replace(tasks.stages[0], slowest_wrote=wrote, input_bytes=size)
        view.history.tasks[place] = replace(tasks, stages=(ran,))
    [finding] = check(CAUSE, view)

    assert f" for as many records{tail}: the others wait" in finding.summary
    assert finding.remedies[0].action.startswith(step)
