"""Noisy neighbour: another query of the same driver takes the cores that this one needs.

Meaning: all queries of a driver share its task slots. Another query runs its tasks on most of them, more than it used
    to or since this query began, and the stages of this query wait for slots or compute slowly.
Impact: batches of this query outlast the trigger interval although its own rows and its sink are as before.
Diagnosis: 1. Check the findings of the query that is named: its cause is the cause here. `ledgerops diagnose` lists all
    queries of the driver.
    2. Compare `rate(ledgerops_batch_phase_seconds_total{phase="add_batch"}[5m])` of the queries of the driver. If the
    named query is not the highest any more, it has calmed down: wait.
    3. In the Spark UI, open the timeline of the executors. If its jobs fill all slots while jobs of this query wait,
    the scheduler mode is FIFO: fair pools help.
Mitigation: limit what the named query reads in a batch (`maxOffsetsPerTrigger`), or stop it if it is less important.
    Then repair it, or run it in a separate driver. Fair scheduling pools (`spark.scheduler.mode` FAIR,
    `spark.scheduler.pool`) keep one query from taking all slots.
Evidence:
    neighbour_cores: cores used by the tasks of the named query since the third latest batch of this query began:
        run_seconds of its stages divided by the durations of its batches that ended in that time and have tasks (or of
        its newest such batch), times the share of the time in which its batches run, including the running one.
    own_cores: the same for this query.
    usual_neighbour_cores: the same for the named query, in the 60 s before the last usual batch of this query. This and
        the next are absent where this query has no usual batches.
    slowdown_at_equal_rows: median duration of the latest 3 batches with rows, divided by that of the usual batches. If
        the latest batches have more rows, the usual duration is first multiplied by the ratio of the median rows.
    slots: sum of cores of the active executors in the newest sample of the host.
"""

from collections.abc import Iterator

from ledgerops.common.format import counted
from ledgerops.diagnosis import batch_time, cpu_contention
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.baseline import Slowdown
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    found, lost = cpu_contention.offender(view), view.baseline.slowdown
    if found is None or view.last is None:
        return
    at = view.now
    evidence = [
        Evidence("neighbour_cores", found.takes, "cores", f"< {cpu_contention.MIN_OFFENDER_SHARE * found.slots:g}", at),
        Evidence("own_cores", found.own, "cores", f"> {found.takes / cpu_contention.MIN_TIMES_OWN:.1f}", at),
        Evidence("slots", float(found.slots), "cores", "more than both need", at),
    ]
    if found.holds:
        lost = None
    before, effect, sure, share = _from_birth(view, found) if lost is None else _since(found, lost)
    if found.took is not None:
        evidence.append(Evidence("usual_neighbour_cores", found.took, "cores", "as now", at))
    if lost is not None:
        limit = f"< {cpu_contention.MIN_SLOWDOWN:g}"
        evidence.append(Evidence("slowdown_at_equal_rows", lost.factor, "ratio", limit, view.last.ended))
    yield Finding(
        f"{found.query} takes {found.takes:.1f} of {counted(found.slots, 'core')} ({before}); "
        f"a batch of this query takes {effect}",
        Component("query", found.query, "shares the driver's cores"),
        tuple(evidence),
        (
            Remedy(f"check the findings of {found.query}", "this query would keep up if it had the cores"),
            Remedy(
                "put both queries into fair scheduling pools, or into separate drivers",
                "with FIFO scheduling the tasks of one query can fill all slots",
                safe=False,
            ),
        ),
        confidence=sure,
        began=found.since,
        share=share,
    )


def _since(found: cpu_contention.Offender, lost: Slowdown) -> tuple[str, str, float, float]:
    """What the neighbour did before, what became of this query's batches, how sure that is, and its share of them."""
    before = "it did not run before" if found.took is None else f"it took {found.took:.1f} before"
    effect = f"{lost.seconds:.1f} s instead of the usual {lost.usual_seconds:.1f} s"
    much = lost.factor >= 2 * cpu_contention.MIN_SLOWDOWN
    return before, effect, min(0.95, 0.6 + 0.3 * found.takes / found.slots + 0.05 * much), max(0.0, 1 - 1 / lost.factor)


def _from_birth(view: QueryView, found: cpu_contention.Offender) -> tuple[str, str, float, float]:
    """The same without a past: its stages wait for slots while no task of it runs."""
    outside, seconds = batch_time.outside_tasks(view), view.batches[-1].duration
    effect = f"{seconds:.1f} s"
    since = "while this query waits for its first task" if found.holds else "since this query began"
    if outside is None:
        return since, effect, 0.5, 0.0
    effect = f"{outside.duration:.1f} s, in {outside.seconds:.1f} s of which no task of it runs"
    return since, effect, 0.5 + 0.3 * found.takes / found.slots, outside.share


def acquit(view: QueryView) -> str | None:
    width, since = view.cluster.cores, view.baseline.recent_since
    if not width or not view.others or since is None or cpu_contention.offender(view) is not None:
        return None
    running = (other for other in view.others if other.ended is None)
    takes = {other.query: cpu_contention.cores_taken(other, since, view.now) for other in running}
    known = {query: taken for query, taken in takes.items() if taken is not None}
    if not known:
        return None
    most = max(known, key=lambda query: known[query])
    return f"no other query takes more cores than {most}: {known[most]:.1f} of {width}"


RULE = Rule(
    "noisy-neighbour",
    "warning",
    check,
    __doc__,
    (
        "falling-behind",
        "trigger-overrun",
        "freshness-breach",
        "cpu-saturated",
        "slow-sink",
        "intermittent-sink",
        "small-batch-overhead",
    ),
    acquit,
    needs_harm=True,
)
