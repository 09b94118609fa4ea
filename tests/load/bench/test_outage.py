"""The simulation of an outage in small, with a real Alertmanager and notify."""

from __future__ import annotations

from ledgerops.mixin.site import Site
from load.bench.outage import BY_JOB, lost_drivers, scene
from tests.programs import needed

SITE = Site(time_scale=1 / 15)  # Alertmanager waits for a second


def play(drivers, owed, routes=()):
    needed("prometheus-alertmanager", "alertmanager")
    return scene(lost_drivers(drivers), owed, routes, SITE, receiver_seconds=0.0, quiet_seconds=1.5)


def test_each_lost_driver_of_an_application_of_its_own_is_one_page_and_its_target_none():
    found = play(4, 4)

    assert sorted(text.split(": LedgerDriverLost")[0].rpartition(" ")[2] for text in found.texts) == [
        "app-000", "app-001", "app-002", "app-003",
    ]  # fmt: skip
    assert found.refused == 0 and found.notify_bytes > 0 and found.alertmanager_bytes > 0


def test_grouped_by_job_all_lost_drivers_are_one_page_that_counts_them():
    [text] = play(4, 1, (BY_JOB,)).texts

    assert "app-000 and 3 more: app-001, app-002, app-003" in text
