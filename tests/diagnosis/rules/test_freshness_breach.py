import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.freshness_breach import RULE
from ledgerops.metrics.latency import EVENT_BOUNDS, LE, SUM
from ledgerops.model.records import BatchFiles, FilesRead, Running
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.rules.retelling import retold
from tests.tables import cases

OVERLOAD = {"seconds": [2] * 70, "backlog": [500 * n for n in range(1, 71)], "rows": 500}
LIVE = {"seconds": [1] * 40, "plan": {"watermarks": {"event_time": 10.0}}}
OLD, BEHIND = [2.0] * 30 + [90.0], [12.0] * 30 + [100.0]
APPENDS = {"watermarks": {"event_time": 10.0}, "output_mode": "append"}
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
    assert finding.summary == f"{said}; the limit is 64 s"


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
    ended, past = view.history.batches[-1].ended, view.history
    past.set_running(Running(ended + 100, "run-1", ended + 80, "Processing new data"))

    assert list(RULE.check(QueryView(past, ended + 100))) == []
    assert len(list(RULE.check(QueryView(past, ended + 160)))) == 1


@cases("plan", ("a trigger", {}), ("none that is told", {"trigger": None, "trigger_interval": None}))
def test_rows_that_come_minutes_apart_have_not_waited_for_each_other(history, plan):
    """As Spark tells it: a batch when there is something to read, and a word of being idle in between."""
    sparse = retold(history(seconds=[1.5] * 40, plan=plan), lambda n, batch: {"started": batch.started + 90.0 * n})
    assert list(RULE.check(QueryView(sparse.history, sparse.history.batches[-1].ended + 1))) == []


def test_the_pauses_of_a_trigger_that_nobody_told_are_allowed(history):
    view = history(seconds=[70] * 6, interval=None, plan={"trigger": None})
    hourly = retold(view, lambda n, batch: {"started": batch.started + (3600.0 + 10.0 * n) * n})
    assert list(RULE.check(QueryView(hourly.history, hourly.history.batches[-1].ended + 1))) == []


def beside_live_rows(history, behind=30_000.0, newest=1.0, **case):
    """An input that holds the watermark back by `behind` seconds; `newest` is the age of the other's newest row."""
    view = history(**WINDOWS | case)
    times = {"watermark": behind, "event_time_max": newest}
    return retold(view, lambda n, batch: {name: batch.ended - seconds for name, seconds in times.items()})


def test_live_rows_that_an_input_of_old_rows_holds_back_from_birth_are_found(history):
    capped = WINDOWS["plan"] | {"rate_limits": {"maxFilesPerTrigger": "1"}}

    [finding] = RULE.check(beside_live_rows(history, plan=capped))
    assert finding.summary == (
        "the watermark delays results by 8 h 20 min; the limit is 64 s; rows of now arrive, but the watermark is that "
        "of the input with the oldest rows; maxFilesPerTrigger is 1"
    )


def test_the_input_that_holds_live_rows_back_is_named_where_the_age_of_its_files_tells(history):
    view = beside_live_rows(history)
    last = view.history.batches[-1]
    written = last.started - 36_000.0
    view.history.files.append(BatchFiles("run-1", last.batch_id, {"archive": FilesRead(1, written, written)}))

    [finding] = RULE.check(QueryView(view.history, view.now))
    assert finding.summary.endswith("the input with the oldest rows: archive, 10 h behind")


@cases(
    "case",
    ("a join", {"operators": {"name": "symmetricHashJoin"}}),
    ("distinct rows", {"operators": {"name": "dedupe"}}),
    ("updated results", {"plan": WINDOWS["plan"] | {"output_mode": "update"}}),
    ("old rows only", {"newest": 29_000.0}),
    ("a short delay", {"behind": 60.0}),
    ("times in the future", {"newest": -90_000.0}),
)
def test_live_rows_of_which_no_result_waits_for_the_watermark_are_not_held_back(history, case):
    assert list(RULE.check(beside_live_rows(history, **case))) == []


def test_a_watermark_that_stands_is_another_matter_since_an_input_is_silent(history):
    view = beside_live_rows(history)
    stands = view.history.batches[-1].watermark
    assert list(RULE.check(retold(view, lambda n, batch: {"watermark": stands}))) == []


def test_a_watermark_that_follows_the_rows_of_long_batches_at_once_is_not_held_back(history):
    long = history(**WINDOWS | {"seconds": [55] * 40, "interval": 0.0})

    def follow(n, batch):
        return {"watermark": batch.started - batch.duration - 10.0, "event_time_max": batch.started}

    [finding] = RULE.check(retold(long, follow))
    assert finding.summary == "results are late by 1 min 50 s; the limit is 60 s"
    assert "watermark_lag_seconds" not in {each.name for each in finding.evidence}


def test_it_is_folded_under_what_makes_the_query_fall_behind(history):
    roots = Diagnoser()(history(**OVERLOAD)).root_causes
    assert [root.rule for root in roots] == ["input-overload"]
    assert "freshness-breach" in roots[0].explains


@pytest.mark.parametrize(("each_batch", "found"), [(3000, 0), (450, 1)])
def test_a_backlog_that_will_soon_be_gone_is_no_breach_any_more(history, each_batch, found):
    falls = [34_500 - each_batch * n for n in range(1, 10)]
    view = history(seconds=[2] * 79, backlog=[*(500 * n for n in range(70)), *falls], rows=500)
    assert len(list(RULE.check(view))) == found


def test_the_objective_is_the_users(history):
    view = history(seconds=[2] * 40, backlog=[500 * n for n in range(1, 41)], rows=500)
    view.freshness = 20.0
    [finding] = RULE.check(view)
    assert (finding.evidence[-1].name, finding.evidence[-1].value) == ("freshness_objective_seconds", 24.0)


@cases(
    "case",
    ("healthy", {"seconds": [1] * 40}),
    ("idle", {"seconds": [1] * 40, "idle": True, "quiet_for": 300}),
    ("nothing to read", {"seconds": [1] * 40, "quiet_for": 300, "rows": 0}),
    ("a run that ends by itself", {**OVERLOAD, "plan": {"trigger": "available_now"}}),
    ("not yet", {"seconds": [2] * 12, "backlog": [500 * n for n in range(12)], "rows": 500}),
    ("catching up", {"warm": 0, "seconds": [2] * 60, "backlog": [90_000 - 1000 * n for n in range(60)]}),
    ("a trigger of a minute", {"seconds": [20] * 12, "interval": 60.0}),
    ("one long pause", {"seconds": [1] * 30 + [50]}),
    ("a long first batch and what comes after it", {"warm": 0, "seconds": [90], "running": 20}),
    ("timers", {"seconds": [1] * 40, "running": 100, "message": "No new data but cleaning up"}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_rows_that_a_batch_read_after_a_long_wait_for_its_source_are_not_late(history):
    """What the next batch reads came since that answer, not since the question."""
    case = {"seconds": [80, 5], "warm": 20}
    waited = [{"latest_offset": 79.0, "add_batch": 0.9}, {"add_batch": 4.9}]
    assert list(RULE.check(history(**case)))
    assert list(RULE.check(history(**case, phases=waited))) == []
