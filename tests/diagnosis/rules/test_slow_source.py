import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.slow_source import RULE
from ledgerops.model.records import Heads, Host
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.rules.conftest import TOPIC, stage

QUICK = {"latest_offset": 0.02, "get_batch": 0.01, "add_batch": 0.8}
SLOW = {"latest_offset": 2.1, "get_batch": 0.1, "add_batch": 0.8}
SLOWISH = {"latest_offset": 1.2, "add_batch": 4.6}
READS = stage("scan", seconds=(1.0, 1.0), shuffle=False, wall=1.0)
WAITS = stage("scan", seconds=(3.0, 3.0), shuffle=False, wall=3.0, cpu=0.05)
WAITS_LONG = stage("scan", seconds=(4.0, 4.0), shuffle=False, wall=4.0, cpu=0.05)
WRITES = stage("save", seconds=(0.1, 0.1), began=3.0)
# what a proxy that adds 0.3 s to each answer makes of a batch
FAR = {
    "seconds": [1.0] * 6 + [6.0] * 2,
    "phases": [QUICK] * 6 + [SLOWISH] * 2,
    "stages": [[READS, WRITES]] * 6 + [[WAITS_LONG, WRITES]] * 2,
}


def answers(view, usual=0.01, now=0.3, count=40):
    """The view of a collector whose newest looks took `now` seconds."""
    for place in range(count):
        left = count - place
        seconds = now if left <= 5 else usual
        view.history.heads.append(Heads(view.now - 2 * left, {(TOPIC, "0"): 0}, {(TOPIC, "0"): 0}, seconds=seconds))
    return QueryView(view.history, view.now, view.hosts, view.others)


def busy(view):
    """The view of a machine whose cores are all in use."""
    host = Host(view.now, 2, 0.99, 2**33, 2**32, None, None)
    return QueryView(view.history, view.now, [host] * 3, view.others)


def test_a_broker_that_answers_slowly_is_found(history):
    [finding] = RULE.check(history(seconds=[1.0] * 5 + [3.1] * 3, phases=[QUICK] * 5 + [SLOW] * 3))

    assert finding.summary == "2.2 s of a batch of 3.1 s are spent asking the source; the usual is 0.0 s"
    assert finding.component.name == "transactions"
    assert finding.share == pytest.approx((2.2 - 0.03) / 3.1)


def test_tasks_that_wait_for_the_source_are_found(history):
    [finding] = RULE.check(
        history(seconds=[1.2] * 6 + [3.5] * 5, stages=[[READS, WRITES]] * 6 + [[WAITS, WRITES]] * 5, cores=2)
    )

    assert finding.summary == (
        "2.8 s of a batch of 3.5 s are spent waiting for the source: 0.0 s for offsets, 2.8 s for rows; "
        "the usual is 0.1 s"
    )


def test_two_long_batches_are_enough_when_offsets_and_rows_come_slowly(history):
    [finding] = RULE.check(history(**FAR))

    assert finding.summary == (
        "5.0 s of a batch of 6.0 s are spent waiting for the source: 1.2 s for offsets, 3.8 s for rows; "
        "the usual is 0.1 s"
    )


def test_the_answer_that_ledgerops_waits_for_is_a_witness(history):
    [finding] = RULE.check(answers(history(**FAR)))

    assert finding.summary.endswith("; it answers ledgerops in 0.30 s (usually 0.01 s)")
    assert finding.confidence > 0.9


def test_of_tasks_that_read_and_write_a_second_witness_tells_that_it_is_the_source(history):
    case = {"seconds": [1.2] * 6 + [3.5] * 5, "stages": [[READS]] * 6 + [[WAITS]] * 5, "cores": 2}

    assert list(RULE.check(history(**case))) == []
    assert list(RULE.check(answers(history(**case))))


def test_while_the_first_slow_batch_runs_the_answers_to_ledgerops_tell_why(history):
    view = answers(history(seconds=[1.0] * 10, phases=[QUICK] * 10, running=12), now=2.4)
    [finding] = RULE.check(view)

    assert finding.summary == (
        "a batch has run for 12 s (usually 1.0 s), and the broker answers ledgerops in 2.40 s (usually 0.01 s)"
    )


