"""What became of a query or a driver, from what Prometheus knows."""

import time

from ledgerops.notify.incident import parse_webhook
from ledgerops.notify.lookup import Lookup
from ledgerops.notify.outcome import Run, outcome
from tests.notify.build import alert, resolved, webhook
from tests.tables import cases

SEEN = 1772359200.0  # 10:00:00 UTC
GONE = Run("daily_counts", "d:1", last=1.0, seen=SEEN)
STOPPED = Run("daily_counts", "d:1", last=0.0, seen=SEEN)
LOST = {"alertname": "LedgerDriverLost", "severity": "critical", "job": "ledgerops", "app": "shop", "instance": "d:1"}
OF_QUERY = parse_webhook(webhook(alert())).worst
OF_DRIVER = parse_webhook(webhook(alert(labels=LOST))).worst


@cases(
    "about, runs, said",
    ("lost", OF_QUERY, [GONE], "lost, not seen again since 10:00:00 UTC"),
    ("stopped", OF_QUERY, [STOPPED], "stopped"),
    ("moved", OF_QUERY, [GONE, Run("daily_counts", "d:2", 1.0, 1.0)], "runs on d:2"),
    ("another query runs", OF_QUERY, [GONE, Run("other", "d:2", 1.0, 1.0)], "lost, not seen again since 10:00:00 UTC"),
    ("unknown", OF_QUERY, [], ""),
    ("driver lost", OF_DRIVER, [GONE], "lost, not seen again since 10:00:00 UTC"),
    ("driver stopped", OF_DRIVER, [STOPPED], "stopped"),
    ("other queries", OF_DRIVER, [GONE, Run("new", "d:1", 1.0, 1.0)], "runs new"),
    ("replaced", OF_DRIVER, [GONE, Run("daily_counts", "d:2", 1.0, 1.0)], "replaced: d:2 runs daily_counts"),
)
def test_what_is_known_is_said(about, runs, said):
    assert outcome(about, runs) == said


def test_the_end_of_a_query_whose_driver_is_gone_is_asked_of_prometheus(driver, notify):
    series = {"metric": {"query": "daily_counts", "instance": "d:1"}, "value": [0, "1"]}
    driver.pages["/api/v1/query"] = {"data": {"result": [series]}}
    service = notify([], Lookup(prometheus=driver.url))

    said = service._outcomes(parse_webhook(resolved()), {}, time.monotonic() + 30)
    assert said == {"daily_counts": "runs on d:1"}
    assert all("last_over_time" in path for path in driver.asked[1:])


def test_without_prometheus_nothing_is_claimed(notify):
    assert notify([])._outcomes(parse_webhook(resolved()), {}, time.monotonic() + 30) == {}
