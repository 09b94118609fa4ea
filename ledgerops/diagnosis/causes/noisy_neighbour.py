"""Noisy neighbour: another query or job of the same driver takes the cores that this query needs.

Meaning: all queries and jobs of a driver share its task slots. Another query runs its tasks on most of them, more than
    it used to or since this query began, or a job that belongs to no watched query has them all. The stages of this
    query wait for slots or compute slowly.
Impact: batches of this query outlast the trigger interval although its own rows and its sink are as before.
Diagnosis: 1. See what the tasks of the named query compute: a thread dump of an executor on page "Executors" of the
    Spark UI, `py-spy dump` for a Python worker. If `ledgerops diagnose` has a finding of that query, start with it.
    A job that belongs to no watched query is on page "Jobs", by its description. A `foreachBatch` function that starts
    threads of its own may have begun it, or a query of a session that ledgerops is not attached to.
    2. Compare `rate(ledgerops_batch_phase_seconds_total{phase="add_batch"}[5m])` of the queries of the driver. If the
    named query is not the highest any more, it has calmed down: wait.
    3. In the Spark UI, page "Jobs" names the scheduling mode, and page "Stages" what is active and what is pending.
    With FIFO, and stages of this query pending while those of the other one run, fair pools help.
Mitigation: stop the named query if it is less important. If it reads more rows than before, limit what it reads in a
    batch (`maxOffsetsPerTrigger`, of files and tables `maxFilesPerTrigger`). Then repair it, or run it in a separate
    driver. Fair scheduling pools (`spark.scheduler.mode` FAIR, `spark.scheduler.pool`) keep one query from taking all
    slots if its tasks are short: none is interrupted.
"""

from ledgerops.common.format import duration
from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts import contention
from ledgerops.diagnosis.facts.context import has_no_python
from ledgerops.diagnosis.facts.neighbours import JOB
from ledgerops.diagnosis.profile import Profile
from ledgerops.diagnosis.rule import LATE
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Remedy, Setting
from ledgerops.model.history import History
from ledgerops.signals.baseline import CHANGED_RATIO
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rates import read_over


def _tell(view: QueryView, found: Profile) -> Told | None:
    if found.contention is None:
        return None
    who, interval = found.contention.who, view.trigger.interval
    rival = next((other for other in view.others if other.query == who), None)
    context = "job" if who == JOB else _context(view, rival, found.contention.since)
    # of the newest batch of the other query whose tasks were read
    stages = rival.tasks[-1].stages if rival is not None and rival.tasks else ()
    longest = max((stage.seconds_max for stage in stages), default=0.0)
    if context == "several":
        then = Remedy("start the application with more cores", "its queries together need more than it has", safe=False)
    elif interval and longest > interval:
        then = Remedy(
            f"run {who} as an application of its own",
            f"its tasks hold a core for {duration(longest)}; fair scheduling does not interrupt a task",
            safe=False,
        )
    else:
        pair = "this query and that job" if who == JOB else "both queries"
        then = Remedy(
            f"put {pair} into fair scheduling pools, or into separate drivers",
            "with FIFO scheduling the tasks of one of them can fill all slots",
            safe=False,
            settings=(Setting("spark.scheduler.mode", "FAIR"),),
        )
    step = first_step("noisy-neighbour", context, "this query would keep up if it had the cores", query=who)
    kind, name = ("job", "that no watched query began") if who == JOB else ("query", who)
    return Told(Component(kind, name, "shares the driver's cores"), (step, then))


def _context(view: QueryView, rival: History | None, since: float) -> str:
    """Of the first step, by what the other query does since it took the cores; None stands for several queries."""
    if rival is None:
        return "several"
    usual = read_over([batch for batch in rival.run if batch.ended < since])
    now = read_over([batch for batch in rival.run if batch.ended >= since])  # a longer batch alone has more rows
    if usual is not None and now is not None and now >= CHANGED_RATIO * usual:
        return "rows"
    return "no Python" if has_no_python(QueryView(rival, view.now)) else GENERAL


CAUSE = Cause(
    slug="noisy-neighbour",
    runbook=__doc__,
    parts=("other_queries",),
    happened="{held}: that takes {seconds} of a batch of {batch} of this query",
    explains=(*LATE, "freshness-breach", "cpu-saturated", "slow-sink", "intermittent-sink", "small-batch-overhead"),
    formulas=contention.FORMULAS,
    tell=_tell,
)