@pytest.mark.parametrize(
    ("running", "now"),
    [
        pytest.param(3.0, 2.4, id="a batch that is not long yet"),
        pytest.param(12.0, 0.2, id="answers that are a little slower"),
        pytest.param(None, 2.4, id="no batch runs"),
    ],
)
def test_a_long_batch_or_a_slow_answer_alone_says_nothing(history, running, now):
    assert list(RULE.check(answers(history(seconds=[1.0] * 10, running=running), now=now))) == []


def test_on_a_busy_machine_slow_answers_must_be_slower_to_tell(history):
    assert list(RULE.check(busy(answers(history(seconds=[1.0] * 10, running=12), now=0.4)))) == []


def test_a_busy_machine_does_not_hide_it(history):
    assert list(RULE.check(busy(history(**FAR))))


def test_a_query_that_was_hardly_in_time_before_is_compared_with_its_quicker_batches(history):
    before = {"seconds": [2.3, 2.5] * 9 + [6.0] * 2, "phases": [QUICK] * 18 + [SLOWISH] * 2}
    stages = [[READS, WRITES]] * 18 + [[WAITS_LONG, WRITES]] * 2
    [finding] = RULE.check(history(**before, stages=stages, warm=1))

    assert finding.summary.startswith("5.0 s of a batch of 6.0 s are spent waiting for the source")


def test_larger_batches_do_not_hide_it(history):
    """Each takes all that came while the one before it waited."""
    assert list(RULE.check(history(**FAR, rows=[1000] * 6 + [3000] * 2)))


ASKS = {"latest_offset": 9.0, "add_batch": 1.0}


def test_a_source_that_was_slow_from_birth_needs_no_past(history):
    [finding] = RULE.check(history(warm=0, interval=5.0, seconds=[10.2] * 5, phases=[ASKS] * 5))

    assert finding.summary == "9.0 s of a batch of 10.2 s are spent asking the source"
    assert finding.share == pytest.approx(0.88, abs=0.01)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"seconds": [10.2], "phases": [ASKS]}, id="one batch so far"),
        pytest.param(
            {"seconds": [10.2] * 5, "phases": [{"latest_offset": 4.0, "add_batch": 6.0}] * 5}, id="less than half"
        ),
        pytest.param({"seconds": [10.2] * 5, "phases": [{"add_batch": 10.0}] * 5}, id="it is asked quickly"),
        pytest.param({"interval": 20.0, "seconds": [10.2] * 5, "phases": [ASKS] * 5}, id="the query has the time"),
        pytest.param(
            {"interval": 0.5, "seconds": [0.9] * 20, "phases": [{"latest_offset": 0.7, "add_batch": 0.2}] * 20},
            id="less than a second",
        ),
        pytest.param({"seconds": [10.2] * 5, "phases": [ASKS, ASKS, ASKS, ASKS, {"add_batch": 10.0}]}, id="no longer"),
    ],
)
def test_other_sources_from_birth_are_not(history, case):
    assert list(RULE.check(history(**{"warm": 0, "interval": 5.0} | case))) == []


def test_without_an_interval_each_batch_reads_what_came_while_it_waited(history):
    """Ten times the rows in a batch of ten times the seconds are no more rows a second."""
    slow = {"latest_offset": 1.8, "add_batch": 0.1}
    [finding] = RULE.check(
        history(
            interval=0.0, warm=0, rows=[20] * 80 + [200] * 5, seconds=[0.2] * 80 + [2.0] * 5,
            phases=[{"add_batch": 0.1}] * 80 + [slow] * 5,
        )
    )  # fmt: skip

    assert finding.summary == "1.8 s of a batch of 2.0 s are spent asking the source; the usual is 0.0 s"


def test_batches_that_outlast_the_interval_by_a_little_are_enough(history):
    slow = {"latest_offset": 1.9, "add_batch": 0.2}
    [finding] = RULE.check(history(seconds=[0.4] * 6 + [2.2] * 10, phases=[QUICK] * 6 + [slow] * 10))

    assert finding.summary == "1.9 s of a batch of 2.2 s are spent asking the source; the usual is 0.0 s"


