"""Query: what is wrong with one query, what to do, and the numbers behind it, from its input to its output."""

from ledgerops.mixin import thresholds
from ledgerops.mixin.alerts.crash_loop import START
from ledgerops.mixin.dashboards.model import EACH, Column, Label, Page, Panel, Row, Target, by, elapsed, q, recorded
from ledgerops.mixin.dashboards.pages import query_data, query_rare, query_tables
from ledgerops.mixin.dashboards.panels import OPEN_RULE
from ledgerops.mixin.dashboards.status import (
    FOUND,
    FOUND_OR_NONE,
    NAMES,
    STATUSES,
    found,
    or_none,
    present,
    severity,
    status,
)

ONE_QUERY = "app, query"
CAUSE = q("ledgerops_root_cause_info", "[severity]")
FIRST_CAUSE = q("ledgerops_root_cause_info", 'rank="1"', "[severity]")
SINCE = q("ledgerops_root_cause_since_timestamp_seconds")
RUN = "trigger, output_mode, sink, spark_version, run_id, instance"
STARTED = f"{q('ledgerops_query_info')} * on ({EACH}) group_left () {q('ledgerops_query_start_timestamp_seconds')}"
STATUS_OFFSET = len(FOUND) + 1  # added to the number of a status in the verdict, where lower ones are severities

VERDICT = f"{by('max', 'summary, action', severity(present(FIRST_CAUSE)))} or on () max({by('max', ONE_QUERY, status())}) + {STATUS_OFFSET}"
VERDICTS = (
    *FOUND,
    *((str(number + STATUS_OFFSET), f"{colour}:{text}") for number, (colour, text) in enumerate(STATUSES.values())),
)

CAUSES = by("max", "rule, summary, action, rank", severity(present(CAUSE)))
WRONG = Row(
    "What is wrong, and what should I do?",
    (
        Panel(
            "Verdict", (Target(VERDICT, "{{summary}} {{action}}"),), "short",
            "The most important root cause with its first step, or the status if nothing was found. Good: healthy or idle.",
            kind="stat", show="both", names=VERDICTS, width=24, height=4, empty="no driver has reported this query",
        ),
        Panel(
            "Root causes",
            (
                Column(
                    or_none(CAUSES, q("ledgerops_query_active"), "action", "no root cause"), "severity",
                    names=FOUND_OR_NONE, cell="background", pixels=105,
                ),
                elapsed(f"time() - {by('min', 'rule', present(SINCE))}", "since"),
            ),
            "short", "Findings that nothing else explains, with the first step. Good: none.", kind="table",
            labels=(
                Label("rank", "rank", 80), Label("summary", "cause", 250, (OPEN_RULE,), wrap=True),
                Label("action", "do first", None, wrap=True), Label("rule", "rule", hidden=True),
            ),
            order=("rank",), low=True, width=16, height=6, empty="no driver has reported this query", waits="a finding",
            drill="slow-sink",
        ),
        Panel(
            "Status over time", (Target(by("max", "app, instance, query", status()), "{{query}}"),), "short",
            "The status of the query; lost means that its driver stopped answering. Good: healthy or idle.",
            kind="state-timeline", names=NAMES, width=8, height=6, empty="no driver has reported this query",
        ),
        Panel(
            "Findings over time",
            (Target(or_none(found("rule"), q("ledgerops_query_active"), "rule", "no finding"), "{{rule}}"),),
            "short", "What the rules find, causes and symptoms, by severity. Good: none.", kind="state-timeline",
            names=FOUND_OR_NONE, width=24, height=6, empty="nothing was found", waits="a finding", drill="slow-sink",
        ),
        Panel(
            # a driver counts its own restarts only, from 0: not those that end with it
            "Restarts in the last hour", (Target(f"changes({recorded(START)}[1h])", "restarts"),), "short",
            f"Runs that began after another one, on whichever driver. Good: 0 outside of deployments; {thresholds.LOOP_RESTARTS} restarts after failures within a quarter of an hour are a crash loop.",
            kind="stat", warn=1.0, bad=thresholds.LOOP_RESTARTS, width=8, height=5,
            empty="no driver has reported this query",
        ),
        Panel(
            "Failures since the driver began",
            (Column(by("sum", "error_class", q("ledgerops_query_failures_total")), "failures", warn=1.0, pixels=100),),
            "short", "Runs that ended with an exception, by Spark's error class. Good: empty.", kind="table",
            labels=(Label("error_class", "error class", None),), order=("failures",), width=16, height=5,
            empty="no run has failed", waits="a run that failed", drill="crash",
        ),
        Panel(
            "Current run", (elapsed(f"time() - {by('max', RUN, STARTED)}", "up for"),), "short",
            "Trigger, output mode, sink, version and run id. Good: what was deployed.", kind="table",
            labels=(
                Label("trigger", "trigger", 150), Label("output_mode", "output mode", 100), Label("sink", "sink", None),
                Label("spark_version", "Spark", 70), Label("run_id", "run id", 110), Label("instance", "driver", 130),
            ),
            width=24, height=4, empty="no run is active",
        ),
    ),
)  # fmt: skip

PAGE = Page(
    uid="ledgerops-query", title="ledgerops / Query",
    help="One query: the verdict with what to do, whether it keeps up, where the batch time goes, and what is behind.",
    single=True, rows=(WRONG, *query_data.ROWS, query_tables.ROW, query_rare.ROW),
)  # fmt: skip
