"""Slow source: a batch spends its time asking the source and reading from it.

Meaning: the phases `latest_offset` and `get_batch`, or the tasks that read, take several times as long as they used
    to for as many rows, and they are what the batch got longer by. The query itself is as fast as it was.
Impact: batches outlast their interval although the cores are idle; the query falls behind.
Diagnosis: `sum by (phase) (rate(ledgerops_batch_phase_seconds_total{query="QUERY"}[5m]))`: much of `latest_offset` or
    `get_batch` is the broker's answer to a question. Much of `add_batch` while the reading stage hardly uses its CPU
    is fetching. Look at the broker's request latency and its quotas (`kafka-configs.sh --describe --entity-type
    clients`), and at the network between it and the query (`ping`, a transfer of a large file).
Mitigation: relieve the broker, lift the quota, or bring the query nearer. Until then a longer trigger interval asks
    less often; more cores do not help.
Evidence:
    source_phases_seconds_median: median of (durationMs.latestOffset + durationMs.getBatch) / 1000 over the newest 3
        batches of the run (without those of its first 10 s)
    usual_source_phases_seconds: the same over the usual batches: all of the run before the newest 4, without its
        first 10 s, with rows, not longer than 1.1 times the interval
    source_phases_share: the first over the median of durationMs.triggerExecution / 1000 of the same 3 batches
    reading_stage_seconds: median over P of ended - started of the first stage that reads no shuffle and has records;
        P = the newest 5 batches (not the run's first) whose tasks were read, only those that outlast 1.1 times the
        interval in a row up to now where there are 2 of them
    reading_stage_cpu_share: median over P of (cpu_seconds + gc_seconds + the batch's python_seconds) over run_seconds
        of that stage, at most 1
    slowdown_at_equal_rows: median duration of the newest 3 batches with rows over that of the usual ones, the latter
        times the ratio of their median rows where the newest have more
"""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import strain, work
from ledgerops.diagnosis.model import Component, Evidence, Finding, Remedy, Rule
from ledgerops.records import Progress
from ledgerops.view import View

PHASES = ("latest_offset", "get_batch")
MIN_SECONDS = 0.5  # a broker in another region answers the two or three questions of a batch in that time
MORE = 3.0  # times the usual: a loaded machine makes everything slower, but not this part alone so much
SHARE = 0.3  # of the batch
BLAME = 0.5  # of what the batch got longer by


class Slow(NamedTuple):
    what: str
    seconds: float
    usual: str
    duration: float
    evidence: tuple[tuple[str, float, str, str], ...]
    confidence: float
    excess: float  # seconds beyond the usual


def check(view: View) -> Iterator[Finding]:
    slow = _asking(view) or _fetching(view)
    if slow is None or view.last is None:
        return
    names = ",".join(source.name for source in view.last.sources)
    yield Finding(
        f"{slow.seconds:.1f} s of a batch of {slow.duration:.1f} s pass {slow.what}; {slow.usual}",
        Component("source", names or view.query),
        tuple(Evidence(name, value, unit, expected, view.last.ended) for name, value, unit, expected in slow.evidence),
        (
            Remedy(
                "look at the broker's request latency and at its quotas for this client",
                "more cores do not help while the query waits for the source",
            ),
            Remedy("make the trigger interval longer if results may be that old", "the source is asked less often"),
        ),
        confidence=slow.confidence,
        began=view.steady[-strain.RECENT].started,
        share=min(1.0, max(0.0, slow.excess) / slow.duration),
    )


def _seconds(batch: Progress) -> float:
    return sum(batch.phases.get(phase, 0.0) for phase in PHASES)


@strain.once
def _asking(view: View) -> Slow | None:
    """Every one of the latest batches waited long for the answers of the source."""
    usual, latest = strain.past(view), view.steady[-strain.RECENT :]
    if not usual or min(_seconds(batch) for batch in latest) < MIN_SECONDS:
        return None
    before, now = (median(_seconds(batch) for batch in some) for some in (usual, latest))
    duration = median(batch.duration for batch in latest)
    longer = duration - median(batch.duration for batch in usual)
    if now < MORE * before or now < SHARE * duration or now - before < BLAME * longer:
        return None
    evidence = (
        ("source_phases_seconds_median", now, "seconds", f"< {max(MIN_SECONDS, MORE * before):.1f}"),
        ("usual_source_phases_seconds", before, "seconds", "the usual"),
        ("source_phases_share", now / duration, "ratio", f"< {SHARE:g}"),
    )
    confidence = min(0.95, 0.6 + 0.4 * now / duration)
    return Slow("asking the source", now, f"usual are {before:.1f} s", duration, evidence, confidence, now - before)


@strain.once
def _fetching(view: View) -> Slow | None:
    """The tasks that read wait: most of a batch that takes longer than usual for its rows, and hardly any CPU.

    Tasks that read and also write wait for either; only later stages show that it is not the sink.
    """
    lost = strain.slowdown(view)
    if lost is None or lost.factor < work.MORE_THAN_USUAL or not strain.strained(view) or work.machine_busy(view):
        return None
    found = []
    for batch, tasks in work.pairs(view):
        reading = next((stage for stage in tasks.stages if not stage.reads_shuffle and stage.records > 0), None)
        if reading is None or reading is tasks.stages[-1] or not reading.wall_seconds or reading.run_seconds <= 0:
            continue
        busy = reading.cpu_seconds + reading.gc_seconds + (tasks.python_seconds or 0.0)
        found.append((reading.wall_seconds, min(1.0, busy / reading.run_seconds), batch.duration))
    if len(found) < work.ENOUGH:
        return None
    wall, cpu, duration = (median(each) for each in zip(*found, strict=True))
    if cpu >= work.WAITS or wall < work.MOSTLY * duration:
        return None
    evidence = (
        ("reading_stage_seconds", wall, "seconds", f"< {work.MOSTLY * duration:.1f}"),
        ("reading_stage_cpu_share", cpu, "ratio", f">= {work.WAITS:g}"),
        ("slowdown_at_equal_rows", lost.factor, "ratio", f"< {work.MORE_THAN_USUAL:g}"),
    )
    return Slow(
        "in the stage that reads, whose tasks wait",
        wall,
        f"such a batch used to take {lost.usual_seconds:.1f} s",
        duration,
        evidence,
        0.6,
        wall * (1 - cpu),
    )


def acquit(view: View) -> str | None:
    latest = view.steady[-strain.RECENT :]
    if not latest or _asking(view) is not None or _fetching(view) is not None:
        return None
    spent, duration = (median(each) for each in zip(*((_seconds(b), b.duration) for b in latest), strict=True))
    return f"asking the source takes {spent:.1f} s of a batch of {duration:.1f} s"


RULE = Rule(
    slug="slow-source",
    severity="warning",
    check=check,
    runbook=__doc__,
    explains=("falling-behind", "trigger-overrun"),
    acquit=acquit,
)
