"""A model of a query, second by second: how soon overload is named, and that what is healthy never is.

Batch time = 0.5 s + rows / 1,000, trigger interval 2 s, with noise; the watchdog reports a running batch each 5 s.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.model.records import Observation
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime.registry import QueryRegistry
from tests.build import spark_json

START = 1_790_000_000.0
OVERHEAD, SPEED, INTERVAL, FIRST = 0.5, 1000.0, 2.0, 6.0
Load = Callable[[float], float]


def run(load: Load, seconds: float, limit: int | None = None, seed: int = 1, noise: float = 0.3):
    """(seconds since the start, verdict) after each observation."""
    chance = random.Random(seed)
    registry = QueryRegistry(Diagnoser)

    def look(kind, at, data):
        state = registry.ingest(Observation(START + at, kind, "q", data))
        return at, registry.judge(state, START + at)

    yield look("started", 0.0, {"id": "i", "runId": "r", "name": "q", "timestamp": format_instant(START)})
    plan = {"run_id": "r", "trigger": "processing_time", "trigger_interval": INTERVAL}
    yield look("plan", 0.1, plan)
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
            running = {"run_id": "r", "since": START + at, "message": "Processing new data"}
            yield look("batch_running", at + 5.0 * step, running)
        source = {"description": "s", "numInputRows": read - begin} | {
            name: {"transactions": {"0": offset}}
            for name, offset in (("startOffset", begin), ("endOffset", read), ("latestOffset", head))
        }
        milliseconds = int(took * 1000)
        progress = {
            "id": "i",
            "runId": "r",
            "name": "q",
            "timestamp": format_instant(START + at),
            "batchId": number,
            "batchDuration": milliseconds,
            "numInputRows": read - begin,
            "durationMs": {"triggerExecution": milliseconds, "addBatch": int(milliseconds * 0.8)},
            "sources": [source],
            "sink": {},
        }
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

    assert 60 < at <= 97, (
        f"named after {at - 62:.0f} s"
    )  # half a minute after the batch that begins at 62 s, and a report


@pytest.mark.parametrize(
    ("limit", "within"),
    [
        # a second batch that is much longer than the first may be warm-up; the third tells
        pytest.param(None, 60, id="batches take all"),
        pytest.param(1500, 40, id="batches are limited"),
    ],
)
def test_an_overload_from_the_start_is_named_and_stays_named(limit, within):
    told = [(at, any(r.rule == "input-overload" for r in v.root_causes)) for at, v in run(steady(2000), 300, limit)]
    first = next(at for at, named in told if named)
    assert first <= within
    assert all(named for at, named in told if at >= first)


def test_a_long_second_batch_of_a_slow_start_is_not_overload():
    registry = QueryRegistry(Diagnoser)
    for batch in (spark_json(batchId=0, numInputRows=900), spark_json(batchId=1, numInputRows=12_000)):
        number = batch["batchId"]
        batch["timestamp"] = format_instant(START + 18.0 * number)
        batch["durationMs"] = {"triggerExecution": (18_000, 28_000)[number]}
        batch["sources"] = []
        state = registry.ingest(Observation(START + 50, "progress", None, batch))
        assert state is not None
        verdict = registry.judge(state, START + 18.0 * number + (18, 28)[number])
    assert [finding.rule for finding in verdict.findings] == []


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
