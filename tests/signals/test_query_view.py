"""Signals of a query at one moment: what consumption hides, what grows while nothing happens, what is unknown."""

import math
from dataclasses import replace
from itertools import accumulate

import pytest

from ledgerops.model.history import History
from ledgerops.model.records import Executor, Heads, Host, Plan, Running
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch, history, source, stream
from tests.tables import cases


def view(batches, after=1.0, plan=None):
    remembered = history(batches)
    if plan is not None:
        remembered.plan = Plan("run-1", **plan)
    now = batches[-1].ended + after if batches else T0
    return QueryView(remembered, now)


EVERY_2_S = {"trigger_interval": 2.0}


def thousands(count, each=1000):
    """So many offsets, `each` more than the one before."""
    return [each * n for n in range(1, count + 1)]


def test_arrival_is_the_growth_of_the_head_and_not_what_was_read():
    steady = view(stream(heads=thousands(10), ends=thousands(10, each=100)))
    assert steady.rates.arrival == pytest.approx(500)
    assert steady.rates.read_by_source["transactions"] == pytest.approx(50)


def test_arrival_is_told_from_look_to_look_at_the_heads():
    """A batch that waits for the answer of its source learns what came until then, not until its start."""
    read = source(1000, {PARTITION: 200}, {PARTITION: 1200}, {PARTITION: 1200})
    late = batch(3, duration=18.5, phases={"latest_offset": 18.0, "add_batch": 0.4}, sources=(read,))
    assert view([*stream([0, 100, 200], [0, 100, 200]), late]).rates.arrival == pytest.approx(50)


def test_backlog_explodes_while_input_and_processing_rates_are_equal():
    behind = view(stream(heads=thousands(20), ends=thousands(20, each=500), duration=2.0))
    assert behind.rates.read_by_source["transactions"] == pytest.approx(behind.rates.processed, rel=0.05)
    assert behind.lag.backlog == 10_000


@cases(
    "heads, ends, changes, after, lag",
    ("behind", [100, 200, 300], [0, 0, 50], {}, 1, 5.5),
    ("it grows while nothing happens", [100, 200, 300], [0, 0, 50], {}, 60, 64.5),
    ("nothing was left, however long ago", [100, 200, 300], [100, 200, 300], {}, 500, 0.0),
    ("9 came since", [100, 200, 309], [100, 200, 300], {"phases": {"latest_offset": 0.2}}, 30, 0.0),
)
def test_lag_in_seconds(heads, ends, changes, after, lag):
    assert view(stream(heads, ends, **changes), after).lag.seconds == pytest.approx(lag)


@cases(
    "limits, lag",
    ("what came at once came since the query was last seen idle", {}, 8.0),
    ("it may have waited for more of them", {"minOffsetsPerTrigger": "500"}, 1803.0),
)
def test_the_lag_after_a_quiet_night(limits, lag):
    partition = ("transactions", "0")
    past = history(stream([0, 1000], [0, 1000]))
    past.plan = Plan("run-1", rate_limits=limits)
    past.idle(T0 + 1000)
    past.idle(T0 + 3592)
    read = source(1000, {partition: 1000}, {partition: 2000}, {partition: 3000})
    past.add(batch(2, started=T0 + 3602, duration=3.0, sources=(read,)))

    assert QueryView(past, T0 + 3605).lag.seconds == pytest.approx(lag)


def test_an_idle_query_has_no_arrival():
    remembered = history(stream(heads=[100, 200, 300], ends=[100, 200, 300]))
    remembered.idle(T0 + 30)
    assert QueryView(remembered, T0 + 31).rates.arrival == 0.0


@cases(
    "watermark, after, lag",
    ("behind", T0, 1.0, 5.5),
    ("it grows while nothing happens", T0, 100.0, 104.5),
    ("ahead of the clock: milliseconds that were read as seconds", T0 * 1e3, 1.0, 0.0),
    ("no watermark: no lag, and not 56 years", None, 1.0, None),
)
def test_watermark_lag(watermark, after, lag):
    assert view([batch(n, watermark=watermark) for n in range(3)], after).lag.watermark == pytest.approx(lag)


