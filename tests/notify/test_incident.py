import pytest

from ledgerops.notify.incident import parse_webhook
from tests.notify.build import alert, resolved, webhook
from tests.refusals import refusal_of


def test_the_worst_alert_that_fires_comes_first():
    incident = parse_webhook(
        webhook(
            alert("LedgerTriggerOverrun", "warning"),
            alert("LedgerQueryDown", "critical", status="resolved", endsAt="2026-03-01T10:01:00Z"),
            alert("LedgerFallingBehind", "critical"),
        )
    )

    assert [each.name for each in incident.alerts] == ["LedgerFallingBehind", "LedgerTriggerOverrun", "LedgerQueryDown"]
    assert (incident.status, incident.query, incident.job) == ("firing", "daily_counts", "ledgerops")


def test_a_severity_of_another_origin_counts_as_a_warning_also_in_the_order():
    given = [alert(name, severity) for name, severity in (("A", "info"), ("B", "page"), ("C", "critical"))]
    later = alert("D", "warning", startsAt="2026-03-01T11:00:00Z")

    assert [each.name for each in parse_webhook(webhook(later, *given)).alerts] == ["C", "B", "D", "A"]


def test_instants_keep_their_fractions_and_never_is_none():
    incident = parse_webhook(webhook())

    assert incident.began == 1772359200.123456
    assert incident.worst.ended is None


def test_a_group_whose_alerts_are_all_over_is_resolved():
    incident = parse_webhook(resolved())

    assert (incident.status, incident.worst.ended) == ("resolved", 1772359620.0)


def test_the_same_alerts_have_the_same_identity_and_others_another():
    first = parse_webhook(webhook()).identity

    assert parse_webhook(webhook()).identity == first
    assert parse_webhook(resolved()).identity != first
    assert parse_webhook(webhook(alert(), alert("LedgerTriggerOverrun"))).identity != first
    assert parse_webhook(webhook(alert(startsAt="2026-03-01T11:00:00Z"))).identity != first


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ([], "not a webhook of Alertmanager: expected a JSON object"),
        ({"version": "3"}, "unsupported version of Alertmanager's webhook: '3', expected '4'"),
        ({"version": "4", "alerts": []}, "webhook without alerts"),
        ({"version": "4", "alerts": ["x"]}, "webhook with an alert that is not an object"),
        ({"version": "4", "alerts": [{"status": "firing"}]}, "webhook with an alert without the label alertname"),
        (webhook(alert(status="odd")), "webhook with an alert of status 'odd', expected firing or resolved"),
        (webhook(alert(startsAt="soon")), "webhook with an invalid startsAt: 'soon'"),
        (
            webhook(alert(startsAt="9999-12-31T23:59:59-12:00")),
            "webhook with an invalid startsAt: '9999-12-31T23:59:59-12:00'",
        ),
    ],
)
def test_what_is_no_webhook_is_refused_in_one_line(payload, message):
    assert refusal_of(parse_webhook, payload) == message


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://example.com/x", True),
        ("HTTP://example.com/x", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("//example.com", False),
        ("", False),
    ],
)
def test_only_addresses_of_the_web_are_passed_on(url, kept):
    annotations = {"summary": "s", "runbook_url": url, "dashboard_url": url}
    firing = parse_webhook(webhook(alert(annotations=annotations))).worst

    assert (firing.runbook, firing.dashboard) == ((url, url) if kept else (None, None))
