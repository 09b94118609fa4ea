"""The identity of a query, and whether it is active."""

from ledgerops.metrics.model import Metric, Series, known
from ledgerops.signals.query_view import QueryView

MAX_UNREAD_SECONDS = 3.0  # a run that is shorter may be over before its plan was read, as it is every second


def _info(view: QueryView) -> Series:
    plan = view.plan
    trigger = plan.trigger or "unknown"
    if plan.trigger_interval is not None:
        trigger = f"{trigger} {plan.trigger_interval:g}s"
    return {
        (
            view.history.query_id or "",
            view.history.run_id or "",
            plan.app_id or "",
            plan.app_name or "",
            plan.spark_version or "",
            trigger,
            plan.output_mode or "unknown",
            plan.sink or (view.last.sink if view.last else "") or "unknown",
        ): 1.0
    }


def _done(view: QueryView) -> bool:
    """Whether the query ended as planned, or continues unobserved: neither needs an alert. A run that found nothing to
    read may end before its trigger is known: it is that of the run before, or the run ended by itself."""
    ended, started = view.history.ended, view.history.started_at
    if ended is None or ended.exception is not None or ended.application_error is not None:
        return False
    plan = view.history.plan
    if ended.unwatched:
        return True
    if plan is not None and plan.trigger is not None:
        return plan.ends_itself
    return started is not None and ended.at - started < MAX_UNREAD_SECONDS and not ended.lost


INFO: Metric[QueryView] = Metric("ledgerops_query_info",
    "Identity of a run of the query; join it on query. The ids change with each restart, so no other metric has them.",
    labels=("query_id", "run_id", "app_id", "app_name", "spark_version", "trigger", "output_mode", "sink"),
    read=_info)  # fmt: skip
ACTIVE: Metric[QueryView] = Metric("ledgerops_query_active", "1 while a run of the query is active, 0 after its end.",
    read=lambda view: {(): 0.0 if view.history.ended else 1.0}, survives=True, unbudgeted=True)  # fmt: skip
EXPECTED: Metric[QueryView] = Metric("ledgerops_query_expected",
    "1 for each query that this driver has run or is configured to expect; it stays after the query has ended, "
    "unless its trigger (available now, once) ended it, which a clean end within three seconds is taken for while no "
    "run's trigger is known, or its session was detached.",
    read=lambda view: {} if _done(view) else {(): 1.0}, survives=True, unbudgeted=True)  # fmt: skip
RESTARTS: Metric[QueryView] = Metric("ledgerops_query_restarts_total",
    "Runs of the query after its first: the same name, a new run id.",
    read=lambda view: {(): float(view.history.restarts)}, survives=True)  # fmt: skip
FAILURES: Metric[QueryView] = Metric("ledgerops_query_failures_total",
    "Runs that ended with an exception, by Spark's error class; clean stops are not counted.", labels=("error_class",),
    read=lambda view: {(kind,): float(count) for kind, count in view.history.failures.items()},
    survives=True)  # fmt: skip
STARTED: Metric[QueryView] = Metric("ledgerops_query_start_timestamp_seconds", "When the current run started.",
    read=lambda view: known(view.history.started_at))  # fmt: skip
METRICS = (INFO, ACTIVE, EXPECTED, RESTARTS, FAILURES, STARTED)