def test_a_running_trigger_grows():
    remembered = history([batch(0)])
    remembered.set_running(Running(T0 + 10, "run-1", T0 + 2, "Processing new data"))
    assert QueryView(remembered, T0 + 32).run.running_seconds == 30.0


@cases(
    "duration, plan, busy",
    ("half of the interval", 1.0, EVERY_2_S, 0.5),
    ("batches run back to back", 2.0, None, 1.0),
    ("real-time: batches fill their time by design", 2.0, {"trigger": "real_time"}, None),
    ("continuous: they do, too", 2.0, {"trigger": "continuous"}, None),
)
def test_busy_is_the_share_of_the_interval_that_batches_take(duration, plan, busy):
    batches = [batch(n, duration=duration) for n in range(12)]
    assert view(batches, plan=plan).trigger.busy_ratio == pytest.approx(busy)


def in_turns(*durations):
    """Batches of a trigger of one second from T0 on, of these durations in turns."""
    batches, start = [], T0
    for number in range(24):
        batches.append(batch(number, started=start + 0.003, duration=durations[number % len(durations)]))
        ended = batches[-1].ended
        start = max(math.floor(start) + 1.0, ended)
    return batches


def late(first, count):
    return [batch(first + n, started=T0 + 40 + 1.6 * n, duration=1.6) for n in range(count)]


def often(interval):
    """Batches that pause for rows, each a little later than a multiple of so short an interval."""
    return [batch(n, started=T0 + n * interval + 0.05 * (n % 4), duration=0.02) for n in range(15)]


# of a trigger of five seconds: Spark pauses 0.10 and 0.07 s after the long ones, by chance near a multiple of 2.5 s
SLOW_AT_FIRST = (
    (4.731, 27.073), (31.908, 5.545), (37.527, 6.2), (60.0, 4.0), (65.0, 2.5), (70.0, 2.7), (75.0, 4.0), (80.0, 2.6),
    (85.0, 3.7),
)  # fmt: skip


@cases(
    "batches, interval",
    (
        "Spark itself pauses after long batches when the machine is busy",
        [batch(n, started=T0 + at, duration=took) for n, (at, took) in enumerate(SLOW_AT_FIRST)],
        5.0,
    ),
    (
        "as long as it was known, and all outlast it, with pauses of Spark's own",
        [
            *[batch(n, started=T0 + 10 * n, duration=6.0) for n in range(10)],
            *[batch(10 + n, started=T0 + 100 + 13.7 * n, duration=13.4) for n in range(8)],
        ],
        10.0,
    ),
    (
        "of a minute, and a pause of a second is none of Spark's own",
        [batch(n, started=T0 + 60 * n, duration=58.5 + 0.01 * (n % 8)) for n in range(30)],
        60.0,
    ),
    ("a pause of a tenth of a second after short ones", [batch(n, duration=1.9) for n in range(10)], 2.0),
    ("seen by the starts of batches", [batch(n) for n in range(10)], 2.0),
    ("back to back: no wait to see it by", [batch(n, duration=2.0) for n in range(10)], None),
    ("every other one outlasts it, and the next begins at once", in_turns(1.05, 0.5), 1.0),
    ("for long now all outlast it", in_turns(1.05, 0.5)[:20] + late(20, 100), 1.0),
    ("a trigger without rows has no batch", [batch(n, started=T0 + n * n) for n in range(10)], 1.0),
    ("so few that they may begin there by chance", [batch(n, duration=0.4) for n in range(3)], None),
    ("many, but the interval is so short that any instant is near", often(0.2), None),
    ("no trigger, and a pause of any length", [batch(n, started=T0 + 1.37 * n, duration=1.0) for n in range(30)], None),
    ("the clock was set back", [batch(n, started=T0 - n, duration=0.1) for n in range(10)], None),
    ("too few batches", [batch(0), batch(1)], None),
    ("rows each second", [batch(n, started=T0 + 0.62 + n, duration=0.4) for n in range(10)], None),
    ("no batch", [], None),
)
def test_the_interval_of_a_plan_that_was_not_read(batches, interval):
    assert view(batches).trigger.interval == interval


