"""The alerts: symptoms that a reader of the data feels, what watches the watcher, and a ticket for each cause."""

from ledgerops.diagnosis.rules import RULES
from ledgerops.mixin.alerts import (
    crash_loop,
    data_loss,
    driver_lost,
    exporter_absent,
    falling_behind,
    freshness,
    integrity,
    notify,
    observer_degraded,
    query_down,
    query_failed,
    query_stuck,
    retention_risk,
    rows_dropped,
    series_cut,
    source_unreachable,
    table_behind,
    target_down,
    trigger_overrun,
    watchdog,
)
from ledgerops.mixin.alerts.causes import ticket
from ledgerops.mixin.alerts.model import Alert

SYMPTOMS: tuple[Alert, ...] = (
    query_down.ALERT, query_failed.ALERT, crash_loop.ALERT, query_stuck.ALERT, source_unreachable.ALERT,
    falling_behind.ALERT, table_behind.ALERT, trigger_overrun.ALERT, rows_dropped.ALERT, retention_risk.ALERT,
    data_loss.ALERT, integrity.IMBALANCE, integrity.CONFLICTS,
)  # fmt: skip
FRESHNESS: tuple[Alert, ...] = (freshness.PAGE, freshness.TICKET)
OBSERVER: tuple[Alert, ...] = (
    exporter_absent.ALERT, driver_lost.ALERT, target_down.ALERT, observer_degraded.ALERT, series_cut.ALERT,
    notify.ABSENT, notify.LATE, notify.FAILING, notify.GAVE_UP, watchdog.ALERT,
)  # fmt: skip
_SEEN = {alert.rule for alert in (*SYMPTOMS, *FRESHNESS, *OBSERVER)}
CAUSES: tuple[Alert, ...] = tuple(ticket(rule, _SEEN) for rule in RULES if rule.slug not in _SEEN)
ALERTS: tuple[Alert, ...] = (*SYMPTOMS, *FRESHNESS, *OBSERVER, *CAUSES)
