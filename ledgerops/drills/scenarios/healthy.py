"""Controls: ordinary variation and changes, in which nothing may be found."""

import time

from ledgerops.drills.harness.case import control, steady, stepped
from ledgerops.drills.harness.target_app import TargetApp

# H1, burst. The query has enough spare capacity for it.
BURST_PLAN = stepped(101, (200, 45), (600, 20), (200, None), more="duplicates: {share: 0.01, within: 5s}")

# H3, H4, H10, H13: queries with little to do, all of them healthy.
#
# `idle`: its load ends after 20 s, and there is nothing left to read. `long`: a batch every 25 s, with the lag that
# this implies. `once`: processes a minute of rows with the AvailableNow trigger, and ends. `fresh`: starts halfway
# through, without any history.
ENDING = stepped(103, (100, 20), (0, None))
QUIET_STEADY = steady(104, 100)
ONCE_START_SECONDS, FRESH_START_SECONDS = 20.0, 60.0  # after the origin


def start_quiet(app: TargetApp) -> None:
    app.job("dedup_transactions", ENDING, role="idle")
    app.job("sliding_counts", QUIET_STEADY, role="long", trigger=25.0)

    def once(now: float) -> None:
        app.job("large_credits", app.rows(QUIET_STEADY, origin=now - 60.0), role="once", available_now=True)

    def fresh(now: float) -> None:
        app.job("daily_counts", app.rows(QUIET_STEADY, origin=now), role="fresh")

    waiting = [(ONCE_START_SECONDS, once), (FRESH_START_SECONDS, fresh)]

    def turn() -> None:
        if waiting and (now := time.time()) >= app.origin + waiting[0][0]:
            waiting.pop(0)[1](now)

    app.each_turn.append(turn)


# H5, H6, H7, H8: ordinary variation, each in a query of its own.
#
# `diurnal`: load from a quiet night to a busy noon and back. `zipf`: some keys are busier than others. `late`: one row
# in 50 is late, but within the watermark delay. `copies`: one row in 20 is sent twice, unchanged.
DIURNAL = "{seed: 105, start: now, phases: [{shape: sine, low: 60, high: 400, period: 80s}]}"
ZIPF = steady(106, 200, "keys: {customers: 4000, accounts: 4500, distribution: zipf, exponent: 0.8}")
LATE_ROWS = steady(107, 200, "disorder: {late: {share: 0.02, delay: uniform, low: 1s, high: 50s}}")
COPIES = steady(108, 200, "duplicates: {share: 0.05, within: 5s}")
FOUR_QUERIES_TRIGGER_SECONDS = 4.0  # they share two cores


def start_ordinary(app: TargetApp) -> None:
    for role, name, plan in (
        ("diurnal", "daily_counts", DIURNAL),
        ("zipf", "sliding_counts", ZIPF),
        ("late", "dedup_transactions", LATE_ROWS),
        ("copies", "dedup_transactions", COPIES),
    ):
        app.job(name, plan, role=role, trigger=FOUR_QUERIES_TRIGGER_SECONDS)


# H9, H12, H15, F22: something changes, and nothing goes wrong.
#
# `bounded`: its state grows to a plateau until the first rows expire. `scaled`: two partitions are added, and an idle
# one becomes busy. `stepped`: the producers' clock is set back by two seconds. `starved`: the producers send a fifth of
# the planned rows, so the query has less to do.
SCALED = steady(112, 200, "partitions: {count: 3, idle: [2]}, changes: [{from: 45s, partitions: {count: 5}}]")
STEPPED = steady(115, 200, "changes: [{from: 45s, disorder: {late: {share: 1, delay: fixed, low: 2s}}}]")
STARVED = stepped(122, (200, 45), (40, None))


def start_change(app: TargetApp) -> None:
    for role, name, plan, lateness in (
        ("bounded", "dedup_transactions", steady(109, 200), "30 seconds"),
        ("scaled", "dedup_transactions", SCALED, None),
        ("stepped", "sliding_counts", STEPPED, None),
        ("starved", "daily_counts", STARVED, None),
    ):
        app.job(name, plan, role=role, trigger=FOUR_QUERIES_TRIGGER_SECONDS, lateness=lateness)


# H11, first-batch backlog. It reads ten times faster than rows arrive, so the lag shrinks with each batch.
BEHIND_SECONDS = 300.0
MAX_ROWS_PER_BATCH = 4000


DRILLS = (
    control(
        name="burst", id="H1", text="three times the load for 20 s",
        start=lambda app: app.job("dedup_transactions", BURST_PLAN), fault_seconds=20.0, seconds=95.0,
    ),
    control(
        name="quiet", id="H3 H4 H10 H13",
        text="an idle source, a long trigger, a new query, and one that ends by itself",
        start=start_quiet, roles=("idle", "long", "once", "fresh"), fault_seconds=60.0, seconds=135.0,
    ),
    control(
        name="ordinary", id="H5 H6 H7 H8",
        text="a daily sine of load, mildly uneven keys, lateness within the delay, exact copies",
        start=start_ordinary, roles=("diurnal", "zipf", "late", "copies"),
    ),
    control(
        name="change", id="H9 H12 H15 F22",
        text="state that reaches its plateau, new partitions, a clock that is set back, producers that send less",
        start=start_change, roles=("bounded", "scaled", "stepped", "starved"),
    ),
    control(
        name="backlog", id="H11", text="a new query starts five minutes back and catches up",
        start=lambda app: app.job("dedup_transactions", app.rows(
            steady(111, 200), origin=app.origin - BEHIND_SECONDS, max_rows=MAX_ROWS_PER_BATCH
        )), fault_seconds=15.0, seconds=90.0,
    ),
)  # fmt: skip
