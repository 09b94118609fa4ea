from dataclasses import replace

from ledgerops.diagnosis.rules.too_few_slots import RULE
from tests.diagnosis.conftest import told_by
from tests.tables import cases

REAL_TIME = {"trigger": "real_time", "trigger_interval": 300.0}


def looked_at(history, tasks, done=0, cores=2, plan=REAL_TIME, running=15.0):
    """A query whose running job has so many tasks."""
    view = history(warm=0, plan=plan, running=running, cores=cores)
    view.history.running = replace(view.history.running, tasks=tasks, tasks_done=done)
    return view


def test_tasks_of_a_real_time_query_that_wait_for_a_core_are_told_with_the_cores_that_would_do(history):
    [finding] = RULE.check(looked_at(history, tasks=4))

    assert finding.summary == (
        "all 4 tasks of the query must run at once, and the application has 2 cores: 2 wait until the next checkpoint"
    )
    assert finding.remedies[0].action == "start the application with 4 cores or more"
    assert told_by(finding) == {"tasks_left": 4.0, "task_slots": 2.0}


@cases(
    "case",
    ("a core for each task", {"tasks": 2}),
    ("some tasks have ended", {"tasks": 4, "done": 2}),
    ("micro-batches, whose tasks take turns", {"tasks": 400, "plan": {}}),
    ("Spark Connect does not say the tasks", {"tasks": None}),
    ("the cores are not known", {"tasks": 4, "cores": None}),
)
def test_no_task_waits(history, case):
    assert list(RULE.check(looked_at(history, **case))) == []


def test_nothing_is_said_before_a_batch_is_known_to_run(history):
    assert list(RULE.check(history(warm=0, plan=REAL_TIME, cores=1))) == []
