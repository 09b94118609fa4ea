"""Memory leak: the memory of the driver's Python process or of its Python workers grows steadily and will be used up.

Meaning: what Python holds at its lowest rises from minute to minute, and at this rate fills the memory of the machine,
    or of the container. The heap of the JVM has a limit of its own and is not meant here.
Impact: when it is full, the kernel kills the process that takes most, or Kubernetes the container (OOMKilled, exit code
    137), with all queries of the driver. A restart resumes from the checkpoint, and the growth begins again.
Diagnosis: 1. `predict_linear(ledgerops_host_memory_available_bytes{instance="INSTANCE"}[10m], 3600)` is what will be
    left in an hour.
    2. `ledgerops_process_memory_bytes{instance="INSTANCE"}` by `kind` shows what grows. `driver_python`: the program
    keeps something from batch to batch: a list or a dictionary that a `foreachBatch` function adds to, results of
    `collect()` or `toPandas()`, a cache. `python_workers`: a function keeps something from call to call: a global, a
    cache without a limit, a library that leaks.
    3. `memray attach PID`, or two snapshots of `tracemalloc`, show the lines that allocate what stays.
Mitigation: give a cache a limit (`functools.lru_cache(maxsize=...)`) and drop what a batch no longer needs. Until then
    restart the driver before its memory is full. `spark.executor.pyspark.memory` makes a worker fail that takes too
    much, instead of the container. `spark.python.worker.reuse=false` ends the growth of workers, but each task then
    starts one, which takes seconds: only with long trigger intervals.
Evidence:
    ledgerops_process_memory_bytes: memory_bytes of the role in the newest record `host`
    memory_growth: in each fifth of the records `host` of the last ten minutes, the least memory_bytes
        of a process of the role; how much more that is in the newest fifth than in the oldest, for each second between
        these two records and times the newest number of processes
    available_bytes: memory_available_bytes of the newest record
    seconds_until_full: available_bytes / memory_growth; at most 16 times as long as the growth was observed, which are
        at least 90 seconds
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ledgerops.common.format import duration, size
from ledgerops.diagnosis.facts.creep import WINDOW_PARTS, rises_steadily
from ledgerops.diagnosis.limits import MAX_AHEAD_RATIO, NEARLY_ALL
from ledgerops.diagnosis.rule import LIKELY, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.history import TREND_SECONDS
from ledgerops.model.records import Host, Process
from ledgerops.signals.query_view import QueryView

WORKERS = "python_workers"
NAMES = {"driver_python": "the driver's Python process", WORKERS: "the Python workers"}


def check(view: QueryView) -> Iterator[Finding]:
    room = view.hosts[-1].memory_available_bytes if view.hosts else None
    if room is None:
        return
    for role, name in NAMES.items():
        newest, grown, at = _held(view.hosts[-1], role), _growth(view.hosts, role), view.hosts[-1].at
        if newest is None or grown is None:
            continue
        rate, began, seconds = grown
        if room > MAX_AHEAD_RATIO * seconds * rate:
            continue
        left = room / rate
        restart = Remedy(
            f"restart the driver within {duration(left)}",
            "it resumes from its checkpoints, and the growth begins anew",
            safe=False,
        )
        yield Finding(
            f"{name} grow{'' if role == WORKERS else 's'} by {size(rate)} per second to "
            f"{size(newest.memory_bytes)}: the memory will be full in {duration(left)}",
            Component("host", name),
            (
                Evidence("ledgerops_process_memory_bytes", newest.memory_bytes, "bytes", "a plateau", at),
                Evidence("memory_growth", rate, "bytes/s", "~ 0", at),
                Evidence("available_bytes", room, "bytes", "enough", at),
                Evidence("seconds_until_full", left, "seconds", "never", at),
            ),
            (first_step("memory-leak", role if role == WORKERS else GENERAL, "the least that is held rises"), restart),
            confidence=LIKELY,
            began=began,
        )


def _growth(hosts: Sequence[Host], role: str) -> tuple[float, float, float] | None:
    """How what is held at the least, between batches or after a collection, grows: bytes a second, since when, and
    seconds looked back on. None where it comes to an end."""
    newest, before = _held(hosts[-1], role), _held(hosts[0], role)
    if newest is None or (before is not None and newest.memory_bytes <= before.memory_bytes):
        return None  # which is soon seen: it is asked at every batch
    samples = [(host.at, held) for host in hosts if (held := _held(host, role)) is not None]
    (start, _), (end, _) = samples[0], samples[-1]
    if len(samples) < 2 * WINDOW_PARTS or end - start < (2 * WINDOW_PARTS - 1) * TREND_SECONDS:
        return None  # a low of one sample says little, and in the first minute everything grows
    bounds = [len(samples) * part // WINDOW_PARTS for part in range(WINDOW_PARTS + 1)]
    parts = [samples[first:last] for first, last in pairwise(bounds)]
    lows = [min((each.memory_bytes / each.processes, at) for at, each in part) for part in parts]
    if not rises_steadily([low for low, _ in lows]):
        return None
    (least, began), (middle, halfway), (most, ended) = lows[0], lows[WINDOW_PARTS // 2], lows[-1]
    if (most - middle) / (ended - halfway) < NEARLY_ALL * (middle - least) / (halfway - began):
        return None  # a cache that fills
    return (most - least) * newest.processes / (ended - began), began, end - start


def _held(host: Host, role: str) -> Process | None:
    return next((each for each in host.processes if each.role == role and each.processes > 0), None)


RULE = Rule("memory-leak", "warning", check, __doc__, linger=30.0, at_rest=True)