def back_to_back(durations, rows, interval=None):
    batches, end = [], 0.0
    for number, (took, count) in enumerate(zip(durations, rows, strict=True)):
        end += took
        batches.append(batch(number, started=T0 + end - took, duration=took, rows=count))
    return view(batches, plan={"trigger": "processing_time" if interval else None, "trigger_interval": interval})


@cases(
    "durations, rows, longest",
    ("the rows began to take longer", [0.5] * 40 + [4.0] * 8, [100] * 48, 0.5),
    ("more rows, but as many a second", [0.5] * 40 + [4.0] * 8, [100] * 40 + [800] * 8, 0.5),
    ("because of more rows", [0.5] * 40 + [2.0] * 10 + [4.0] * 4, [100] * 40 + [520] * 10 + [100] * 4, 2.0),
)
def test_what_is_usual_without_an_interval(durations, rows, longest):
    assert max(each.duration for each in back_to_back(durations, rows).baseline.usual) == longest


@cases(
    "durations, longest",
    ("it became late", [0.5] * 40 + [1.6] * 30, 0.5),
    ("it has been late for longer than it was in time", [0.5] * 40 + [1.6] * 80, 0.5),
    ("one in four was late before, too", [0.5, 0.5, 0.5, 1.9] * 10 + [1.6] * 10, 0.5),
    ("late from the first batch", [1.6] * 60, None),
    ("late from the first batch, and one in five is in time by chance", [1.6, 1.4, 0.9, 1.3, 1.5] * 12, None),
)
def test_what_is_usual_was_in_time_among_batches_in_time(durations, longest):
    usual = back_to_back(durations, [100] * len(durations), 1.0).baseline.usual
    assert max((each.duration for each in usual), default=None) == longest


SIZES = [1000, 2000, 4000, 8000, 3000, 5000, 6000, 7000, 2500]


def sized(overhead, rate=10_000, first=20):
    """Batches of several sizes, each with so many seconds of overhead."""
    return [batch(n, rows=count, duration=overhead + count / rate) for n, count in enumerate(SIZES, first)]


ALIKE = "batches have nearly the same size (the middle 80% spread over 0% of the mean, 20% is needed)"
SATURATED = stream(thousands(20, each=2000), thousands(20), duration=2.0)
WORKED_OFF = sum(SIZES) / sum(1.95 + count / 10_000 for count in SIZES)


@cases(
    "batches, overhead, sustainable, reason",
    ("without the first batch, which warms up", [batch(0, rows=10, duration=30.0), *sized(0.5)], 0.5, 7_500, None),
    ("what was just worked off, whatever the fit says", [batch(0), *sized(1.95, first=10)], 1.95, WORKED_OFF, None),
    ("saturated at one size", SATURATED, None, 500, "observed while saturated"),
    ("unknown where batches are of one size and there is room", [batch(n) for n in range(20)], None, None, ALIKE),
)
def test_capacity(batches, overhead, sustainable, reason):
    """10,000 rows a second, in what the overhead leaves of 2 s."""
    found = view(batches, plan=EVERY_2_S).capacity.estimate
    assert (found.overhead, found.sustainable) == pytest.approx((overhead, sustainable))
    assert reason is None or found.reason == reason
    assert overhead is None or found.rate == pytest.approx(10_000)


def test_the_first_batch_after_a_restart_from_the_checkpoint_is_left_out_too():
    resumed = history([batch(0), batch(1)])
    for n in range(2, 5):
        resumed.add(batch(n, run_id="run-2"))
    assert [each.batch_id for each in QueryView(resumed, T0 + 60).baseline.settled] == [3, 4]


