"""State snapshot lag: no full snapshots of the state are uploaded, only changes.

Meaning: each batch saves its changes, and a background task uploads a full snapshot at intervals. For at least one
    store there has been no upload for far longer than configured: the background task does not run, does not keep up,
    or fails.
Impact: none until the query or an executor starts again. Then every change since the last snapshot is loaded and
    replayed, which takes minutes instead of seconds. Old files of the checkpoint cannot be removed.
Diagnosis: 1. `ledgerops_state_snapshot_lag_batches{app="APP",query="QUERY"}` rises by one per batch. If it falls to a
    small number again, an upload has succeeded.
    2. Search the logs of the executors for "maintenance": failed uploads are logged there, with the reason.
    3. Without an error there, check `spark.sql.streaming.stateStore.maintenanceInterval` (60s by default) and
    `minDeltasForSnapshot` (10). Larger values delay the snapshots; many stores on one executor need more threads
    (`numStateStoreMaintenanceThreads`).
Mitigation: if you can wait, do not restart the query until a snapshot has been uploaded. Repair what the log names. At
    the next start set both settings back to their defaults, or give maintenance more threads. All of this works with
    the same checkpoint.
Evidence:
    state_snapshot_lag_batches: batchId + 1 - the smallest SnapshotLastUploaded.partition_*_* of the operator in the
        newest batch, which is at least the first batchId of the run
    state_snapshot_age_seconds: end of the newest batch - that of the batch before that version, or else the start of
        the oldest of the latest 200
"""

from collections.abc import Iterator

from ledgerops.common.format import duration
from ledgerops.diagnosis.rule import Rule, confidence
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.delta_log import whole_number
from ledgerops.model.finding import Component, Evidence, Finding, Remedy, Setting
from ledgerops.model.records import StateOperator
from ledgerops.model.state_settings import DELTAS, MAINTENANCE, PREFIX, seconds
from ledgerops.signals.query_view import QueryView

USUAL_INTERVAL_SECONDS, USUAL_DELTAS = 60.0, 10  # Spark's defaults of maintenanceInterval and minDeltasForSnapshot
# Spark's coordinator warns of a store 5 x minDeltasForSnapshot versions behind (multiplierForMinVersionDiffToLog)
MIN_LAG_VERSIONS = 5 * USUAL_DELTAS
# and 10 maintenance intervals old. Three are enough here: one to fall due in, one to upload in, and one to spare
MIN_AGE_SECONDS = 3 * USUAL_INTERVAL_SECONDS


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None:
        return
    for operator in view.last.operators:
        if not operator.snapshot_versions:
            continue
        lag, age = _lag(view, operator)
        if lag < MIN_LAG_VERSIONS or age < MIN_AGE_SECONDS:
            continue
        store = min(operator.snapshot_versions, key=lambda each: operator.snapshot_versions[each])
        yield Finding(
            f"no snapshot of the state of {operator.name} was uploaded for {lag} batches and {duration(age)} "
            f"({store}): a restart must replay every change since",
            Component("operator", operator.name, store),
            (
                Evidence("state_snapshot_lag_batches", float(lag), "count", f"< {MIN_LAG_VERSIONS}", view.last.ended),
                Evidence("state_snapshot_age_seconds", age, "seconds", f"< {MIN_AGE_SECONDS:g}", view.last.ended),
            ),
            (_remedy(view),),
            confidence=confidence(lag, MIN_LAG_VERSIONS),
            began=max(view.last.ended - age + MIN_AGE_SECONDS, view.batches[0].started),
        )


def _remedy(view: QueryView) -> Remedy:
    """The setting that delays the snapshots, where one does; else the log, which says why their upload fails."""
    set_to = view.plan.state_settings or {}
    if (seconds(set_to.get(MAINTENANCE, "")) or 0.0) > USUAL_INTERVAL_SECONDS:
        name, usual = MAINTENANCE, f"{USUAL_INTERVAL_SECONDS:g}s"
    elif (whole_number(set_to.get(DELTAS)) or 0) > USUAL_DELTAS:
        name, usual = DELTAS, f"{USUAL_DELTAS}"
    else:
        why = "maintenance uploads a snapshot that is due, or logs why it failed"
        return first_step("state-snapshot-lag", GENERAL, why)
    why, back = f"a snapshot is due after {USUAL_DELTAS} changes and is uploaded by the next maintenance", set_to[name]
    settings = (Setting(PREFIX + name, usual),)
    return first_step("state-snapshot-lag", "setting", why, settings=settings, setting=name, usual=usual, now=back)


def _lag(view: QueryView, operator: StateOperator) -> tuple[int, float]:
    """Batches and seconds since the laggard's snapshot, both at least so many."""
    assert view.last is not None
    oldest = view.batches[0]
    first = view.history.first_batch if view.history.first_batch is not None else oldest.batch_id
    version = max(min(operator.snapshot_versions.values()), first)
    made = next((batch.ended for batch in reversed(view.batches) if batch.batch_id == version - 1), oldest.started)
    return view.last.batch_id + 1 - version, view.last.ended - made


RULE = Rule("state-snapshot-lag", "warning", check, __doc__, linger=30.0)
