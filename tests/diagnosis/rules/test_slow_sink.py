import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.slow_sink import RULE
from tests.diagnosis.rules.conftest import stage
from tests.diagnosis.rules.crowd import beside, looked_at, neighbour

QUICK = stage("save", seconds=[0.4, 0.4], wall=0.5)
ADD_BATCH = {"add_batch": 4.4, "query_planning": 0.1}


def test_time_outside_tasks_is_found(history):
    [finding] = RULE.check(history(seconds=[5] * 4, phases=[ADD_BATCH] * 4, stages=[[QUICK]] * 4))

    assert finding.summary == "3.9 s of a batch of 5.0 s are spent in the sink while no task runs"


def test_writing_tasks_that_wait_are_found(history):
    writing = stage("foreachPartition", seconds=[4, 4], wall=4.1, cpu=0.05)
    [finding] = RULE.check(history(warm=14, seconds=[5] * 4, phases=[ADD_BATCH] * 4, stages=[[QUICK, writing]] * 4))

    assert finding.summary == (
        "4.1 s of a batch of 5.0 s are spent in stage 1, which writes; its tasks compute for 5% of that time"
    )


def test_without_tasks_the_past_decides(history):
    [finding] = RULE.check(
        history(warm=14, seconds=[4.9] * 4, phases=[{"add_batch": 4.6, "query_planning": 0.2}] * 4, rows=1000)
    )

    assert finding.summary == (
        "4.6 s of a batch of 4.9 s are spent in add_batch, which used to take 0.8 s for as many rows; "
        "no task times are available"
    )


def test_a_stage_that_only_writes_and_waits_is_the_sink_without_a_past_too(history):
    writing = stage(seconds=[4, 4], wall=4.1, cpu=0.05)
    [finding] = RULE.check(history(seconds=[5] * 4, stages=[[writing]] * 4))

    assert (
        finding.summary
        == "4.1 s of a batch of 5.0 s are spent in stage 0, which writes; its tasks compute for 5% of that time"
    )


def test_without_a_trigger_a_sink_that_takes_most_of_every_batch_is_named(history):
    """Batches run back to back and always did: nobody knows that anything suffers."""
    view = history(warm=0, interval=0.0, seconds=[3.7] * 16, stages=[[QUICK]] * 16)

    assert [finding.component.name for finding in RULE.check(view)] == ["Parquet"]
    assert [(root.rule, root.severity) for root in Diagnoser()(view).root_causes] == [("slow-sink", "info")]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [1.8] * 4, "stages": [[QUICK]] * 4}, id="most time outside tasks, but no harm"),
        pytest.param(
            {"seconds": [5] * 4, "stages": [[stage(seconds=[3.5, 3.6], wall=3.8)]] * 4}, id="tasks explain the time"
        ),
        pytest.param(
            {"seconds": [5] * 4, "stages": [[stage(seconds=[4, 4], wall=4.1, cpu=0.05, shuffle=False)]] * 4},
            id="tasks that always waited: a Python source, perhaps",
        ),
        pytest.param({"seconds": [1, 1, 5, 1], "stages": [[QUICK]] * 4}, id="one slow write"),
        pytest.param(
            {"warm": 14, "seconds": [5] * 4, "phases": [{"add_batch": 4.6}] * 4, "rows": 6000}, id="six times the rows"
        ),
        pytest.param(
            {"warm": 14, "seconds": [8] * 4, "phases": [{"add_batch": 4.6, "query_planning": 3}] * 4},
            id="planning got as slow: the machine is busy",
        ),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_it_is_ruled_out_with_its_number(history):
    view = history(seconds=[5] * 4, stages=[[stage(seconds=[3.5, 3.6], wall=3.8)]] * 4)

    assert RULE.acquit(view) == "no task runs in 0.2 s of a batch of 5.0 s (4%)"


def test_two_long_batches_and_one_that_runs_are_enough(history):
    two = {"seconds": [5, 5], "phases": [ADD_BATCH] * 2, "stages": [[QUICK]] * 2}

    assert list(RULE.check(history(**two))) == []
    assert [each.component.kind for each in RULE.check(history(**two, running=3.0))] == ["sink"]


def test_a_part_of_the_batch_is_the_sinks_when_it_was_not_there_before(history):
    even = stage("save", seconds=[3.7, 3.8], wall=3.9)
    told = {"seconds": [6] * 4, "phases": [{"add_batch": 5.8}] * 4, "stages": [[even]] * 4}

    assert list(RULE.check(history(**told))) == []
    [finding] = RULE.check(history(warm=14, warm_stages=[QUICK], **told))
    assert finding.share == pytest.approx((1.9 - 0.3) / 6)


def test_one_task_that_waits_for_itself_is_not_the_sink(history):
    alone = stage("save", seconds=[0.3, 4], wall=4.1, cpu=0.05)

    assert (
        list(RULE.check(history(warm=14, seconds=[5] * 4, phases=[ADD_BATCH] * 4, stages=[[QUICK, alone]] * 4))) == []
    )


def test_stages_that_wait_for_slots_which_sleeping_tasks_of_another_query_hold_are_not_the_sink(history):
    view = history(warm=0, seconds=[10] * 4, stages=[[stage("save", seconds=[0.4, 0.4], began=7.0, wall=0.5)]] * 4)
    asleep = neighbour(view, heavy_since=60.0, heavy=stage("udf", seconds=[4.8, 4.8], wall=4.9, cpu=0.01))

    assert list(RULE.check(looked_at(view, busy=0.2, active=2)))
    assert list(RULE.check(looked_at(beside(view, asleep), busy=0.2)))
    assert list(RULE.check(looked_at(beside(view, asleep), busy=0.2, active=2))) == []


QUICK_TASKS = [stage("save", seconds=[2.0, 2.0], wall=2.1)]


@pytest.mark.parametrize(
    ("case", "found"),
    [
        pytest.param({"interval": 2.0, "stages": [QUICK_TASKS] * 6}, True, id="after the last task, with harm"),
        pytest.param({"interval": 9.0, "stages": [QUICK_TASKS] * 6}, False, id="nothing suffers"),
        pytest.param(
            {"interval": 2.0, "stages": [[stage("save", seconds=[2.0, 2.0], began=1.8, wall=2.1)]] * 6},
            False,
            id="before the tasks: it may be planning",
        ),
    ],
)
def test_a_third_of_a_batch_after_its_tasks_is_the_sinks_where_the_query_suffers(history, case, found):
    assert bool(list(RULE.check(history(warm=0, seconds=[5.0] * 6, **case)))) is found


def test_of_a_first_batch_alone_nobody_knows_on_a_busy_machine_what_loading_took(history):
    """The driver loads and compiles in it, and waits for a core all the while."""
    first = {"warm": 0, "interval": 5.0, "seconds": [48.0], "phases": [{"add_batch": 46.0, "query_planning": 1.0}]}
    two = {name: each * 2 if isinstance(each, list) else each for name, each in first.items()}
    work = stage("save", began=32.0, seconds=[13.0, 13.0], wall=13.0)

    assert list(RULE.check(looked_at(history(**first, stages=[[work]]), busy=1.0))) == []
    assert list(RULE.check(looked_at(history(**two, stages=[[work]] * 2), busy=1.0)))
    assert list(RULE.check(looked_at(history(**first, stages=[[work]]), busy=0.3)))
