from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.python_bound import CAUSE
from ledgerops.diagnosis.profile import profile
from tests.diagnosis.conftest import stage
from tests.diagnosis.rules.crowd import looked_at
from tests.tables import cases

UDF = [stage("udf", seconds=[4.5, 4.5], cpu=0.1)]


def slow(history, **more):
    return history(**{"seconds": [5] * 8, "stages": UDF, "phases": {"add_batch": 4.9}, "python": 8.1} | more)


QUICK = {"warm": 14, "warm_stages": [stage("udf", seconds=[0.6, 0.6], cpu=0.1)]}


@cases("past, usually", ("from birth", {}, ""), ("the function became slower", QUICK, "; usually 0.60 s"))
def test_workers_that_take_the_time_of_the_tasks_are_named(history, past, usually):
    """Two tasks share the 8.1 s."""
    [finding] = check(CAUSE, slow(history, **past))
    assert finding.summary == f"Python workers take 4.1 s of a batch of 5.0 s{usually}"
    assert finding.component.name == "Python workers"
    assert "py-spy dump" in finding.remedies[0].action


@cases(
    "case",
    ("no Python", {"python": None}),
    ("less than half of the batch in Python", {"python": 3.0}),
    ("not in its tasks", {"stages": [stage(seconds=[0.5, 0.5], cpu=0.1)], "python": 0.9}),
    ("the JVM computes, Python waits for rows", {"stages": [stage("udf", seconds=[4.5, 4.5], cpu=0.8)]}),
)
def test_others_are_not(history, case):
    assert list(check(CAUSE, slow(history, **case))) == []


@cases(
    "busy, workers, jvm, step",
    ("they wait", 0.6, 0.2, 0.1, "find out what the function waits for"),
    ("they compute", 0.9, 1.8, 0.1, "see at which line the function is"),
    ("their tasks read and write large rows", 0.6, 0.5, 0.3, "see at which line the function is"),
    ("others have the cores that they want", 1.0, 0.8, 0.1, "see at which line the function is"),
    ("others have the cores, and they hardly want any", 1.0, 0.05, 0.0, "find out what the function waits for"),
    ("nothing tells", None, 0.0, 0.1, "see at which line the function is"),
)
def test_workers_wait_only_where_it_is_neither_for_a_core_nor_for_their_rows(history, busy, workers, jvm, step):
    view = slow(history, seconds=[5] * 14, stages=[stage("udf", seconds=[4.5, 4.5], cpu=jvm)])
    [finding] = check(CAUSE, view if busy is None else looked_at(view, busy=busy, python_workers=workers))

    assert finding.remedies[0].action.startswith(step)


ONE_TASK = [stage("udf", records=[1000], seconds=[4.5], cpu=0.1, shuffle=False)]
LOAD_ONCE, DIVIDE = "load models and connections once for each worker", "divide the rows among 2 tasks"


@cases(
    "case, then",
    ("one task has all the work", {"stages": ONE_TASK, "python": 4.1}, DIVIDE),
    ("each core has a task", {}, LOAD_ONCE),
    ("nothing tells how many it takes", {"stages": ONE_TASK, "python": 4.1, "interval": None}, LOAD_ONCE),
    ("the cores are not known", {"stages": ONE_TASK, "python": 4.1, "cores": None}, LOAD_ONCE),
)
def test_rows_are_divided_where_computing_workers_are_fewer_than_the_cores(history, case, then):
    found = profile(view := slow(history, **{"cores": 2} | case))
    told = CAUSE.tell(view, found)
    assert told.remedies[0].action.startswith("see at which line the function is")
    assert told.remedies[1].action.startswith(then)
    assert ("the longest stage has 1 task for 2 cores" in told.remedies[1].why) is (then == DIVIDE)


def lists(first: float, step: float, name: str = "applyInPandasWithState"):
    return [{"name": name, "rows": 8, "memory_bytes": int((first + step * n) * 1e6)} for n in range(14)]


@cases(
    "operators, grew",
    ("a list that gets longer", lists(8, 8), "; each row of their state grew from 3.0 MB to 14.0 MB"),
    ("a list that is full", lists(80, 0), ""),
    ("it shrinks now and then", [*lists(8, 8)[:9], *lists(8, 8)[7:]], ""),
    ("it was large before", lists(800, 8), ""),
    ("Spark's own aggregation", lists(8, 8, "stateStoreSave"), ""),
)
def test_a_state_whose_rows_get_larger_is_what_a_function_takes_longer_for(history, operators, grew):
    [finding] = check(CAUSE, slow(history, seconds=[5] * len(operators), operators=operators, warm=0))
    assert finding.summary == f"Python workers take 4.1 s of a batch of 5.0 s{grew}"
    assert finding.remedies[0].action.startswith("find the list or map that a key only adds to") is bool(grew)
