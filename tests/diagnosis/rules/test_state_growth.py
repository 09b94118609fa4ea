import pytest

from ledgerops.diagnosis.rules.state_growth import RULE
from ledgerops.model.records import Executor, Host
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.conftest import told_by
from tests.tables import cases

MIB = 2**20
BOUNDED = [{"rows": int(30_000 * (1 - 0.9**n)), "memory_bytes": int(6e7 * (1 - 0.9**n))} for n in range(40)]
SMALL, LARGE = {"rows": 10, "memory_bytes": 1_000}, {"rows": 10, "memory_bytes": 20_000_000}


def growing(count: int, step: int = 1000, removed: int = 0, row: int = 500, **more) -> list[dict]:
    return [
        {"name": "dedupe", "rows": step * (n + 1), "removed": removed, "memory_bytes": row * step * n} | more
        for n in range(count)
    ]


def in_rhythm(quiet: int, after: int) -> list[dict]:
    """Rows that are removed in every third batch, and then no longer."""
    told = [{"rows": 1000 * (n % 3 + 1), "removed": 2000 if n % 3 == 0 else 0} for n in range(quiet)]
    return told + [{"rows": 3000 + 1000 * (n + 1), "removed": 0} for n in range(after)]


def within(view: QueryView, heap: int = 600 * MIB, memory: int = 8 * 2**30, disk: int | None = 8 * 2**30) -> QueryView:
    driver = Executor("driver", True, 2, 0, 0, 9, 100.0, 9.0, 0, int((heap - 300 * 2**20) * 0.6))
    return QueryView(view.history, view.now, [Host(view.now, 2, 0.5, 2**34, memory, 2**40, disk, (), (driver,))])


FILES = [each | {"custom": {"rocksdbSstFileSize": 1e6 * n}, "memory_bytes": 0} for n, each in enumerate(growing(40))]


@cases(
    "operators, room, what, seconds, words",
    ("the heap", growing(40, row=2000), {}, "heap", (600 * MIB - 39 * 2e6) / 1e6, "9 min 11 s"),
    ("the disk", FILES, {"disk": 300 * MIB}, "disk", 300 * MIB / 0.5e6, "10 min 29 s"),
)
def test_what_will_be_full_soon_is_found(history, operators, room, what, seconds, words):
    [finding] = RULE.check(within(history(warm=0, operators=operators), **room))
    pace = "1.0 MB" if what == "heap" else "500 kB"
    assert finding.summary == f"the state of dedupe grows by {pace} per second: the {what} will be full in {words}"
    assert told_by(finding)["seconds_to_limit"] == pytest.approx(seconds, rel=0.01)


@cases(
    "plan, found",
    ("its watermark removes nothing", {"without_timeout": ("applyInPandasWithState",)}, 1),
    ("its timeouts may follow the watermark", {}, 0),
)
def test_the_state_of_a_function_without_a_timeout_fills_the_heap_whatever_the_watermark(history, plan, found):
    operators = growing(40, row=2000, name="applyInPandasWithState")
    view = history(warm=0, operators=operators, plan=plan | {"watermarks": {"event_time": 10.0}})
    assert len(list(RULE.check(within(view)))) == found


DAY = {"plan": {"watermarks": {"event_time": 86_400.0}}}
FILLS = growing(40, row=2000)
FULL = "grows by 1.0 MB per second: the heap will be full in 9 min 11 s"


def test_a_heap_that_is_full_before_the_watermark_may_remove_anything_is_found(history):
    [finding] = RULE.check(within(history(warm=0, operators=FILLS, **moves_on(40), **DAY)))

    assert finding.summary == f"the state of dedupe {FULL}; the watermark keeps each row for 24 h at least"
    assert told_by(finding)["allowed_lateness_seconds"] == 86_400.0
    assert [each.action for each in finding.remedies] == [
        "find out how late rows really come: the state keeps each for the allowed lateness at least",
        "shorten the allowed lateness of withWatermark, and restart with the same checkpoint",
    ]


@cases(
    "lateness, seconds_a_batch, found",
    ("longer than it takes to fill", 700.0, 2.0, 1),
    ("shorter", 600.0, 2.0, 0),
    ("old rows, which a day of event time passes in minutes", 86_400.0, 2000.0, 0),
    ("none", 0.0, 2.0, 0),
)
def test_the_allowed_lateness_counts_in_the_time_of_the_rows(history, lateness, seconds_a_batch, found):
    marks = [1.79e9 + seconds_a_batch * n for n in range(40)]
    plan = {"watermarks": {"event_time": lateness}}
    assert len(list(RULE.check(within(history(warm=0, operators=FILLS, watermark=marks, plan=plan))))) == found


def test_an_operator_that_forgets_no_longer_is_found(history):
    stands = [1.79e9 + 2.0 * min(n, 18) for n in range(32)]
    [finding] = RULE.check(history(warm=0, operators=in_rhythm(18, 14), watermark=stands))

    assert finding.summary == (
        "the state of stateStoreSave grew to 17,000 rows (at most 3,000 before): none was removed for 32 s "
        "(at most 6.0 s before), and the watermark does not advance"
    )


def moves_on(count, until=99):
    """A watermark that advances with the clock, for so many batches."""
    return {"watermark": [1.79e9 + 2.0 * min(n, until) for n in range(count)]}


