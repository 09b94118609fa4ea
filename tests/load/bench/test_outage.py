"""The simulation of an outage in small, with a real Alertmanager and notify."""

from load.bench.outage import BY_JOB, lost_drivers, lost_sources, scene
from tests.programs import needed

WAITS = {"group_wait": "1s", "group_interval": "2s"}


def play(drivers, owed, routes=()):
    needed("prometheus-alertmanager", "alertmanager")
    steps = lost_drivers(drivers, between=5.0)
    return scene(steps, owed, routes, WAITS, receiver_seconds=0.0, quiet_seconds=1.5, max_seconds=120.0)


def test_targets_that_are_down_are_one_page_and_each_lost_application_is_another():
    found = play(4, 5)
    down, *lost = sorted(found.texts, key=lambda text: "CRITICAL" in text)

    assert "WARNING ledgerops: LedgerTargetDown" in down
    assert "driver-000:9464 and 3 more: driver-001:9464, driver-002:9464, driver-003:9464" in down
    assert sorted(text.split(": LedgerDriverLost")[0].rpartition(" ")[2] for text in lost) == [
        "app-000", "app-001", "app-002", "app-003",
    ]  # fmt: skip
    assert found.refused == 0 and found.notify_bytes > 0 and found.alertmanager_bytes > 0


def test_grouped_by_job_all_lost_drivers_are_one_page_that_counts_them():
    down, lost = sorted(play(4, 2, (BY_JOB,)).texts, key=lambda text: "CRITICAL" in text)
    assert "driver-000:9464 and 3 more: " in down
    assert "app-000 and 3 more: app-001, app-002, app-003" in lost


def test_a_broker_that_is_away_is_one_page_for_each_application_with_its_queries():
    needed("prometheus-alertmanager", "alertmanager")
    steps = ((0.0, lost_sources(5, of_app=3)),)
    first, second = sorted(scene(steps, 2, (), WAITS, 0.0, quiet_seconds=1.5, max_seconds=120.0).texts)

    assert "CRITICAL 2 queries of app-001: LedgerSourceUnreachable" in first
    assert "queries: query-00, query-01\\n" in first
    assert "CRITICAL 3 queries of app-000: LedgerSourceUnreachable" in second
    assert "queries: query-00, query-01, query-02\\n" in second
