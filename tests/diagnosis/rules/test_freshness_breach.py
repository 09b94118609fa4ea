import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.freshness_breach import RULE
from ledgerops.metrics.latency import EVENT_BOUNDS, LE, SUM
from ledgerops.model.records import Running
from tests.diagnosis.conftest import told_by
from tests.diagnosis.rules.broker import asked
from tests.diagnosis.rules.retelling import retold
from tests.tables import cases

OVERLOAD = {"seconds": [2] * 70, "backlog": [500 * n for n in range(1, 71)], "rows": 500}
LIVE = {"seconds": [1] * 40, "plan": {"watermarks": {"event_time": 10.0}}}
OLD, BEHIND = [2.0] * 30 + [90.0], [12.0] * 30 + [100.0]
APPENDS = {"watermarks": {"event_time": 10.0}, "output_mode": "append"}
HELD_BACK = (
    "the watermark delays results by 8 h 20 min; the limit is 60 s and two intervals of 2 s; rows of now "
    "arrive, but the watermark is that of the input with the oldest rows"
)
WINDOWS = {"warm": 0, "seconds": [1] * 40, "operators": {}, "plan": APPENDS}
YEARS = [9e7 + 3.0 * n for n in range(40)]
DAY = {"watermarks": {"event_time": 86400.0}}


def aged(view, ages, late=0):
    """Rows observed with these ages, the last of them in all later batches; `late` of 100 rows are 900 s older."""
    return retold(view, lambda n, batch: {"observed": {"ledgerops": _observed(ages[min(n, len(ages) - 1)], late)}})


def _observed(age, late):
    counts = {f"{LE}{i}": (100 - late) * (age <= b) + late * (age + 900 <= b) for i, b in enumerate(EVENT_BOUNDS)}
    return {**counts, f"{LE}{len(EVENT_BOUNDS)}": 100, SUM: 100.0 * age + 900.0 * late, "rows": 100}


def marked(view, behind):
    """A watermark so many seconds behind the end of each batch."""
    return retold(view, lambda n, batch: {"watermark": batch.ended - behind[min(n, len(behind) - 1)]})


@cases(
    "make, said",
    ("unread rows", lambda history: history(**OVERLOAD), "the oldest unread row has waited 72 s"),
    ("a long batch", lambda history: history(**LIVE, running=100), "results are late by 1 min 41 s"),
    ("rows", lambda history: aged(history(**LIVE), OLD), "half of the rows have an event time older than 90 s"),
    ("a watermark", lambda history: marked(history(**LIVE), BEHIND), "the watermark delays results by 90 s"),
)
def test_what_is_too_late_is_told(history, make, said):
    [finding] = RULE.check(make(history))
    assert finding.summary == f"{said}; the limit is 60 s and two intervals of 2 s"


@cases(
    "make",
    ("a replay", lambda history: aged(marked(history(**LIVE), YEARS), YEARS)),
    ("a lateness of a day is wanted", lambda history: marked(history(**LIVE | {"plan": DAY}), [86402.0])),
    ("a fifth of rows that are very late", lambda history: aged(history(**LIVE), [2.0], late=20)),
    ("one batch", lambda history: aged(history(**LIVE), [2.0] * 30 + [90.0] + [2.0])),
)
def test_other_old_rows_are_not(history, make):
    assert list(RULE.check(make(history))) == []


def test_what_came_after_a_pause_has_not_waited_through_it(history):
    view = history(seconds=[1] * 40)
    ended = view.history.batches[-1].ended
    view.history.set_running(Running(ended + 100, "run-1", ended + 80, "Processing new data"))
    assert [len(list(RULE.check(view.at(ended + seconds)))) for seconds in (100, 160)] == [0, 1]


NO_TRIGGER = {"trigger": None, "trigger_interval": None}


@cases(
    "case, pause",
    ("rows come minutes apart", {"seconds": [1.5] * 40}, lambda n: 90.0),
    ("and no trigger is told", {"seconds": [1.5] * 40, "plan": NO_TRIGGER}, lambda n: 90.0),
    ("hourly batches without a trigger", {"seconds": [70] * 6, "plan": NO_TRIGGER}, lambda n: 3600.0 + 10.0 * n),
)
def test_rows_have_not_waited_through_a_usual_pause(history, case, pause):
    """As Spark tells it: a batch when there is something to read, and a word of being idle in between."""
    view = retold(history(**case), lambda n, batch: {"started": batch.started + pause(n) * n})
    assert list(RULE.check(view.at(view.history.batches[-1].ended + 1))) == []


def beside_live_rows(history, behind=30_000.0, newest=1.0, **case):
    """An input that holds the watermark back by `behind` seconds; `newest` is the age of the other's newest row."""
    view = history(**WINDOWS | case)
    times = {"watermark": behind, "event_time_max": newest}
    return retold(view, lambda n, batch: {name: batch.ended - seconds for name, seconds in times.items()})


def test_live_rows_that_an_input_of_old_rows_holds_back_from_birth_are_found(history):
    [finding] = RULE.check(beside_live_rows(history))
    assert finding.summary == HELD_BACK


@cases(
    "case, stands",
    ("a join", {"operators": {"name": "symmetricHashJoin"}}, False),
    ("distinct rows", {"operators": {"name": "dedupe"}}, False),
    ("updated results", {"plan": APPENDS | {"output_mode": "update"}}, False),
    ("old rows only", {"newest": 29_000.0}, False),
    ("a short delay", {"behind": 60.0}, False),
    ("times in the future", {"newest": -90_000.0}, False),
    ("a watermark that stands, since an input is silent", {}, True),
)
def test_live_rows_of_which_no_result_waits_for_the_watermark_are_not_held_back(history, case, stands):
    view = beside_live_rows(history, **case)
    newest = view.history.batches[-1].watermark
    assert list(RULE.check(retold(view, lambda n, batch: {"watermark": newest if stands else batch.watermark}))) == []


