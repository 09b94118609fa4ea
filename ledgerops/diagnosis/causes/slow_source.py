"""Slow source: a batch spends its time asking the source and waiting for its rows.

Meaning: the phases `latest_offset` and `get_batch`, and the tasks that read, wait several times as long as before, and
    this explains why the batch takes longer. The rest of the query is as fast as before. Without a healthy past, these
    phases take most of each batch.
Impact: batches outlast the trigger interval although the cores are idle, and the query falls behind.
Diagnosis: 1. `sum by (phase) (rate(ledgerops_batch_phase_seconds_total{app="APP",query="QUERY"}[5m]))` shows where the
    time goes. A long `latest_offset` or `get_batch` means that the source answers slowly. A long `add_batch` with
    reading tasks that hardly use CPU means slow fetching.
    2. Kafka: check the request latency of the broker and its quotas (`kafka-configs.sh --bootstrap-server SERVERS
    --describe --entity-type clients`). A quota that is reached throttles this query alone; high latency affects all
    clients. Files: `latest_offset` lists the folder: time one listing, and count its files. `get_batch` looks up each
    file of the batch: count these. A table: count its new versions and files.
    3. If the source is fast, test the network between it and the query (`ping`, a transfer of a large file). Each task
    sends several requests, so the latency of one request adds up.
Mitigation: make the trigger interval longer if results may be that old: the query then sends fewer requests. Then
    reduce the load on the source, raise the quota, or move the query closer to it. More cores do not help.
"""

from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.context import ANY, fitting, slow_answers, source_kind, source_names
from ledgerops.diagnosis.facts.longer_interval import longer_interval
from ledgerops.diagnosis.profile import Profile
from ledgerops.diagnosis.rule import LATE
from ledgerops.metrics.first_steps import first_step
from ledgerops.model.finding import Component, Evidence
from ledgerops.signals.query_view import QueryView

FIRST = {
    ANY: first_step("slow-source", ANY, "more cores do not help while the query waits for it"),
    "source kafka": first_step("slow-source", "source kafka", "more cores do not help while the query waits for it"),
    "source files": first_step(
        "slow-source",
        "source files",
        "each batch lists all its folders: move old files and folders away, or have files cleaned (cleanSource)",
    ),
    "source table": first_step("slow-source", "source table", "each batch reads the log of the table from there"),
}
OF_BATCH = first_step(
    "slow-source",
    "files of a batch",
    "each of them is looked up alone before it is read; old ones in the folder are not",
)


def _tell(view: QueryView, found: Profile) -> Told:
    component, answers = Component("source", source_names(view)), slow_answers(view)
    longer = longer_interval(view, found.duration, "the query then sends fewer requests")
    more = {name: found.parts[name].excess for name in CAUSE.parts if name in found.parts}
    of_batch = source_kind(view) == "files" and more.get("get_batch", 0.0) > more.get("latest_offset", 0.0)
    remedies = (OF_BATCH,) if of_batch else (fitting(FIRST, view), *longer)
    if answers is None:
        return Told(component, remedies)
    now, usual = answers
    asked = (  # ledgerops itself waits as well
        Evidence("broker_answer_seconds", now, "seconds", f"about {usual:.2f}", found.at),
        Evidence("usual_broker_answer_seconds", usual, "seconds", "the usual", found.at),
    )
    return Told(component, remedies, more=asked)


CAUSE = Cause(
    slug="slow-source",
    runbook=__doc__,
    parts=("latest_offset", "get_batch"),
    grown=("source_wait",),
    perhaps=("waiting",),
    happened="{seconds} of a batch of {batch} pass waiting for the source",
    explains=("query-stuck", *LATE),
    formulas={
        "broker_answer_seconds": "median of the newest three times that the broker took to answer ledgerops itself "
        "(`seconds` of the `offsets` records)",
        "usual_broker_answer_seconds": "the same median over all answers but the newest 15",
    },
    tell=_tell,
)
