import subprocess

from ledgerops.mixin.alertmanager import alertmanager, inhibitions
from ledgerops.mixin.alerts import ALERTS
from ledgerops.mixin.site import Site
from ledgerops.model.finding import SEVERITIES
from tests.paths import ROOT
from tests.programs import needed


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
    silenced = "LedgerFallingBehind LedgerFreshnessPage LedgerFreshnessTicket LedgerQueryDown LedgerQueryStuck"

    assert inhibitions()["LedgerQueryFailed"] == tuple(silenced.split())


def test_a_lost_driver_and_a_sender_that_fails_are_one_page_each():
    rules = [rule for rule in alertmanager(Site())["inhibit_rules"] if "query" not in rule["equal"]]
    silenced = [(rule["source_matchers"], rule["target_matchers"], rule["equal"]) for rule in rules]

    assert silenced == [
        (['alertname="LedgerExporterAbsent"'], ['alertname=~"LedgerTargetDown"'], ["job"]),
        (['alertname="LedgerDriverLost"'], ['alertname=~"LedgerExporterAbsent"'], ["job"]),
        (['alertname="LedgerDriverLost"'], ['alertname=~"LedgerTargetDown"'], ["job", "instance"]),
        (['alertname="LedgerNotifyLate"'], ['alertname=~"LedgerNotifySenderFailing"'], ["job", "instance", "sender"]),
    ]


def test_alertmanager_takes_the_configuration():
    program = needed("amtool")
    done = subprocess.run([program, "check-config", ROOT / "alerts/alertmanager.yml"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def test_every_alert_goes_where_its_severity_says():
    """Asked of amtool: pages and tickets to whoever is on duty, what is only good to know nowhere but on the list."""
    program = needed("amtool")
    went = {}
    for alert in ALERTS:
        labels = [f"alertname={alert.name}", f"severity={alert.severity}", "job=ledgerops", "query=q"]
        command = [program, "config", "routes", "test", f"--config.file={ROOT / 'alerts/alertmanager.yml'}", *labels]
        went[alert.name] = subprocess.run(command, capture_output=True, text=True).stdout.strip()

    wanted = {alert.name: "listed" if alert.severity == "info" else "notify" for alert in ALERTS}
    about_notify = {alert.name: "direct,notify" for alert in ALERTS if alert.name.startswith("LedgerNotify")}
    assert went == wanted | {"LedgerWatchdog": "watchdog"} | about_notify
    assert about_notify, "notify cannot report that it is down"
