from collections.abc import Iterable
from math import exp

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.unbounded_state import RULE
from ledgerops.signals.query_view import QueryView
from tests.tables import cases

WATERMARK = {"watermarks": {"event_time": 10.0}}
MARKS = [1.79e9 + 2.0 * n for n in range(30)]
NO_TIMES = {"numRegisteredTimers": 0.0, "numExpiredTimers": 0.0, "numValueStateWithTTLVars": 0.0}
SESSIONS = "applyInPandasWithState"
A_DAY = "at this rate it grows by 4.3 GB a day"
NO_TIMEOUT = {"without_timeout": (SESSIONS,)}
MARKED = {"plan": NO_TIMEOUT | WATERMARK}


def growing(count: int, step: int = 1000, removed: int = 0, name: str = "dedupe", row: int = 100) -> list[dict]:
    """State that so many rows of so many bytes enter in each batch."""
    rows = [step * (n + 1) for n in range(count)]
    return [{"name": name, "rows": each, "removed": removed, "memory_bytes": row * each} for each in rows]


def counted(rows: Iterable[float]) -> list[dict]:
    """State of so many rows after each batch."""
    return [{"name": "dedupe", "rows": int(each)} for each in rows]


FILLS = counted(5000 * (1 - 0.8 ** (n + 1)) for n in range(30))  # a count by key: it grows until each was seen
DRAWN = counted(1e5 * (1 - exp(-1000 * (n + 1) / 1e5)) for n in range(30))  # a thousand rows of any of the keys


def changing(plateau: int, growth: int, after: int = 0) -> list[dict]:
    """State that stood still, grew, and stood still again."""
    rows = [300] * plateau + [300 + 1000 * (n + 1) for n in range(growth)]
    return counted(rows + rows[-1:] * after)


@cases(
    "operators, said",
    ("always", growing(30), "24,000 rows, to 30,000, in 48 s and removed none: there is no watermark; " + A_DAY),
    (
        "after a plateau, sooner",
        changing(20, 6),
        "6,000 rows, to 6,300, in 12 s and removed none: there is no watermark",
    ),
)
def test_state_that_only_grows_is_found(history, operators, said):
    [finding] = RULE.check(history(warm=0, operators=operators))
    assert finding.summary == f"the state of dedupe grew by {said}"


def test_what_an_earlier_run_held_is_no_state_that_shrank(history):
    """A restart with a new checkpoint begins with no row, as the runbook advises."""
    view = history(warm=0, operators=growing(30))
    [point] = list(view.history.trend)[:1]
    began = view.history.started_at
    view.history.trend.appendleft(point._replace(at=began - 10, state_rows=70_000))
    assert len(list(RULE.check(QueryView(view.history, view.now)))) == 1

    view.history.trend.appendleft(point._replace(at=began + 1, state_rows=70_000))
    assert list(RULE.check(QueryView(view.history, view.now))) == []


def test_a_watermark_that_never_removes_is_found_after_days_of_event_time(history):
    marks = [1.79e9 + 7200.0 * n for n in range(30)]
    [finding] = RULE.check(history(warm=0, operators=growing(30), watermark=marks))
    assert "the watermark removes nothing" in finding.summary


@cases(
    "mode, why, step",
    ("complete", "complete", "complete mode keeps every group", "write in update mode"),
    ("another", "update", None, None),
)
def test_in_complete_mode_a_watermark_bounds_nothing(history, mode, why, step):
    groups = growing(30, name="stateStoreSave")
    found = beside_a_watermark(history, WATERMARK | {"output_mode": mode}, groups)
    assert [why in each.summary for each in found] == [True] * bool(why)
    assert [each.remedies[1].action.startswith(step) for each in found] == [True] * bool(why)


def beside_a_watermark(history, plan, operators):
    """Found in a minute in which the watermark advances with the clock."""
    return list(RULE.check(history(warm=0, operators=operators, watermark=MARKS, plan=plan)))


