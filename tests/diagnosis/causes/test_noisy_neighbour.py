from dataclasses import replace

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.noisy_neighbour import CAUSE
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.model.records import Plan
from tests.diagnosis.conftest import stage, told_by
from tests.diagnosis.rules.crowd import beside, looked_at, neighbour
from tests.diagnosis.test_contention import slowed
from tests.diagnosis.test_neighbours import FROM_BIRTH, SLOW
from tests.tables import cases

TAKES_LONG = stage("save", seconds=[0.5, 0.4], wall=3.5)
BEGINS_LATE = stage("save", seconds=[0.5, 0.4], wall=0.6, began=3.9)
WAITS = stage("save", seconds=[0.1, 0.1], ready=0.1, began=8.0, wall=0.2)
IN_A_FUNCTION = {"stages": [WAITS], "phases": {"add_batch": 9.8}, "plan": {"sink": "ForeachBatchSink"}}
WAITS_FOR_A_JOB = FROM_BIRTH | IN_A_FUNCTION


def slow(history, own=TAKES_LONG, **more):
    told = {"stages": [own], "phases": {"add_batch": 4.7}, "cores": 2}
    return looked_at(history(**SLOW | told | more), busy=1.0)


def test_the_query_that_takes_the_cores_is_named_with_what_that_costs_this_one(history):
    view = slow(history)
    [finding] = check(CAUSE, beside(view, neighbour(view, 21)))

    assert finding.summary.startswith(
        "hog takes 1.4 of 2 cores, 0.3 before: that takes 3.9 s of a batch of 5.0 s of this query"
    )
    assert (finding.component.kind, finding.component.name) == ("query", "hog")
    assert finding.remedies[0].action == (
        "see what the tasks of hog compute (thread dump of an executor, py-spy), or stop it if it can wait"
    )
    assert {"neighbour_cores", "own_cores", "usual_neighbour_cores"} <= set(told_by(finding))


@cases(
    "times, first",
    ("four times the rows", 4, "limit what hog reads in a batch (maxOffsetsPerTrigger; of files maxFilesPerTrigger)"),
    ("as many rows a second", 1, "see what the tasks of hog compute"),
)
def test_a_neighbour_is_limited_only_where_it_reads_more(history, times, first):
    view = slow(history)
    hog = neighbour(view, 21)
    for place, batch in enumerate(hog.batches):
        rows = round(100 * max(2.0, batch.duration)) * (times if batch.ended >= view.now - 21 else 1)
        hog.batches[place] = replace(batch, rows=rows)
    [finding] = check(CAUSE, beside(view, hog))

    assert finding.remedies[0].action.startswith(first)


@cases("own", ("its tasks take long", TAKES_LONG), ("its tasks begin late", BEGINS_LATE))
def test_what_the_neighbour_does_to_it_is_not_laid_at_its_own_door(history, own):
    view = slow(history, own)
    verdict = Diagnoser()(beside(view, neighbour(view, 21)))
    assert [root.rule for root in verdict.root_causes] == ["noisy-neighbour"]


def test_a_job_that_belongs_to_no_query_is_named_and_neither_the_sink_nor_fixed_cost(history):
    """A query that writes in a function waits for slots nearly all of each batch."""
    verdict = Diagnoser()(looked_at(history(**WAITS_FOR_A_JOB), active=2))
    [root] = verdict.root_causes

    assert (root.rule, root.component.kind) == ("noisy-neighbour", "job")
    assert root.summary == (
        "another job of the application takes 2.0 of 2 cores: that takes 8.0 s of a batch of 10 s of this query"
    )
    assert root.remedies[0].action == (
        "find the job that no watched query began (Spark UI, page Jobs); run it later or in another application"
    )
    assert root.remedies[1].action.startswith("put this query and that job into fair scheduling pools")


def test_several_queries_that_take_the_cores_together_are_told_as_one(history):
    view = slowed(history, past=0)
    [finding] = check(CAUSE, beside(looked_at(view, driver_jvm=2.0), neighbour(view, 999), neighbour(view, 999, "pig")))
    assert finding.component.name == "2 other queries"


@cases(
    "task_seconds, step",
    ("many short tasks", [0.4, 0.4], "put both queries into fair scheduling pools"),
    ("a task outlasts the interval", [4.8, 4.8], "run hog as an application of its own"),
)
def test_fair_pools_are_advised_only_where_slots_become_free_soon(history, task_seconds, step):
    view = history(**FROM_BIRTH, phases={"add_batch": 9.8})
    heavy = stage("udf", seconds=task_seconds * round(9.6 / sum(task_seconds)), wall=4.9, cpu=0.01)
    [finding] = check(CAUSE, looked_at(beside(view, neighbour(view, 999, heavy=heavy)), busy=0.2, active=2))
    assert finding.share is not None and finding.share > 0.6
    assert finding.remedies[1].action.startswith(step)


@cases(
    "python, shown", ("none", False, "(thread dump of an executor)"), ("some", True, "py-spy"), ("?", None, "py-spy")
)
def test_py_spy_is_named_unless_the_plan_of_the_neighbour_has_no_python(history, python, shown):
    view = slow(history)
    hog = neighbour(view, 21)
    hog.plan = Plan(hog.run_id, python=python)
    [finding] = check(CAUSE, beside(view, hog))
    assert shown in finding.remedies[0].action


def test_several_queries_that_hold_the_slots_are_told_as_one_with_a_step_of_their_own(history):
    ready = stage("save", seconds=[0.1, 0.1], ready=0.1, began=8.0, wall=0.1)
    view = looked_at(history(warm=0, seconds=[10] * 6, stages=[ready]), active=2)
    works = stage(seconds=[0.7, 0.5], wall=1.6, ready=0.0)
    others = [neighbour(view, None, name=f"q{n}", light=works) for n in range(3)]

    [root] = Diagnoser()(beside(view, *others)).root_causes
    assert (root.rule, root.component.name) == ("noisy-neighbour", "3 other queries")
    assert root.summary == "3 other queries take 1.8 of 2 cores: that takes 6.1 s of a batch of 10 s of this query"
    assert [each.action for each in root.remedies] == [
        "decide which of 3 other queries can run less often, or in an application of its own",
        "start the application with more cores",
    ]
