"""Controls: ordinary variation and changes, in which nothing may be found."""

from __future__ import annotations

import time

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.target_app import TargetApp

# H1, burst: three times the usual load for 20 s. The query has enough spare capacity for it.
BURST_PLAN = """
seed: 101
start: now
phases:
  - {shape: constant, rate: 200, duration: 45s}
  - {shape: constant, rate: 600, duration: 20s}
  - {shape: constant, rate: 200}
duplicates: {share: 0.01, within: 5s}
"""
BURST = Drill(
    name="burst",
    id="H1",
    kind="control",
    summary="three times the load for 20 s",
    start=lambda app: app.job("dedup_transactions", {"transactions": app.rows(BURST_PLAN)}),
    fault_seconds=20.0,
)


# H3, H4, H10, H13: queries with little to do, all of them healthy.
#
# `idle`: its load ends after 20 s, and there is nothing left to read. `long`: a batch every 25 s, with the lag that
# this implies. `once`: processes a minute of rows with the AvailableNow trigger, and ends. `fresh`: starts halfway
# through, without any history.
ENDING = """
seed: 103
start: now
phases: [{shape: constant, rate: 100, duration: 20s}, {shape: constant, rate: 0}]
"""
QUIET_STEADY = "{seed: 104, start: now, phases: [{shape: constant, rate: 100}]}"
ONCE_START_SECONDS, FRESH_START_SECONDS = 20.0, 60.0  # after the origin


def start_quiet(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": app.rows(ENDING)}, role="idle")
    app.job("sliding_counts", {"transactions": app.rows(QUIET_STEADY)}, role="long", trigger=25.0)
    waiting = {"once": ONCE_START_SECONDS, "fresh": FRESH_START_SECONDS}

    def turn() -> None:
        for role, seconds in list(waiting.items()):
            now = time.time()
            if now < app.origin + seconds:
                continue
            del waiting[role]
            if role == "once":
                rows = app.rows(QUIET_STEADY, origin=now - 60.0)
                app.job("large_credits", {"transactions": rows}, role=role, available_now=True)
            else:
                rows = app.rows(QUIET_STEADY, origin=now)
                app.job("daily_counts", {"transactions": rows}, role=role)

    app.each_turn.append(turn)


QUIET = Drill(
    name="quiet",
    id="H3 H4 H10 H13",
    kind="control",
    summary="an idle source, a long trigger, a new query, and one that ends by itself",
    start=start_quiet,
    roles=("idle", "long", "once", "fresh"),
    fault_seconds=60.0,
)


# H5, H6, H7, H8: ordinary variation, each in a query of its own.
#
# `diurnal`: load from a quiet night to a busy noon and back. `zipf`: some keys are busier than others. `late`: one row
# in 50 is late, but within the watermark delay. `copies`: one row in 20 is sent twice, unchanged.
DIURNAL = """
seed: 105
start: now
phases: [{shape: sine, low: 60, high: 400, period: 80s}]
"""
ZIPF = """
seed: 106
start: now
phases: [{shape: constant, rate: 200}]
keys: {customers: 4000, accounts: 4500, distribution: zipf, exponent: 0.8}
"""
LATE_ROWS = """
seed: 107
start: now
phases: [{shape: constant, rate: 200}]
disorder: {late: {share: 0.02, delay: uniform, low: 1s, high: 50s}}
"""
COPIES = """
seed: 108
start: now
phases: [{shape: constant, rate: 200}]
duplicates: {share: 0.05, within: 5s}
"""
ORDINARY_TRIGGER_SECONDS = 4.0  # four queries share two cores


def start_ordinary(app: TargetApp) -> None:
    app.job("daily_counts", {"transactions": app.rows(DIURNAL)}, role="diurnal", trigger=ORDINARY_TRIGGER_SECONDS)
    app.job("sliding_counts", {"transactions": app.rows(ZIPF)}, role="zipf", trigger=ORDINARY_TRIGGER_SECONDS)
    app.job("dedup_transactions", {"transactions": app.rows(LATE_ROWS)}, role="late", trigger=ORDINARY_TRIGGER_SECONDS)
    app.job("dedup_transactions", {"transactions": app.rows(COPIES)}, role="copies", trigger=ORDINARY_TRIGGER_SECONDS)


ORDINARY = Drill(
    name="ordinary",
    id="H5 H6 H7 H8",
    kind="control",
    summary="a daily sine of load, mildly uneven keys, lateness within the delay, exact copies",
    start=start_ordinary,
    roles=("diurnal", "zipf", "late", "copies"),
)


# H9, H12, H15, F22: something changes, and nothing goes wrong.
#
# `bounded`: its state grows to a plateau until the first rows expire. `scaled`: two partitions are added, and an idle
# one becomes busy. `stepped`: the producers' clock is set back by two seconds. `starved`: the producers send a fifth of
# the planned rows, so the query has less to do.
CHANGE_STEADY = "{seed: 109, start: now, phases: [{shape: constant, rate: 200}]}"
SCALED = """
seed: 112
start: now
phases: [{shape: constant, rate: 200}]
partitions: {count: 3, idle: [2]}
changes: [{from: 45s, partitions: {count: 5}}]
"""
STEPPED = """
seed: 115
start: now
phases: [{shape: constant, rate: 200}]
changes: [{from: 45s, disorder: {late: {share: 1, delay: fixed, low: 2s}}}]
"""
STARVED = """
seed: 122
start: now
phases: [{shape: constant, rate: 200, duration: 45s}, {shape: constant, rate: 40}]
"""
CHANGE_TRIGGER_SECONDS = 4.0  # four queries share two cores


def start_change(app: TargetApp) -> None:
    def dedup(role: str, plan: str, lateness: str | None = None) -> None:
        rows = {"transactions": app.rows(plan)}
        app.job("dedup_transactions", rows, role=role, trigger=CHANGE_TRIGGER_SECONDS, lateness=lateness)

    dedup("bounded", CHANGE_STEADY, "30 seconds")
    dedup("scaled", SCALED)
    app.job("sliding_counts", {"transactions": app.rows(STEPPED)}, role="stepped", trigger=CHANGE_TRIGGER_SECONDS)
    app.job("daily_counts", {"transactions": app.rows(STARVED)}, role="starved", trigger=CHANGE_TRIGGER_SECONDS)


CHANGE = Drill(
    name="change",
    id="H9 H12 H15 F22",
    kind="control",
    summary="state that reaches its plateau, new partitions, a clock that is set back, producers that send less",
    start=start_change,
    roles=("bounded", "scaled", "stepped", "starved"),
)


# H11, first-batch backlog: a new query starts five minutes back with a cap on its batch size, and catches up.
#
# It reads ten times faster than rows arrive, so the lag shrinks with each batch.
BACKLOG_PLAN = "{seed: 111, start: now, phases: [{shape: constant, rate: 200}]}"
BEHIND_SECONDS = 300.0
MAX_ROWS_PER_BATCH = 4000


def start_backlog(app: TargetApp) -> None:
    rows = app.rows(BACKLOG_PLAN, origin=app.origin - BEHIND_SECONDS, max_rows=MAX_ROWS_PER_BATCH)
    app.job("dedup_transactions", {"transactions": rows})


BACKLOG = Drill(
    name="backlog",
    id="H11",
    kind="control",
    summary="a new query starts five minutes back and catches up",
    start=start_backlog,
    fault_seconds=15.0,
)


DRILLS = (BURST, QUIET, ORDINARY, CHANGE, BACKLOG)