@cases(
    "start, first, settled, steady",
    ("its start was seen", T0 + 9, 5, [6, 7, 8], [8]),
    ("its start was seen, in the same millisecond", T0 + 10, 5, [6, 7, 8], [8]),
    ("the observer came during it, which may be the first", T0 + 10.2, 5, [6, 7, 8], [8]),
    ("the recording begins with it", None, 5, [5, 6, 7, 8], [5, 6, 7, 8]),
    ("the recording begins with the first of all", None, 0, [1, 2, 3], [3]),
    ("the observer came during the first of all", T0 + 0.2, 0, [1, 2, 3], [3]),
)
def test_a_run_that_was_on_before_it_was_seen_has_had_its_warm_up(start, first, settled, steady):
    remembered = History("daily_counts")
    if start is not None:
        remembered.start(start, "id-1", "run-1")
    for n in range(first, first + 4):
        remembered.add(batch(n, duration=4.0, started=T0 + 2 * first + 4 * (n - first)))
    baseline = QueryView(remembered, T0 + 60).baseline
    assert [each.batch_id for each in baseline.settled] == settled
    assert [each.batch_id for each in baseline.steady] == steady


LEFTS = [10, 10, 10, 90_000, 60_000, 30_000, 15_000]
BURST = [end + left for end, left in zip(thousands(7), LEFTS, strict=True)]
FLUCTUATES = [end + 20 + 10 * (n % 2) for n, end in enumerate(thousands(20))]


@cases(
    "heads, ends, seconds, falls_by, drain",
    ("2,000 less in each", [100_000 + head for head in thousands(20)], thousands(20, each=3000), 2.0, 1000, 60),
    ("since a burst, not since the run began", BURST, thousands(7), 2.0, 75_000 / 6, 15_000 / (75_000 / 6)),
    ("it only fluctuates", FLUCTUATES, thousands(20), 0.5, None, None),
    ("450 rows/s of capacity against 500 that arrive", thousands(20), thousands(20, each=900), 2.0, None, None),
)
def test_a_backlog_is_gone_as_soon_as_it_shrinks(heads, ends, seconds, falls_by, drain):
    seen = view(stream(heads, ends, duration=seconds), plan=EVERY_2_S)
    assert seen.lag.shrinks is (falls_by is not None)
    assert falls_by is None or seen.lag.falls_by == pytest.approx(falls_by)
    assert seen.capacity.drain_seconds == pytest.approx(drain)


def test_pressure_is_what_arrives_over_the_capacity():
    growing = view(stream(thousands(20), thousands(20, each=900), duration=2.0), plan=EVERY_2_S)
    assert growing.capacity.pressure_ratio == pytest.approx(500 / 450, rel=0.01)


def test_nothing_to_drain_takes_no_time():
    rows = [100] * 6 + SIZES
    heads = list(accumulate(rows))
    batches = [
        replace(each, duration=0.2 + count / 10_000) for count, each in zip(rows, stream(heads, heads), strict=True)
    ]
    assert view(batches, plan=EVERY_2_S).capacity.drain_seconds == 0.0


def test_skew_is_that_of_the_newest_batch_and_not_of_the_lifetime():
    def read(number, first, second):
        offsets = {("t", "0"): first, ("t", "1"): second, ("t", "2"): 10}
        return batch(number, sources=(source(first + second + 10, dict.fromkeys(offsets, 0), offsets),))

    assert view([read(0, 1000, 10), read(1, 10, 10)]).skew.ratios["source_partition"] == (1.0, 0.0)


def test_the_hot_key_is_a_share_of_the_rows_that_were_observed():
    observed = {"ledgerops": {"rows": 1000, "hot_keys": [{"item": "a1b2", "count": 800}]}}
    assert view([batch(observed=observed)]).skew.hot_key == ("a1b2", 0.8)


@pytest.mark.parametrize(
    "row", [{}, {"rows": 0, "hot_keys": []}, {"rows": None, "hot_keys": None}, {"rows": 5, "hot_keys": [{"item": "x"}]}]
)
def test_an_empty_batch_has_no_hot_key(row):
    assert view([batch(observed={"ledgerops": row})]).skew.hot_key is None


def test_a_plan_of_an_earlier_run_is_not_believed():
    remembered = history([batch(0)])
    remembered.plan = Plan("run-0", trigger_interval=60.0)
    assert QueryView(remembered, T0 + 5).trigger.interval is None