def test_a_watermark_that_follows_the_rows_of_long_batches_at_once_is_not_held_back(history):
    long = history(**WINDOWS | {"seconds": [55] * 40, "interval": 0.0})

    def follow(n, batch):
        return {"watermark": batch.started - batch.duration - 10.0, "event_time_max": batch.started}

    [finding] = RULE.check(retold(long, follow))
    assert finding.summary == "results are late by 1 min 50 s; the limit is 60 s"
    assert "watermark_lag_seconds" not in told_by(finding)


def test_it_is_folded_under_what_makes_the_query_fall_behind(history):
    [root] = Diagnoser()(history(**OVERLOAD)).root_causes
    assert root.rule == "input-overload" and "freshness-breach" in root.explains


def test_the_objective_is_the_users(history):
    view = history(seconds=[2] * 40, backlog=[500 * n for n in range(1, 41)], rows=500)
    [finding] = RULE.check(view.at(view.now, freshness=20.0))
    assert told_by(finding)["freshness_objective_seconds"] == 24.0


@pytest.mark.parametrize(("each_batch", "found"), [(3000, 0), (450, 1)])
def test_a_backlog_that_will_soon_be_gone_is_no_breach_any_more(history, each_batch, found):
    falls = [34_500 - each_batch * n for n in range(1, 10)]
    view = history(seconds=[2] * 79, backlog=[*(500 * n for n in range(70)), *falls], rows=500)
    assert len(list(RULE.check(view))) == found


@cases(
    "case",
    ("nothing to read", {"seconds": [1] * 40, "quiet_for": 300, "rows": 0}),
    ("a run that ends by itself", {**OVERLOAD, "plan": {"trigger": "available_now"}}),
    ("not yet", {"seconds": [2] * 12, "backlog": [500 * n for n in range(12)], "rows": 500}),
    ("catching up", {"warm": 0, "seconds": [2] * 60, "backlog": [90_000 - 1000 * n for n in range(60)]}),
    ("it has just begun to", {"warm": 0, "seconds": [40] * 3, "backlog": [9_000_000 - 1000 * n for n in range(3)]}),
    ("its first batch is read", {"warm": 0, "seconds": [80], "backlog": [9_000_000], "running": 9.0}),
    ("a trigger of a minute", {"seconds": [20] * 12, "interval": 60.0}),
    ("one long pause", {"seconds": [1] * 30 + [50]}),
    ("a long first batch and what comes after it", {"warm": 0, "seconds": [90], "running": 20}),
    ("timers", {"seconds": [1] * 40, "running": 100, "message": "No new data but cleaning up"}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_rows_that_a_batch_read_after_a_long_wait_for_its_source_are_not_late(history):
    """What the next batch reads came since that answer, not since the question."""
    waited = [{"latest_offset": 79.0, "add_batch": 0.9}, {"add_batch": 4.9}]
    found = [list(RULE.check(history(seconds=[80, 5], warm=20, phases=phases))) for phases in (None, waited)]
    assert [bool(each) for each in found] == [True, False]


def resting(history, latest=9000, seconds=120.0, **case):
    """A query that Spark has called idle for so long, whose topic ends at an offset; it has read up to 6000."""
    return asked(history(idle=True, **case), [latest], [0], later=seconds)


def test_rows_that_an_open_transaction_hides_from_an_idle_query_are_found(history):
    verdict = Diagnoser()(resting(history))

    [root] = verdict.root_causes
    assert (verdict.status, root.rule) == ("idle", "freshness-breach")
    assert root.summary == (
        "Spark finds no new rows, but 3,000 offsets of the source are unread, the oldest for 2 min: an open "
        "transaction hides them from a query that reads committed rows only"
    )
    assert root.remedies[0].action.endswith("kafka-transactions.sh find-hanging")
    assert told_by(root) == {"ledgerops_source_lag_seconds": 120.0, "freshness_objective_seconds": 64.0}


@cases(
    "case",
    ("all is read", {"latest": 6000}),
    ("a transaction that is open for as long as any", {"seconds": 50}),
    ("a trigger of ten minutes", {"interval": 600.0}),
    ("it waits until there are more rows", {"plan": {"rate_limits": {"minOffsetsPerTrigger": "10000"}}}),
    ("the same over Spark Connect", {"plan": {"rate_limits": {"minoffsetspertrigger": "10000"}}}),
    ("a run that ends by itself", {"plan": {"trigger": "available_now"}}),
)
def test_unread_rows_of_an_idle_query_need_not_be_hidden(history, case):
    assert list(RULE.check(resting(history, **case))) == []


def test_a_query_that_nobody_knows_the_interval_of_may_look_again_later(history):
    plan = {"trigger": None, "trigger_interval": None}
    view = asked(history(idle=True, warm=0, seconds=[1.0], plan=plan, interval=None), [9000], [0], later=120.0)
    assert not view.trigger.known and list(RULE.check(view)) == []


def test_rows_that_an_idle_query_has_begun_to_read_are_not_hidden(history):
    view = resting(history)
    view.history.set_running(Running(view.now, "run-1", view.now - 1, "Processing new data"))
    assert list(RULE.check(view.at(view.now))) == []