@cases(
    "name, why",
    ("distinct rows", "dedupe", "no column of its keys is the event time"),
    ("a second count", "stateStoreSave-1", "no column of its keys is the event time"),
    ("a join", "symmetricHashJoin", "the join does not bound the time between its rows"),
)
def test_state_that_the_watermark_does_not_reach_is_kept_for_ever(history, name, why):
    plan = WATERMARK | {"without_event_time": (name.split("-")[0],)}
    [finding] = beside_a_watermark(history, plan, growing(30, name=name))

    assert f"removed none: {why}; at this rate it grows by 43,200,000 rows and" in finding.summary
    assert finding.confidence == 0.9
    assert finding.remedies[1].action.startswith("bound the state with withWatermark and the event time in the keys")


def joining(history, watermarks):
    """A join of two sources that the watermark never lets forget."""
    plan = {"watermarks": watermarks, "without_event_time": ("symmetricHashJoin",)}
    view = history(warm=0, operators=growing(30, name="symmetricHashJoin"), watermark=MARKS, plan=plan)
    for each in view.history.batches:
        each.sources = each.sources * 2
    [finding] = RULE.check(QueryView(view.history, view.now))
    return finding


def test_a_join_with_a_watermark_on_one_input_is_told_so(history):
    finding = joining(history, {"its": 5.0})

    assert (
        "none: a watermark is on `its` only, or the join does not bound the time between its rows;" in finding.summary
    )
    assert finding.remedies[1].action == (
        "call withWatermark on each input of the join, and bound the time between their rows in its condition"
    )


@pytest.mark.parametrize("watermarks", [{"its": 5.0, "cts": 5.0}, {}], ids=["two", "the plan has none"])
def test_of_a_join_with_two_watermarks_only_the_range_is_missing(history, watermarks):
    finding = joining(history, watermarks)
    assert "removed none: the join does not bound the time between its rows;" in finding.summary


def not_counted(count, saw=1, updated=1000, removed=0):
    """State of which RocksDB counts no rows: its files gain 300 kB in each batch, and `saw` of them are merged."""
    files = [{"rocksdbSstFileSize": 3e5 * (n + 1 if saw == 1 else n % saw + n / saw)} for n in range(count)]
    return [{"name": "dedupe", "rows": 0, "updated": updated, "removed": removed, "custom": each} for each in files]


def test_state_of_which_the_rows_are_not_counted_is_judged_by_its_files(history):
    [finding] = RULE.check(history(warm=0, operators=not_counted(30)))

    assert finding.summary == (
        "the state of dedupe grew by 7.2 MB on the disk, to 9.0 MB, in 48 s and removed none: there is no watermark; "
        "at this rate it grows by 13.0 GB a day"
    )
    assert [each.name for each in finding.evidence] == [
        "state_bytes", "state_bytes_growth_per_second", "state_rows_removed", "state_bytes_in_a_day",
    ]  # fmt: skip


@cases(
    "operators",
    ("old values are merged away", not_counted(30, saw=4)),
    ("no row is updated", not_counted(30, updated=0)),
    ("each row is removed in the batch that adds it", not_counted(30, removed=1000)),
    ("too early to tell", not_counted(12)),
)
def test_files_that_do_not_show_state_that_only_grows_are_not_told(history, operators):
    assert list(RULE.check(history(warm=0, operators=operators))) == []


def timed(timers, name="transformWithStateInPySparkExec"):
    """State of a function that has so many timers in each batch."""
    told = growing(30, name=name)
    return [each | {"custom": NO_TIMES | {"numRegisteredTimers": timers(n)}} for n, each in enumerate(told)]


def test_a_function_that_sets_no_time_is_told_what_it_lacks_and_not_a_watermark(history):
    [finding] = beside_a_watermark(history, WATERMARK, timed(lambda n: 0.0))
    assert "removed none: no timer, timeout or time to live ended a key of it" in finding.summary
    assert finding.remedies[1].action == "give the function a timeout, timers or a time to live"

    # a batch without rows sets no timer and tells nothing
    assert beside_a_watermark(history, WATERMARK, timed(lambda n: 9.0 * (n < 29))) == []


def test_without_a_watermark_an_operator_whose_metrics_tell_of_no_timer_has_no_excuse(history):
    name = "transformWithStateExec"
    [finding] = RULE.check(history(warm=0, operators=timed(lambda n: 0.0, name)))
    assert finding.component.name == name