def test_a_query_that_never_ran_a_batch_has_no_signals():
    empty = QueryView(History("q"), T0)
    assert (empty.last, empty.lag.backlog, empty.lag.seconds, empty.rates.arrival) == (None,) * 4
    assert (empty.trigger.busy_ratio, empty.capacity.pressure_ratio, empty.capacity.sustainable) == (None,) * 3
    assert (empty.skew.ratios, empty.run.tasks) == ({}, None)


PARTITION = ("transactions", "0")
KEEPS = 600.0


def asked(batches, *looks, keeps=KEEPS, after=0.0):
    """A view after the broker was asked: (seconds after T0, head, earliest) of each look."""
    remembered = history(batches)
    for at, head, earliest in looks:
        retention = {} if keeps is None else {"transactions": keeps}
        remembered.add_heads(Heads(T0 + at, {PARTITION: head}, {PARTITION: earliest}, retention))
    return QueryView(remembered, T0 + max([batches[-1].ended - T0, *(at for at, *_ in looks)]) + after)


READ = stream(heads=[100, 200, 300], ends=[100, 200, 300])  # the last at T0 + 4
LEFT = stream(heads=[100, 200, 300], ends=[100, 150, 200])


def test_where_the_broker_is_asked_backlog_and_lag_grow_while_a_long_batch_runs():
    lag = asked(READ, (10, 800, 0), (15, 1300, 0)).lag
    assert (lag.unread, lag.unread_offsets, lag.backlog) == ({PARTITION: 1000}, 1000, 0)
    assert lag.unread_since == {PARTITION: pytest.approx(T0 + 4)}  # by the table of both
    assert lag.seconds == pytest.approx(11)  # of what is unread, not of what was when the last batch began


def test_a_broker_without_an_answer_leaves_what_it_said_before():
    seen = asked(READ, (10, 800, 0))
    seen.history.add_heads(Heads(T0 + 15, {}, {}, error="Connection refused", unreachable_since=T0 + 13))
    late, early = seen.at(T0 + 20).lag, seen.at(T0 + 5).lag
    assert (late.unread, late.asked.error, late.heads.at) == ({PARTITION: 500}, "Connection refused", T0 + 10)
    assert (early.heads, early.asked) == (None, None), "what was asked after the moment is not known then"


@cases(
    "looks",
    ("nobody asks", []),
    ("asked before the last batch began", [(3, 260, 0)]),
)
def test_without_a_later_answer_the_backlog_is_the_batches(looks):
    seen = asked(LEFT, *looks)
    assert (seen.lag.unread, seen.lag.unread_since) == ({PARTITION: 100}, seen.lag.consumed_until)


def test_a_partition_that_the_broker_does_not_tell_keeps_its_backlog():
    seen = history(LEFT)
    seen.add_heads(Heads(T0 + 30, {("accounts", "0"): 7}, {}))
    assert QueryView(seen, T0 + 31).lag.unread == {PARTITION: 100}


@cases(
    "batches, looks, keeps, headroom",
    ("the retention less the age of the next record", LEFT, [(104, 300, 0)], KEEPS, KEEPS - 102),
    ("never negative", LEFT, [(1004, 300, 0)], KEEPS, 0.0),
    ("all is read", READ, [(104, 300, 0)], KEEPS, KEEPS),
    ("all is read, and deleted", READ, [(104, 300, 300)], None, None),
    ("lost", LEFT, [(104, 300, 250)], KEEPS, 0.0),
    ("the topic keeps all", LEFT, [(104, 300, 0)], None, None),
    ("by the pace of deletion", LEFT, [(4, 300, 0), (104, 300, 100)], None, 100.0),
    ("the smaller of both", LEFT, [(4, 300, 0), (104, 300, 100)], KEEPS, 100.0),
    ("nobody asks the broker", LEFT, [], KEEPS, None),
    ("nothing was consumed yet", [], [(104, 300, 0)], KEEPS, None),
    ("older than the table: no known age", stream([500], [100]), [(100, 600, 0)], KEEPS, None),
)
def test_headroom(batches, looks, keeps, headroom):
    seen = asked(batches, *looks, keeps=keeps) if batches else QueryView(History("q"), T0)
    assert seen.lag.headroom == ({} if headroom is None else {PARTITION: pytest.approx(headroom)})