@cases(
    "operators, more, room",
    ("too early to tell", growing(12, row=9000), {}, {}),
    ("the heap lasts for hours", growing(40, row=50), {}, {}),
    ("it forgets", growing(40, row=2000, removed=3), {}, {}),
    ("the first windows fill after a deploy", growing(40, row=2000), moves_on(40), {}),
    ("a bounded set of keys", BOUNDED, {}, {}),
    ("off the heap, with gigabytes of room", growing(40, row=2000, custom={"rocksdbPutCount": 1.0}), {}, {}),
    ("the watermark moves on: a longer window", in_rhythm(18, 14), moves_on(32), {}),
    ("a rhythm", in_rhythm(26, 0), moves_on(26), {}),
    ("a pause of a few batches", in_rhythm(18, 6), moves_on(24, until=18), {}),
    ("an event log has the executors without their memory", growing(40, row=2000), {}, {"heap": 300 * MIB}),
)
def test_others_are_not(history, operators, more, room):
    assert list(RULE.check(within(history(warm=0, operators=operators, **more), **room))) == []


@cases(
    "operator, cores, because",
    ("small", SMALL, 64, "the state takes 0% of the heap"),
    ("off the heap", SMALL | {"custom": {"rocksdbSstFileSize": 5.0}}, 64, "the state is kept off the heap"),
    ("small, in a heap of unknown size", SMALL, None, "the state takes 1.0 kB"),
    ("large, in a heap of unknown size", LARGE, None, None),
    ("no state", None, 64, None),
)
def test_small_state_and_state_off_the_heap_make_no_collector_work(history, operator, cores, because):
    assert RULE.ruled_out(history(seconds=[1] * 4, operators=operator, cores=cores)) == because


def lists(count: int, keys: int = 40, step: float = 1.0, first: float = 4.0, **more) -> list[dict]:
    """As many keys in each batch, with lists that get longer: MB of them all, by batch."""
    return [{"rows": keys, "memory_bytes": int((first + step * n) * 1e6)} | more for n in range(count)]


def on_disk(told: list[dict], cache: float = 0.0) -> list[dict]:
    """The same of a RocksDB store, whose caches take so many MB more in each batch."""
    sizes = [{"rocksdbSstFileSize": each["memory_bytes"]} for each in told]
    return [
        {"rows": each["rows"], "memory_bytes": int(cache * 1e6 * n), "custom": files}
        for n, (each, files) in enumerate(zip(told, sizes, strict=True))
    ]


@cases(
    "operators, disk, each, what, before, ago",
    ("few keys", lists(40, 40, 2.0), None, "40 takes 2.0 MB", "heap", "350 kB", 68),
    ("many keys", lists(40, 5000, 2.0), None, "5,000 takes 16.4 kB", "heap", "2.8 kB", 68),
    ("in files", on_disk(lists(40, 40, 2.0)), 522 * MIB, "40 takes 2.0 MB", "disk", "600 kB", 58),
)
def test_rows_that_only_get_larger_are_found(history, operators, disk, each, what, before, ago):
    [finding] = RULE.check(within(history(warm=0, operators=operators), disk=disk))
    assert finding.summary == (
        f"the rows of the state of stateStoreSave only get larger: each of the {each} of the {what}, {before} {ago} s "
        "before; at 1.0 MB per second it will be full in 9 min 7 s"
    )
    assert finding.remedies[0].action.startswith("find the list or map that a key only adds to")
    room = disk or 600 * MIB - 82e6
    assert told_by(finding) == pytest.approx({
        "state_bytes": 82e6, "state_bytes_per_row": 82e6 / operators[-1]["rows"], "state_bytes_growth_per_second": 1e6,
        "room_bytes": room, "seconds_to_limit": room / 1e6,
    })  # fmt: skip


@cases(
    "operators, room",
    ("the heap lasts for hours", lists(40, step=0.1), {}),
    ("it fills little", lists(40, step=1.0), {"heap": 6000 * MIB}),
    ("the caches of RocksDB fill", on_disk(lists(40, step=0.0), cache=20.0), {"memory": 900 * MIB}),
    ("it was emptied once", [*lists(20, step=4.0), *lists(20, step=4.0)], {}),
    ("the lists are full", [*lists(20, step=4.0), *lists(20, step=0.0, first=80.0)], {}),
    ("more rows", [{"rows": 10 * (n + 1), "memory_bytes": 2_000_000 * (n + 1)} for n in range(40)], {}),
    ("it forgets", lists(40, step=2.0, removed=1), {}),
    ("it may have a time to live", lists(40, step=6.0, name="transformWithStateExec"), {}),
)
def test_rows_that_do_not_fill_it_by_getting_larger_are_not(history, operators, room):
    assert list(RULE.check(within(history(warm=0, operators=operators), **room))) == []


def test_a_window_or_a_join_whose_end_nobody_knows_is_told_once_most_of_the_room_is_full(history):
    [finding] = RULE.check(within(history(warm=0, operators=growing(40, row=9000), **moves_on(40))))
    assert finding.summary == "the state of dedupe grows by 4.5 MB per second: the heap will be full in 62 s"
    assert finding.remedies[1].action.startswith("shorten its windows, or the time that its join allows")
    assert list(RULE.check(within(history(warm=0, operators=growing(25, row=9000), **moves_on(25))))) == []


@cases("plan", ("no watermark", {}), ("a watermark, which the function need not follow", {"watermarks": {"at": 10.0}}))
@cases(
    "operators, what",
    ("lists", lists(40, step=9.0, name="applyInPandasWithState"), "the rows of the state of"),
    ("keys", growing(40, row=9000, name="transformWithStateInPandasExec"), "the state of"),
)
def test_the_state_of_a_function_with_timers_is_told_once_most_of_the_room_is_full(history, plan, operators, what):
    [finding] = RULE.check(within(history(warm=0, operators=operators, plan=plan)))
    assert finding.summary.startswith(f"{what} {operators[0]['name']}")
