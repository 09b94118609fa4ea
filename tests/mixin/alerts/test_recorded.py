"""The generated rules over recordings of real faults, by Prometheus' own engine: they speak in their drill, and of
controls they say nothing."""

import pytest

from ledgerops.mixin.alerts import ALERTS
from tests.mixin.dashboards.replayed import DRILLS, REAL, SITE, evaluated, pages_of

FIRING = {f'ALERTS{{alertname="{alert.name}", alertstate="firing"}}': alert for alert in ALERTS}


def firing(folder, drill, site, severities=("critical", "warning")):
    """Names of the alerts that fire at any moment of a drill."""
    asked = [text for text, alert in FIRING.items() if alert.severity in severities]
    return {FIRING[text].name for text in evaluated(folder, pages_of(DRILLS / drill / "recording"), asked, site=site)}


@pytest.mark.parametrize(
    ("drill", "alerts", "silent"),
    [
        ("crash", {"LedgerQueryFailed", "LedgerQueryDown"}, {"LedgerCrashLoop"}),
        ("crash-loop", {"LedgerCrashLoop"}, set()),
        ("hung-sink", {"LedgerQueryStuck"}, {"LedgerQueryDown"}),
        ("broker-down", {"LedgerSourceUnreachable"}, {"LedgerQueryFailed"}),
        ("late-flood", {"LedgerRowsDropped"}, set()),
        ("retention-loss", {"LedgerDataLoss"}, set()),
        ("rate-limited", {"LedgerRetentionRisk"}, {"LedgerDataLoss"}),
        ("ledger-imbalance", {"LedgerImbalance"}, {"LedgerConflictingDuplicates"}),
        ("conflicting-duplicates", {"LedgerConflictingDuplicates"}, {"LedgerImbalance"}),
    ],
)
def test_a_symptom_is_told_in_its_drill(tmp_path, drill, alerts, silent):
    """Windows are a thirtieth, to fit into the minutes of a drill."""
    found = firing(tmp_path, drill, SITE)

    assert alerts <= found
    assert not silent & found


@pytest.mark.parametrize("drill", ["burst", "ordinary", "change", "backlog", "gap", "restart"])
def test_a_control_pages_nobody(tmp_path, drill):
    assert firing(tmp_path, drill, REAL) == set()