def test_it_is_the_root_of_a_trigger_that_is_overrun(history):
    slow = {"latest_offset": 4.0, "add_batch": 0.8}
    verdict = Diagnoser()(history(seconds=[1.0] * 6 + [5.0] * 10, phases=[QUICK] * 6 + [slow] * 10))

    assert [root.rule for root in verdict.root_causes] == ["slow-source"]
    assert "trigger-overrun" in verdict.root_causes[0].explains
    assert verdict.status == "pressured"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({}, id="healthy"),
        pytest.param({"idle": True}, id="idle"),
        pytest.param(
            {"seconds": [1.0] * 5 + [1.8] * 3, "phases": [QUICK] * 5 + [{"latest_offset": 0.9}] * 3},
            id="slow, and still in time",
        ),
        pytest.param(
            {"seconds": [1.0] * 6 + [6.0] * 2, "phases": [QUICK] * 6 + [SLOWISH] * 2},
            id="two long batches, and nobody knows what their tasks did",
        ),
        pytest.param(
            FAR | {"phases": [QUICK] * 8}, id="two long batches, and only their tasks say that it is the source"
        ),
        pytest.param({"warm": 0, "seconds": [9.0], "phases": [{"latest_offset": 6.0}]}, id="the first batch"),
        pytest.param(
            {"seconds": [1.0] * 5 + [3.1] + [1.0] * 2, "phases": [QUICK] * 5 + [SLOW] + [QUICK] * 2},
            id="a single slow answer",
        ),
        pytest.param(
            {
                "seconds": [1.0] * 5 + [6.0] * 4,
                "phases": [QUICK] * 5 + [{"latest_offset": 0.6, "add_batch": 5.2}] * 4,
            },
            id="a loaded machine: all phases take longer",
        ),
        pytest.param(
            {"seconds": [1.0] * 5 + [3.1] * 2 + [1.0], "phases": [QUICK] * 5 + [SLOW] * 2 + [QUICK]},
            id="two slow answers, and it is over",
        ),
        pytest.param(
            {"seconds": [1.0] * 5 + [3.0] * 4, "phases": [QUICK] * 5 + [{"latest_offset": 0.95}] * 4},
            id="slower answers, but something else got slower by more",
        ),
        pytest.param(
            {
                "warm": 0,
                "seconds": [1.2] * 14 + [1.6] * 3,
                "phases": [{"latest_offset": 0.5}] * 14 + [{"latest_offset": 0.9}] * 3,
            },
            id="a distant source that is a little slower",
        ),
        pytest.param(
            {"seconds": [1.0] * 5 + [4.0] * 4, "phases": [QUICK] * 5 + [{"latest_offset": 0.02, "add_batch": 3.8}] * 4},
            id="a slow sink",
        ),
        pytest.param(
            {
                "seconds": [1.2] * 6 + [3.5] * 5,
                "stages": [[READS, WRITES]] * 6
                + [[stage("scan", seconds=(3.0, 3.0), shuffle=False, wall=3.0, cpu=0.9), WRITES]] * 5,
                "cores": 2,
            },
            id="tasks that compute",
        ),
        pytest.param(
            {"seconds": [1.2] * 6 + [3.5] * 5, "stages": [[READS]] * 6 + [[WAITS]] * 5, "cores": 2},
            id="tasks that read and write: it may be the sink",
        ),
        pytest.param(
            {"seconds": [10.0] * 8, "phases": [QUICK] * 8, "interval": 60.0}, id="long batches of a long trigger"
        ),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_a_machine_that_is_too_busy_makes_everything_slow(history):
    other = {"query_planning": 0.9, "wal_commit": 0.3}
    case = FAR | {"phases": [QUICK | {"query_planning": 0.1}] * 6 + [SLOWISH | other] * 2}

    assert list(RULE.check(busy(history(**case)))) == []


def test_a_broker_that_answers_only_ledgerops_slowly_does_no_harm(history):
    assert list(RULE.check(answers(history(seconds=[1.0] * 8, phases=[QUICK] * 8)))) == []


def test_a_slow_sink_stays_one_when_the_broker_is_slower_than_usual_too(history):
    phases = {"latest_offset": 0.04, "add_batch": 3.8}

    assert list(RULE.check(answers(history(seconds=[1.0] * 5 + [4.0] * 4, phases=[QUICK] * 5 + [phases] * 4)))) == []


def test_a_quick_source_is_acquitted(history):
    assert RULE.acquit(answers(history(seconds=[1.0] * 5, phases=[QUICK] * 5), now=0.01)) == (
        "asking the source takes 0.0 s of a batch of 1.0 s, and the broker answers ledgerops in 0.01 s"
    )
    assert RULE.acquit(history(seconds=[1.0] * 5, phases=[SLOW] * 5)) is None
