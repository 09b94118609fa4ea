"""A model of a query, second by second: how soon overload is named, and that what is healthy never is.

Batch time = 0.5 s + rows / 1,000, trigger interval 2 s, with noise; the watchdog reports a running batch each 5 s.
"""

import random
from collections.abc import Callable

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.model.records import Observation
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime.registry import QueryRegistry
from tests.build import spark_json
from tests.tables import cases

START = 1_790_000_000.0
OVERHEAD, SPEED, INTERVAL, FIRST = 0.5, 1000.0, 2.0, 6.0
Load = Callable[[float], float]


def run(load: Load, seconds: float, limit: int | None = None, seed: int = 1, noise: float = 0.3):
    """(seconds since the start, verdict) after each observation."""
    chance = random.Random(seed)
    registry = QueryRegistry(Diagnoser)

    def look(kind, at, data):
        state = registry.ingest(Observation(START + at, kind, "daily_counts", data))
        return at, registry.judge(state, START + at)

    run_id = spark_json()["runId"]
    yield look("started", 0.0, spark_json(timestamp=format_instant(START)))
    yield look("plan", 0.1, {"run_id": run_id, "trigger": "processing_time", "trigger_interval": INTERVAL})
    arrived, until, read, at, number = 0.0, 0.0, 0, 0.0, 0
    while at < seconds:
        while until < at:
            arrived += load(until) * 0.1
            until += 0.1
        head, begin = int(arrived), read
        read = min(head, read + limit) if limit else head
        took = OVERHEAD + (read - begin) / SPEED * chance.uniform(1 - noise, 1 + noise) + chance.uniform(0, noise)
        took += FIRST if number == 0 else 0.0
        for step in range(1, int(took // 5) + 1):
            running = {"run_id": run_id, "since": START + at, "message": "Processing new data"}
            yield look("batch_running", at + 5.0 * step, running)
        source = {"description": "s", "numInputRows": read - begin} | {
            name: {"transactions": {"0": offset}}
            for name, offset in (("startOffset", begin), ("endOffset", read), ("latestOffset", head))
        }
        milliseconds = int(took * 1000)
        lasts = {"triggerExecution": milliseconds, "addBatch": int(milliseconds * 0.8)}
        begins = {"batchId": number, "timestamp": format_instant(START + at), "numInputRows": read - begin}
        progress = spark_json(durationMs=lasts, batchDuration=milliseconds, sources=[source], **begins)
        yield look("progress", at + took, progress)
        number += 1
        at = at + took if took >= INTERVAL else at + INTERVAL


def steady(rate: float) -> Load:
    return lambda at: rate


def step(at_second: float, before: float, after: float) -> Load:
    return lambda at: after if at >= at_second else before


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("limit", [None, 1500], ids=["batches take all", "batches are limited"])
def test_twice_the_capacity_is_named_in_time(limit, seed):
    capacity = 750.0 if limit else SPEED
    verdicts = run(step(60, 0.4 * capacity, 2 * capacity), 130, limit, seed)
    at = next(at for at, v in verdicts if any(root.rule == "input-overload" for root in v.root_causes))

    assert 60 < at <= 97  # half a minute after the batch that begins at 62 s, and a report


@cases(
    "limit, within",
    ("batches take all: the second may be long as it warms up, the third tells", None, 60),
    ("batches are limited", 1500, 40),
)
def test_an_overload_from_the_start_is_named_and_stays_named(limit, within):
    told = [(at, any(r.rule == "input-overload" for r in v.root_causes)) for at, v in run(steady(2000), 300, limit)]
    first = next(at for at, named in told if named)

    assert first <= within
    assert all(named for at, named in told if at >= first)


def test_a_long_second_batch_of_a_slow_start_is_not_overload(history):
    slow = {"warm": 0, "seconds": [18, 28], "rows": [900, 12_000], "interval": None, "plan": {"trigger": None}}
    assert Diagnoser()(history(**slow)).findings == ()


HEALTHY = {
    "half the capacity": steady(400),
    "two thirds of the capacity": steady(550),
    "idle": steady(0),
    "a burst of three times for 20 s": lambda at: 900.0 if 60 <= at < 80 else 300.0,
    "a step within the capacity": step(60, 200, 550),
    "spikes of a second": lambda at: 3000.0 if at % 20 < 1 else 300.0,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [None, 4000], ids=["batches take all", "batches are limited"])
@pytest.mark.parametrize("load", HEALTHY.values(), ids=HEALTHY.keys())
def test_what_is_healthy_is_left_alone(load, limit, seed):
    found = {f"{at:.0f} s: {f.rule}: {f.summary}" for at, v in run(load, 180, limit, seed) for f in v.findings}
    assert found == set()