@cases(
    "without, name",
    ("the event time is in the keys, or the plan was not read", (), "dedupe"),
    ("it does not reach another operator", ("symmetricHashJoin",), "dedupe"),
    ("within the watermark", ("dedupe",), "dedupeWithinWatermark"),
)
def test_where_the_watermark_may_remove_rows_nothing_is_said(history, without, name):
    assert beside_a_watermark(history, WATERMARK | {"without_event_time": without}, growing(30, name=name)) == []


LIVES_A_DAY = [
    each | {"custom": NO_TIMES | {"numValueStateWithTTLVars": 1.0}}
    for each in growing(195, name="transformWithStateInPySparkExec")
]


@cases(
    "operators, more",
    ("too early to tell", growing(12), {}),
    ("it forgets", growing(30, removed=10), {}),
    ("keys that fill up", FILLS, {}),
    ("a plateau", growing(30, step=0), {}),
    ("it stands still again", changing(20, 15, 4), {}),
    ("new keys for a few batches", changing(20, 4), {}),
    ("a hundred thousand keys", DRAWN, {}),
    ("few rows stay", growing(30, step=20), {}),
    ("the first window is not over", growing(30), {"watermark": MARKS}),
    ("a watermark that is not set yet", growing(30), {"plan": {"watermarks": {"event_time": 30.0}}}),
    ("an operator with its own time to live", growing(30, name="transformWithStateInPySparkExec"), {}),
    ("a time to live of a day", LIVES_A_DAY, {"interval": 10.0}),
)
def test_others_are_not(history, operators, more):
    assert list(RULE.check(history(warm=0, operators=operators, **more))) == []


def sessions(history, plan=NO_TIMEOUT, count=24, rows=60, step=60, name=SESSIONS, row=200, removed=0):
    """A new key in each row: 30 rows a second."""
    return history(warm=0, rows=rows, operators=growing(count, step, removed, name, row), plan=plan)


@cases(
    "case, severity, grew, a_day",
    ("a new key in each row", {}, "info", "1,080 rows, to 1,440", "2,592,000 rows and 518 MB"),
    ("five new keys a second", {"step": 10, "rows": 10}, "info", "180 rows, to 240", "432,000 rows and 86.4 MB"),
    (
        "a heap is full in less than a day",
        {"row": 20_000},
        "warning",
        "1,080 rows, to 1,440",
        "2,592,000 rows and 51.8 GB",
    ),
    ("the second of a kind", {"name": f"{SESSIONS}-2"}, "info", "1,080 rows, to 1,440", "2,592,000 rows and 518 MB"),
    ("a watermark ends nothing", MARKED, "info", "1,080 rows, to 1,440", "2,592,000 rows and 518 MB"),
)
def test_state_of_a_function_without_a_timeout_is_a_warning_where_memory_lasts_for_less_than_a_day(
    history, case, severity, grew, a_day
):
    [finding] = Diagnoser((RULE,))(sessions(history, **case)).findings

    assert finding.severity == severity
    assert finding.summary == (
        f"the state of {case.get('name', SESSIONS)} grew by {grew}, in 36 s and removed none: it has no timeout; "
        f"at this rate it grows by {a_day} a day"
    )
    assert finding.remedies[0].action == (
        "find out in the function which keys are finished, and call state.remove() for them"
    )


@cases(
    "case",
    ("a timeout, or a plan that was not read", {"plan": {}}),
    ("another operator has none", {"plan": {"without_timeout": ("flatMapGroupsWithState",)}}),
    ("a watermark that its timeouts may follow", {"plan": WATERMARK}),
    ("the function removes rows", {"removed": 1}),
    ("too early to tell", {"count": 14}),
    ("one new key a second, so far", {"step": 2, "rows": 2}),
    ("no new keys", {"step": 0}),
    ("few rows bring a new key", {"rows": 6000}),
)
def test_slow_growth_of_other_functions_is_not_told(history, case):
    assert list(RULE.check(sessions(history, **case))) == []