def test_of_two_sources_that_read_one_partition_the_slower_counts():
    ahead, behind = (source(0, {PARTITION: 0}, {PARTITION: end}, {PARTITION: 100}) for end in (90, 40))
    assert view([batch(sources=(behind, ahead))]).lag.consumed == {PARTITION: 40}


def machine(at, *cores):
    """A look at the driver's machine, with an executor of so many cores or in vain."""
    executors = tuple(Executor("1", True, each, 0, 0, 0, 0.0, 0.0, 0, 0) for each in cores)
    return Host(T0 + at, 8, 0.1, None, None, None, None, (), executors)


@cases(
    "theirs, known",
    ("one topic that is read twice", 10_050, True),
    ("a topic of the same name on another cluster", 900, False),
)
def test_a_lag_is_told_only_where_two_sources_of_one_name_read_the_same(theirs, known):
    one = ("t", "0")

    def two(number):
        came = 100 * number
        mine = source(start={one: 9_000 + came}, end={one: 9_100 + came}, latest={one: 10_000 + came})
        others = source(end={one: theirs + 90 * number}, latest={one: theirs + came}, name="other")
        return batch(number, sources=(mine, others))

    assert (view([two(number) for number in range(5)]).lag.seconds is not None) is known


@cases(
    "looks, seen, cores",
    ("looks go on when the query has ended", [(0, 4), (10, 4), (20, 8)], [0, 10], 4),
    ("one asked for the executors in vain", [(0, 4), (10,)], [0, 10], 4),
    ("nobody knows of executors", [(0,)], [0], None),
)
def test_of_the_machine_what_was_seen_until_the_moment_counts(looks, seen, cores):
    then = QueryView(history([batch()]), T0 + 15, [machine(*look) for look in looks])
    assert ([look.at - T0 for look in then.hosts], then.cluster.cores) == (seen, cores)


@cases(
    "trigger, after, unread, lag",
    ("a micro-batch query that reports no more", "processing_time", 290, 500, 294.0),
    ("real-time, before its next report", "real_time", 290, 0, 0.0),
    ("real-time, a little late", "real_time", 440, 0, 0.0),
    ("real-time, overdue", "real_time", 460, 500, 464.0),
)
def test_a_real_time_query_is_not_behind_between_two_reports(trigger, after, unread, lag):
    """It reads all the time and says only every five minutes how far: `after` seconds after its last batch."""
    remembered = history(READ)
    remembered.plan = Plan("run-1", trigger=trigger, trigger_interval=300.0)
    now = READ[-1].ended + after
    remembered.add_heads(Heads(now - 1, {PARTITION: 800}, {PARTITION: 0}))
    seen = QueryView(remembered, now)

    assert seen.lag.unread_offsets == unread
    since = min(seen.lag.unread_since.values())
    assert max(0.0, now - since) == pytest.approx(lag, abs=5.0)


@cases(
    "runs, wait, after, ends",
    ("each ended with its last batch", 3, 0.002, 0.0, True),
    ("two runs say too little", 2, 0.002, 0.0, False),
    ("batches wait for a trigger", 3, 1.5, 0.0, False),
    ("stopped in a batch", 3, 0.002, 0.9, False),
)
def test_runs_that_end_with_a_batch_end_by_themselves(runs, wait, after, ends):
    remembered = history([])
    for run in range(runs):
        for number in range(2):
            began = T0 + 15.0 * run + (0.5 + wait) * number
            remembered.add(batch(2 * run + number, run_id=f"run-{run}", started=began))
        remembered.end(began + 0.5 + after, f"run-{run}", None, None)

    assert QueryView(remembered, T0 + 60).trigger.ends_itself is ends
