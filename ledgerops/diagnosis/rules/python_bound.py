"""Python bound: Python workers take most of the run time of a batch's tasks.

Meaning: a user-defined function sends each row from the JVM to a Python worker and back. The tasks spend most of their
    time waiting for the Python workers and use little JVM CPU.
Impact: batches outlast the trigger interval. A faster JVM, more memory or a better plan does not help.
Diagnosis: 1. Check `rate(ledgerops_process_cpu_seconds_total{kind="python_workers"}[5m])`. Near the number of cores,
    the functions compute; near zero, they wait, for example for a service that they call.
    2. In the Spark UI, page "SQL", the metric "time to run Python workers" of each Python node shows which function
    takes the time.
    3. `py-spy dump --pid PID` on one of the workers shows the line that it executes. A network call there means one
    request for each row.
Mitigation: if the function calls a service, check that service first. Then load models and connections once instead of
    for each row, and call services for many rows at once. Write the function in Spark SQL if possible, otherwise
    vectorise it (`pandas_udf`, or `udf(useArrow=True)`). More cores help as long as the source or the shuffle has more
    partitions than the query has cores.
Evidence:
    python_seconds: median over P of python_seconds of the task summary. P = the newest 5 batches whose tasks were read,
        without the first batch of the run; if 2 or more in a row up to now take longer than 1.1 times the interval,
        only those
    python_share_of_task_time: median over P of python_seconds divided by the sum of run_seconds of the stages, at most
        1
    task_cpu_share: median over P of the sum of cpu_seconds of the stages divided by the sum of their run_seconds
    stage_seconds: median over P of the wall time in which at least one stage ran
    usual_python_seconds_per_row: python_seconds per row, median over the newest 5 usual batches with tasks
    python_seconds_per_row: median over P of python_seconds / numInputRows
"""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import batch_time, harm, starvation
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_PYTHON_SHARE = 0.6  # of the task time; a Python source that only passes rows on has less
MAX_JVM_CPU_SHARE = 0.5  # of the task time on the JVM's CPU, from which the work is the JVM's
MAX_ACQUITTED_SHARE = 0.4  # of the task time: less rules Python out
MIN_SLOWDOWN = 1.5  # time for a row over the usual: below it the load changed, not the function


class Bound(NamedTuple):
    """What Python costs a batch, by medians."""

    seconds: float  # in Python workers, summed over tasks
    share: float  # of the task time that is Python
    cpu: float  # share of the task time on the JVM's CPU
    stages: float  # seconds of wall time with a stage at work
    saving: float  # seconds of wall time that a batch would save if its Python took none
    per_row: float  # seconds of Python
    duration: float  # of the batch, in seconds


@once
def bound(view: QueryView) -> Bound | None:
    """Medians over the newest batches whose tasks are known; None where Spark reports no Python time."""
    return _bound(view, batch_time.pairs(view))


def _bound(view: QueryView, known: batch_time.Pairs) -> Bound | None:
    found = []
    for batch, tasks in known:
        ran, inside = tasks.run_seconds, batch_time.stage_time(tasks)
        if not tasks.python_seconds or ran <= 0 or inside is None or batch.rows <= 0:
            continue
        share = min(1.0, tasks.python_seconds / ran)
        cpu = tasks.cpu_seconds / ran
        per_row = tasks.python_seconds / batch.rows
        width = batch_time.slots(view, max(stage.tasks for stage in tasks.stages))
        saving = min(inside.seconds, tasks.python_seconds / width)
        found.append(Bound(tasks.python_seconds, share, cpu, inside.seconds, saving, per_row, batch.duration))
    if len(found) < batch_time.needed(view):
        return None
    return Bound(*(median(each) for each in zip(*found, strict=True)))


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or not harm.examined(view):
        return
    now = bound(view)
    if (
        now is None
        or now.share < MIN_PYTHON_SHARE
        or now.cpu >= MAX_JVM_CPU_SHARE
        or now.stages < batch_time.MIN_MAIN_SHARE * now.duration
    ):
        return
    before = _bound(view, batch_time.usual_pairs(view))
    if (before is not None and now.per_row < MIN_SLOWDOWN * before.per_row) or starvation.starved(view):
        return
    at = view.last.ended
    evidence = [
        Evidence("python_seconds", now.seconds, "seconds", f"< {MIN_PYTHON_SHARE * now.seconds / now.share:.1f}", at),
        Evidence("python_share_of_task_time", now.share, "ratio", f"< {MIN_PYTHON_SHARE:g}", at),
        Evidence("task_cpu_share", now.cpu, "ratio", f">= {MAX_JVM_CPU_SHARE:g}", at),
        Evidence("stage_seconds", now.stages, "seconds", f"< {batch_time.MIN_MAIN_SHARE * now.duration:.1f}", at),
        Evidence("python_seconds_per_row", now.per_row, "seconds", "less", at),
    ]
    slower = ""
    if before is not None:
        evidence.append(Evidence("usual_python_seconds_per_row", before.per_row, "seconds", "the usual", at))
        slower = f"; a row takes {now.per_row / before.per_row:.1f} times as long as usual"
    yield Finding(
        f"Python workers take {now.share:.0%} of the task time of a batch of {now.duration:.1f} s; the JVM computes "
        f"for {now.cpu:.0%} of it{slower}",
        Component("stage", "Python workers"),
        tuple(evidence),
        (
            Remedy(
                "write the function in Spark SQL, or vectorise it with pandas_udf",
                "rows sent to a Python worker are copied, converted and processed one at a time",
                safe=False,
            ),
            Remedy(
                "if the workers use little CPU, find out what the function waits for",
                "one call per row is slow on any number of cores",
            ),
        ),
        confidence=min(0.95, 0.5 + 0.3 * now.share + (0.15 if before is not None else 0.0)),
        began=view.baseline.recent_since,
        share=min(1.0, now.saving / now.duration),
    )


def acquit(view: QueryView) -> str | None:
    now = bound(view)
    if now is None or now.share >= MAX_ACQUITTED_SHARE:  # a large share that was always there is not ruled out either
        return None
    return f"Python workers take {now.share:.0%} of the task time"


RULE = Rule("python-bound", "warning", check, __doc__, ("falling-behind", "trigger-overrun"), acquit, needs_harm=True)
