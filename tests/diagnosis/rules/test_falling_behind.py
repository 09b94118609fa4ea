import pytest

from ledgerops.diagnosis.rules.falling_behind import RULE
from tests.diagnosis.conftest import told_by
from tests.diagnosis.rules.retelling import beside_another
from tests.tables import cases

FROM_BIRTH = {"warm": 0, "rows": [1900, 2400, 3000]}
MORE_AND_MORE = {"seconds": [30 + 4 * n for n in range(7)], "backlog": [15_000 + 2_000 * n for n in range(7)]}
READ_IN_THE_NEXT = MORE_AND_MORE | {"interval": 60.0, "rows": 30_000}
OF_MINUTES = {"seconds": [360] * 8, "backlog": [36_000] * 8, "rows": 36_000, "interval": 0.0}
SHORT = [0.5] * 5 + [1.3, 0.42, 0.44, 0.47, 0.5, 0.53, 0.57]
LONG = [6.0] * 5 + [13.0, 5.9, 6.25, 6.6, 5.6, 5.95, 6.3]
ONE_OF_TWICE_THE_ROWS = {"rows": [50] * 5 + [101] + [50] * 6, "warm": 0, "interval": 0.0, "plan": {"trigger": None}}


def test_growing_backlog_is_found(history):
    [finding] = RULE.check(history(seconds=[2] * 8, backlog=[1000 * n for n in range(1, 9)], rows=1000))
    assert finding.summary == (
        "the backlog grew over 9 batches from 0 to 8,000 offsets; the oldest unread row has waited 10 s"
    )


def test_a_topic_that_is_left_behind_is_found_beside_one_with_ten_times_the_rows(history):
    """Half of its rows stay: a twentieth of all that come."""
    view = history(seconds=[1] * 11, backlog=[100 * n for n in range(1, 12)], rows=100, warm_rows=100)
    [finding] = RULE.check(beside_another(view, 2000))
    assert finding.summary.startswith("the backlog grew over 12 batches from 0 to 1,100 offsets; the oldest unread row")


def test_of_topics_none_of_which_loses_more_than_noise_none_is_left_behind(history):
    view = history(seconds=[1] * 12, backlog=[5000 + 90 * n for n in range(12)])
    assert list(RULE.check(view)) == list(RULE.check(beside_another(view, 2000))) == []


@cases(
    "case, which, longest, late",
    ("nothing limits them", {"seconds": [4, 8, 16], "rows": [2000, 4000, 8000]}, "each of the last 3 batches", 16, 24),
    ("one with far more rows", {"warm_seconds": 1.9, "seconds": [16], "rows": [8000]}, "the last batch", 16, 18),
    ("one that runs", {"seconds": [4, 8], "rows": [2000, 4000], "running": 10}, "each of the last 3 batches", 10, 18),
    ("two after the first", {"seconds": [15, 19, 24]} | FROM_BIRTH, "each of the last 2 batches", 24, 43),
)
def test_batches_that_get_longer_are_found(history, case, which, longest, late):
    [finding] = RULE.check(history(**case))
    told = f"took longer than its rows took to arrive, up to {longest} s; results are {late} s late"
    assert finding.summary == f"{which} {told}"


@cases(
    "case",
    ("too few batches to tell", {"seconds": [2] * 3, "backlog": [1000, 9000, 20000]}),
    ("large but steady", {"seconds": [1.5] * 12, "backlog": [900] * 12}),
    ("a burst", {"seconds": [2] * 8, "backlog": [0, 9000, 8000, 6000, 4000, 2000, 500, 0]}),
    ("a saw-tooth", {"seconds": [1] * 12, "backlog": [0, 400, 0] * 4}),
    ("batches of minutes that leave what came meanwhile", OF_MINUTES),
    ("the same while one runs", OF_MINUTES | {"running": 350}),
    ("growing, but far below a second", {"seconds": [2] * 6, "backlog": [5, 10, 20, 40, 60, 90]}),
    ("one slow batch", {"seconds": [9], "rows": [1000]}),
    ("a slow first one with rows", {"warm": 0, "seconds": [10, 19], "rows": [0, 10_000], "interval": 4.0}),
    ("one batch held up for a minute", {"seconds": [60], "rows": [1000]}),
    ("a slow one and one that is held up", {"seconds": [4, 60], "rows": [1000, 2000]}),
    ("batches that settle above the interval", {"seconds": [2.5, 2.75, 2.9, 2.95, 3, 3, 3]}),
    ("one batch over a long interval", {"seconds": [20, 70], "interval": 60.0}),
    ("more is left of each interval, and all of it is read in the next one", READ_IN_THE_NEXT),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_rows_that_came_while_a_batch_waited_for_its_source_did_not_pile_up(history):
    """After an outage of the broker it has read all that came until it was answered."""
    waited = [{"latest_offset": 20.5, "add_batch": 0.8}]
    found = [list(RULE.check(history(seconds=[21.5], rows=[11_000], phases=each))) for each in (None, waited)]
    assert [bool(each) for each in found] == [True, False]


def test_results_are_late_since_the_batch_before_asked_for_its_offsets(history):
    case = {"seconds": [8, 20], "rows": [4000, 12_000]}
    [finding] = RULE.check(history(**case, phases=[{"latest_offset": 1.5, "add_batch": 6.0}, {"add_batch": 19.0}]))
    assert told_by(finding)["result_delay_seconds"] == pytest.approx(26.5)


def back_to_back(first, per_row, overhead, batches=5, rate=40):
    """Seconds and rows of batches of which each reads what came while the one before it ran."""
    seconds, rows = [first], [round(first / per_row)]
    for _ in range(batches - 1):
        rows.append(round(rate * seconds[-1]))
        seconds.append(overhead + per_row * rows[-1])
    return {"seconds": seconds, "rows": rows, "warm": 0, "interval": 0.0, "plan": {"trigger": None}}


@pytest.mark.parametrize("batches", [4, 5])
def test_long_batches_that_grow_by_a_fifth_each_are_found_after_three(history, batches):
    """A row takes 29 ms and 40 come a second, so that no batch is ever long enough. The first says when the rows of the
    second began to come."""
    [finding] = RULE.check(history(**back_to_back(8.0, 0.029, 0.5, batches)))
    assert finding.summary.startswith("each of the last 3 batches took longer than its rows took to arrive")


@cases(
    "case",
    ("two after the first say too little", back_to_back(8.0, 0.029, 0.5, batches=3)),
    ("two that are hardly longer", {"seconds": [15, 18, 22], **FROM_BIRTH}),
    ("one that is longer", {"seconds": [15, 16, 24], **FROM_BIRTH}),
    ("two that are not long", {"seconds": [6, 8, 11], **FROM_BIRTH}),
    ("without an interval", {"seconds": [15, 19, 24], "interval": 0.0, **FROM_BIRTH}),
    ("they settle at 15 s", back_to_back(6.0, 0.02, 3.0)),
    ("four that settle at 20 s", back_to_back(8.0, 0.02, 4.0, batches=4)),
    ("too short to tell after three", back_to_back(1.0, 0.029, 0.2)),
    ("they get shorter", back_to_back(20.0, 0.02, 1.0)),
    ("short, and results are a second late", ONE_OF_TWICE_THE_ROWS | {"seconds": SHORT}),
    ("long, but no longer than before", ONE_OF_TWICE_THE_ROWS | {"seconds": LONG}),
)
def test_batches_that_settle_or_are_short_are_not(history, case):
    assert list(RULE.check(history(**case))) == []
