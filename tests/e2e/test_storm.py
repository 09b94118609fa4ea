"""A small storm of alerts for notify; the large one is `python -m tests.e2e.storm`."""

from ledgerops.notify.service import DIAGNOSIS_SECONDS
from tests.e2e.storm import ALERTS_OF_A_GROUP, storm

ALERTS, KILLS = 1_000, 4
BUSY_SECONDS = 60.0  # for what starts and answers slowly on a busy machine


def test_a_healthy_sender_gets_every_page_beside_dead_ones_a_hung_driver_and_kills():
    found = storm(ALERTS, KILLS)

    assert found.missing == []
    assert len(found.arrived) == ALERTS / ALERTS_OF_A_GROUP
    assert found.more == 0 and found.repeated <= KILLS, "a page that was on its way at a kill may come twice"
    assert found.delays[-1] < DIAGNOSIS_SECONDS + BUSY_SECONDS
    assert found.with_diagnosis > 0
