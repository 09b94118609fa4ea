"""Two drivers with equal query names before one real Prometheus: alerts name the application that is down."""

import json
import sys

import pytest

from ledgerops.mixin.site import Site
from ledgerops.servers.process import Process
from tests.monitoring import Prometheus
from tests.paths import ROOT
from tests.programs import for_spark, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
APPS = ("shop", "warehouse")
SITE = Site(scrape_seconds=1.0, evaluation_seconds=1.0, time_scale=1 / 6)  # a minute is ten seconds
SLOW = 180.0  # seconds for what takes ten on an idle machine


@pytest.fixture(scope="module")
def applications(tmp_path_factory):
    """The drivers by name, the Prometheus that scrapes both, and the folder with what makes a query fail."""
    folder = tmp_path_factory.mktemp("applications")
    environ = for_spark()
    opened, drivers = [], {}
    try:
        for app in APPS:
            command = [sys.executable, "-m", "tests.e2e.orders_app", app, folder / app, folder / f"{app}-broken"]
            drivers[app] = Process(app, command, folder / f"{app}.log", cwd=ROOT, env=environ)
        for app, process in drivers.items():
            process.wait_until((folder / app).exists, SLOW)
        addresses = [(folder / app).read_text() for app in APPS]
        (folder / "prometheus").mkdir()
        opened.append(prometheus := Prometheus(folder / "prometheus", addresses[0], SITE))
        targets = folder / "prometheus/targets/ledgerops.json"
        targets.write_text(json.dumps([{"targets": addresses}]))
        yield drivers, prometheus, folder
    finally:
        for process in drivers.values():
            process.kill()
        for each in opened:
            each.close()


def firing(prometheus, alert):
    """The applications for which an alert fires."""
    return {each["metric"].get("app") for each in prometheus.ask(f'ALERTS{{alertname="{alert}", alertstate="firing"}}')}


def running(prometheus):
    return {each["metric"]["app"] for each in prometheus.ask('ledgerops_query_active{query="orders"} == 1')}


def test_a_query_that_fails_in_one_application_pages_for_that_one_only(applications):
    _, prometheus, folder = applications
    until(lambda: running(prometheus) == set(APPS), SLOW, "orders in both applications")
    assert firing(prometheus, "LedgerQueryFailed") == firing(prometheus, "LedgerQueryDown") == set()

    (folder / "warehouse-broken").touch()
    for alert in ("LedgerQueryFailed", "LedgerQueryDown"):
        until(lambda alert=alert: firing(prometheus, alert), SLOW, alert)
        assert firing(prometheus, alert) == {"warehouse"}
    [failed] = prometheus.ask('ALERTS{alertname="LedgerQueryFailed", alertstate="firing"}')
    assert (failed["metric"]["query"], failed["metric"]["severity"]) == ("orders", "critical")
    assert running(prometheus) == {"shop"}


def test_a_driver_that_is_killed_is_lost_in_its_own_application(applications):
    drivers, prometheus, _ = applications
    drivers["shop"].kill()

    until(lambda: firing(prometheus, "LedgerDriverLost"), SLOW, "the lost driver")
    assert firing(prometheus, "LedgerDriverLost") == {"shop"}
    assert "shop" not in firing(prometheus, "LedgerQueryFailed") | firing(prometheus, "LedgerQueryDown")
