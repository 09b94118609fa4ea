import subprocess
from pathlib import Path

from ledgerops.alerts import ALERTS
from ledgerops.diagnosis.model import SEVERITIES
from ledgerops.render.alertmanager import inhibitions
from tests.programs import needed

ROOT = Path(__file__).parents[2]


def test_a_ticket_never_silences_a_page():
    severity = {alert.name: SEVERITIES.index(alert.severity) for alert in ALERTS}

    for source, targets in inhibitions().items():
        assert all(severity[target] <= severity[source] for target in targets), source


def test_two_alerts_never_silence_each_other():
    found = inhibitions()

    def reached(name, seen):
        for target in found.get(name, ()):
            assert target not in seen, f"{target} silences itself"
            reached(target, seen | {target})

    for name in found:
        reached(name, {name})


def test_a_failed_query_is_one_page():
    assert inhibitions()["LedgerQueryFailed"] == (
        "LedgerFallingBehind",
        "LedgerFreshnessPage",
        "LedgerFreshnessTicket",
        "LedgerQueryDown",
        "LedgerQueryStuck",
    )


def test_alertmanager_takes_the_configuration():
    program = needed("amtool")

    done = subprocess.run([program, "check-config", ROOT / "alerts/alertmanager.yml"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
