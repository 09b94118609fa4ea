"""Noisy neighbour: another query of the same driver takes the cores that this one needs.

Meaning: all queries of a driver share its task slots. The stages of this query wait for slots, or compute slowly, while
    the tasks of another query run on most of them, which takes more of them than it used to.
Impact: batches of this query outlast their interval although nothing is wrong with it: neither its rows, nor its sink.
Diagnosis: compare `rate(ledgerops_batch_phase_seconds_total{phase="add_batch"}[5m])` of the queries of the driver, and
    check the findings of the named one. In the Spark UI its jobs fill the timeline of the executors.
Mitigation: repair the named query, or run it in a separate driver. Until then limit what it reads in a batch, or put
    the queries into separate fair scheduling pools (spark.scheduler.mode FAIR, spark.scheduler.pool).
Evidence:
    neighbour_cores: cores that the tasks of the named query took, from the start of the third latest batch of this
        query until now: the sum of run_seconds of the stages over the sum of the durations of its batches that
        ended in that time and have tasks (else of the newest one), times the share of that time that its batches take,
        the running one included.
    own_cores: the same of this query.
    usual_neighbour_cores: the same of the named query in the 60 s before the last usual batch of this query.
    slowdown_at_equal_rows: median duration of the latest 3 batches with rows over that of the usual batches, the latter
        times the ratio of their median rows where there are more now.
    slots: sum of cores of the active executors in the newest look at the host.
"""

from collections.abc import Iterator

from ledgerops.diagnosis import cpu_contention
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    found, lost = cpu_contention.offender(view), view.baseline.slowdown
    if found is None or lost is None or view.last is None:
        return
    at = view.now
    evidence = [
        Evidence("neighbour_cores", found.takes, "cores", f"< {cpu_contention.HOGS * found.slots:g}", at),
        Evidence("own_cores", found.own, "cores", f"> {found.takes / cpu_contention.MORE:.1f}", at),
        Evidence("slowdown_at_equal_rows", lost.factor, "ratio", f"< {cpu_contention.SLOWER:g}", view.last.ended),
        Evidence("slots", float(found.slots), "cores", "more than both need", at),
    ]
    before = "it was not there before"
    if found.took is not None:
        evidence.append(Evidence("usual_neighbour_cores", found.took, "cores", "as now", at))
        before = f"it took {found.took:.1f} before"
    yield Finding(
        f"{found.query} takes {found.takes:.1f} of {found.slots} cores ({before}), and a batch of this query takes "
        f"{lost.seconds:.1f} s where it took {lost.usual_seconds:.1f} s",
        Component("query", found.query, "shares the driver's cores"),
        tuple(evidence),
        (
            Remedy(f"check the findings of {found.query}", "this query would keep up if it had the cores"),
            Remedy(
                "put both queries into fair scheduling pools, or into drivers of their own",
                "first come, first served lets one query's tasks fill all slots",
                safe=False,
            ),
        ),
        confidence=min(0.95, 0.6 + 0.3 * found.takes / found.slots + 0.05 * (lost.factor >= 2 * cpu_contention.SLOWER)),
        began=found.since,
        share=max(0.0, 1 - 1 / lost.factor),
    )


def acquit(view: QueryView) -> str | None:
    width = view.cluster.cores
    if (
        not width
        or not view.others
        or len(view.baseline.steady) < RECENT_BATCHES
        or cpu_contention.offender(view) is not None
    ):
        return None
    since = view.baseline.steady[-RECENT_BATCHES].started
    takes = {other.query: cpu_contention.taken(other, since, view.now) for other in view.others if other.ended is None}
    known = {query: taken for query, taken in takes.items() if taken is not None}
    if not known:
        return None
    most = max(known, key=lambda query: known[query])
    return f"of the other queries {most} takes most, {known[most]:.1f} of {width} cores"


RULE = Rule(
    slug="noisy-neighbour",
    severity="warning",
    check=check,
    runbook=__doc__,
    explains=("falling-behind", "trigger-overrun", "freshness-breach", "cpu-saturated"),
    acquit=acquit,
    needs_harm=True,
)
