from urllib.parse import unquote

import pytest

from ledgerops.notify import message as message_module
from ledgerops.notify.incident import parse_webhook
from ledgerops.notify.message import MAX_LINE_CHARACTERS, MAX_LINES
from tests.notify.build import CAUSE, DIAGNOSIS, HEALTHY, alert, resolved, webhook

NOW = 1772359200.0 + 180


def compose(incident, diagnosis, now, trouble=None, before=None, outcomes=()):
    """The message about one query or driver."""

    def of(known):
        return {incident.worst.about: known} if known else {}

    return message_module.compose(incident, of(diagnosis), now, trouble, of(before), of(next(iter(outcomes), None)))


def test_a_page_says_what_since_when_why_and_what_to_do():
    message = compose(parse_webhook(webhook(alert(), alert("LedgerTriggerOverrun", "warning"))), DIAGNOSIS, NOW)

    assert message.text.splitlines() == [
        "CRITICAL daily_counts: A query falls behind its input (alert since 10:00:00 UTC, for 3 min)",
        "reads rows that are 3m old.",
        "cause: key-skew (confidence high): key 789087abc47c of customer_id has 80% of the rows",
        "do first: salt the key (only splitting the key spreads its rows)",
        "ruled out: slow-sink",
        "also firing: LedgerTriggerOverrun",
        "runbook: https://example.com/runbooks/LedgerFallingBehind.md",
        "dashboard: https://example.com/d/ledgerops-query",
        "silence: http://alertmanager:9093/#/silences/new?filter=%7Bquery%3D%22daily_counts%22%7D",
    ]


def test_the_exception_that_ended_a_query_is_in_the_first_line_and_nowhere_else():
    why = "the query failed after batch 17 (FOREACH_BATCH_USER_FUNCTION_ERROR): OSError: disk quota exceeded"
    failed = {**DIAGNOSIS, "root_causes": [{**CAUSE, "rule": "query-failed", "summary": why}]}
    message = compose(parse_webhook(webhook()), failed, NOW)

    assert message.title == f"CRITICAL daily_counts: {why} (alert since 10:00:00 UTC, for 3 min)"
    assert message.body.splitlines()[:2] == [
        "cause: query-failed (confidence high)",
        "do first: salt the key (only splitting the key spreads its rows)",
    ]


def test_a_page_names_the_application_of_the_query_and_silences_only_that():
    labels = {"job": "ledgerops", "app": "billing", "query": "daily_counts"}
    found = compose(parse_webhook(webhook(groupLabels=labels, commonLabels=labels)), DIAGNOSIS, NOW)

    assert found.title.startswith("CRITICAL daily_counts of billing: ")
    silence = found.body.splitlines()[-1]
    assert unquote(silence).endswith('?filter={query="daily_counts", app="billing"}')


@pytest.mark.parametrize(
    ("labels", "subject"), [({"job": "ledgerops"}, "CRITICAL ledgerops: "), ({}, "CRITICAL: ")], ids=["job", "nothing"]
)
def test_a_page_about_no_query_names_the_job_where_it_is_known(labels, subject):
    about_none = alert(labels={"alertname": "LedgerExporterAbsent", "severity": "critical", **labels})
    found = compose(parse_webhook(webhook(about_none, groupLabels=labels, commonLabels=labels)), None, NOW)

    assert found.title.startswith(subject)


def test_a_page_names_its_one_query_also_where_the_group_had_others():
    over = {"status": "resolved", "endsAt": "2026-03-01T10:02:00Z"}
    found = about_shop([of_shop("orders"), of_shop("payments", **over)], {})

    assert found.title.startswith("CRITICAL orders of shop: ")


def lost(number, name="LedgerDriverLost", **other):
    labels = {"alertname": name, "severity": "critical", "job": "ledgerops", "instance": f"driver-{number:03}:9464"}
    return {**alert(labels={**labels, **other}), "fingerprint": f"{name} {number}"}


def about_drivers(*alerts, **other):
    labels = {"job": "ledgerops"}
    return compose(parse_webhook(webhook(*alerts, groupLabels=labels, commonLabels=labels, **other)), None, NOW)


def test_a_page_about_many_drivers_counts_them_and_names_the_first():
    lines = about_drivers(*(lost(number) for number in range(50)), truncatedAlerts=200).body.splitlines()

    first = ", ".join(f"driver-{number:03}:9464" for number in range(1, 9))
    assert lines[1] == f"driver-000:9464 and 249 more: {first}, ..."
    assert not any(line.startswith("also firing") for line in lines)


def test_drivers_are_named_by_their_application_where_it_is_known():
    assert "shop and 1 more: warehouse" in about_drivers(lost(1, app="shop"), lost(2, app="warehouse")).body


def test_what_was_left_out_is_counted_once():
    body = about_drivers(lost(1), lost(2), lost(3, "LedgerTargetDown"), truncatedAlerts=7).body

    assert "driver-001:9464 and 1 more: driver-002:9464\nalso firing: LedgerTargetDown and 7 more" in body


def test_a_page_about_one_driver_or_one_query_counts_nothing():
    assert " more: " not in about_drivers(lost(1)).body
    assert " more: " not in compose(parse_webhook(webhook(alert(), alert())), None, NOW).body


def test_without_a_diagnosis_the_page_says_why():
    message = compose(parse_webhook(webhook()), None, NOW, "http://driver:9464: timed out")

    assert message.body.splitlines()[0] == "diagnosis: none (http://driver:9464: timed out)"


def test_a_query_that_has_recovered_meanwhile_has_no_cause_at_this_moment():
    message = compose(parse_webhook(webhook()), HEALTHY, NOW)

    assert message.body.splitlines()[1] == "cause: none found at this moment; status healthy, health 100"


def test_what_is_over_when_the_page_is_written_is_told_with_its_end():
    """An alert that waits for some minutes may begin when the trouble has just ended."""
    over = {**CAUSE, "until": "2026-03-01T09:59:20Z"}
    mild = {**CAUSE, "rule": "slow-sink", "severity": "info", "until": "2026-03-01T09:59:50Z"}
    lines = compose(parse_webhook(webhook()), {**HEALTHY, "ended_lately": [over, mild]}, NOW).body.splitlines()

    assert lines[1:4] == [
        "cause until 09:59:20 UTC: key-skew (confidence high): key 789087abc47c of customer_id has 80% of the rows",
        "now: nothing found; status healthy, health 100",
        "do first: salt the key (only splitting the key spreads its rows)",
    ]


def test_what_is_over_comes_before_a_milder_cause_of_now():
    over = {**CAUSE, "rule": "query-stuck", "severity": "critical", "until": "2026-03-01T10:02:00Z"}
    now = {**DIAGNOSIS, "ended_lately": [over]}
    lines = compose(parse_webhook(webhook()), now, NOW).body.splitlines()

    assert [line.split(" (")[0] for line in lines[1:3]] == ["cause until 10:02:00 UTC: query-stuck", "cause: key-skew"]


@pytest.mark.parametrize(
    ("rule", "named"), [("falling-behind", True), ("key-skew", True), ("source-unreachable", False), ("", True)]
)
def test_what_is_over_is_named_only_by_an_alert_that_it_explains(rule, named):
    given = alert()
    given["annotations"]["rule"] = rule
    over = {**CAUSE, "until": "2026-03-01T09:59:20Z"}
    found = compose(parse_webhook(webhook(given)), {**HEALTHY, "ended_lately": [over]}, NOW)

    assert ("cause until 09:59:20 UTC: key-skew" in found.body) is named


@pytest.mark.parametrize("diagnosis", [None, HEALTHY], ids=["no diagnosis", "no cause"])
def test_without_a_cause_the_first_step_is_that_of_the_alert(diagnosis):
    given = alert()
    given["annotations"]["first_step"] = "Check that the broker is up."

    assert "\ndo first: check that the broker is up\n" in compose(parse_webhook(webhook(given)), diagnosis, NOW).body
    assert "the broker is up" not in compose(parse_webhook(webhook(given)), DIAGNOSIS, NOW).body


def test_a_cause_of_now_that_is_as_severe_comes_before_what_is_over():
    now = {**DIAGNOSIS, "ended_lately": [{**CAUSE, "rule": "slow-sink", "until": "2026-03-01T10:02:00Z"}]}

    assert "slow-sink (" not in compose(parse_webhook(webhook()), now, NOW).body


QUERIES = ("orders", "payments", "refunds")
SHOP = {"job": "ledgerops", "app": "shop"}


def of_shop(query, name="LedgerSourceUnreachable", severity="critical", **other):
    labels = {"alertname": name, "severity": severity, "query": query, **SHOP}
    return alert(name, severity, query, labels=labels, **other)


def about_shop(alerts, diagnoses, **other):
    webhook_of_shop = webhook(*alerts, groupLabels=SHOP, commonLabels=SHOP, **other)
    given = {f"{query} of shop": diagnosis for query, diagnosis in diagnoses.items()}
    return message_module.compose(parse_webhook(webhook_of_shop), given, NOW)


def test_queries_with_one_cause_are_one_page_with_their_list():
    away = {**CAUSE, "rule": "source-unreachable", "summary": "broker kafka:9092 does not answer"}
    found = {query: {**DIAGNOSIS, "root_causes": [away]} for query in QUERIES}
    message = about_shop(map(of_shop, QUERIES), found)

    assert message.title == (
        "CRITICAL 3 queries of shop: A query falls behind its input (alert since 10:00:00 UTC, for 3 min)"
    )
    assert message.body.splitlines()[:4] == [
        "queries: orders, payments, refunds",
        "orders reads rows that are 3m old.",
        "cause of orders, payments, refunds: source-unreachable (confidence high): broker kafka:9092 does not answer",
        "do first: salt the key (only splitting the key spreads its rows)",
    ]


def test_queries_with_causes_of_their_own_have_a_line_each():
    causes = ("key-skew", "slow-sink", "straggler")
    found = {
        query: {**DIAGNOSIS, "root_causes": [{**CAUSE, "rule": rule}]}
        for query, rule in zip(QUERIES, causes, strict=True)
    }
    body = about_shop(map(of_shop, QUERIES), found).body

    assert [line.split(" (")[0] for line in body.splitlines() if line.startswith("cause")] == [
        "cause of orders: key-skew",
        "cause of payments: slow-sink",
        "cause of refunds: straggler",
    ]


def test_a_page_about_a_hundred_queries_names_eight_and_has_its_links():
    lines = about_shop([of_shop(f"query_{n:03}") for n in range(100)], {}).text.splitlines()

    assert lines[0].startswith("CRITICAL 100 queries of shop: ")
    assert "queries: " + ", ".join(f"query_{n:03}" for n in range(8)) + " and 92 more" in lines
    assert lines[-1].startswith("silence: ")


def test_when_the_worst_is_over_the_message_says_so_and_what_the_queries_do_now():
    over = {"status": "resolved", "endsAt": "2026-03-01T10:02:00Z"}
    alerts = [
        *(of_shop(query, **over) for query in QUERIES),
        *(of_shop(query, "LedgerTriggerOverrun", "warning") for query in QUERIES[:2]),
    ]
    busy = {**HEALTHY, "status": "catching_up", "forecast": {"drain_seconds": 240.0, "seconds_to_slo_breach": None}}
    message = about_shop(alerts, dict.fromkeys(QUERIES[:2], busy))

    assert message.title.startswith("WARNING 2 queries of shop, better: ")
    assert message.body.splitlines()[:2] == [
        "over since 10:02:00 UTC: A query falls behind its input (orders, payments, refunds; that alert lasted 2 min)",
        "now catching up, backlog clears in 4 min: orders, payments",
    ]


def test_when_what_goes_on_is_as_severe_the_message_says_what_is_over_and_not_that_it_is_better():
    over = {"status": "resolved", "endsAt": "2026-03-01T10:02:00Z"}
    ended = [of_shop("orders", "LedgerQueryDown", **over), of_shop("orders", "LedgerOverrun", "warning", **over)]
    message = about_shop([*ended, of_shop("orders", "LedgerQueryStuck")], {})

    assert message.title.startswith("CRITICAL orders of shop: ")
    assert [line for line in message.body.splitlines() if "over since" in line] == [
        "over since 10:02:00 UTC: A query falls behind its input (orders; that alert lasted 2 min)"
    ]


@pytest.mark.parametrize(
    "alerts",
    [
        pytest.param([("LedgerSourceUnreachable", "critical")], id="the same alert of another query"),
        pytest.param([("LedgerTriggerOverrun", "warning")], id="a milder one"),
    ],
)
def test_an_end_beside_what_goes_on_is_not_told_of(alerts):
    over = {"status": "resolved", "endsAt": "2026-03-01T10:02:00Z"}
    message = about_shop([of_shop("orders"), *(of_shop("payments", *each, **over) for each in alerts)], {})

    assert "over since" not in message.text


def test_the_end_of_several_says_of_each_what_became_of_it():
    over = {"status": "resolved", "endsAt": "2026-03-01T10:07:00Z"}
    known = {"orders": HEALTHY, "payments": HEALTHY, "refunds": {**HEALTHY, "status": "stopped"}}
    message = about_shop([of_shop(query, **over) for query in QUERIES], known, status="resolved")

    assert message.title.startswith("RESOLVED 3 queries of shop: ")
    assert message.body.splitlines()[:2] == ["now recovered: orders, payments", "now stopped: refunds"]


def test_the_end_names_what_it_was_where_the_first_message_knew_no_cause():
    over = {**CAUSE, "until": "2026-03-01T10:05:00Z"}
    message = compose(parse_webhook(resolved()), {**HEALTHY, "ended_lately": [over]}, NOW)

    assert "it was until 10:05:00 UTC: key-skew (confidence high): key 789087abc47c" in message.body


def test_the_end_does_not_name_what_began_after_it():
    later = {**CAUSE, "since": "2026-03-01T10:08:00Z", "until": "2026-03-01T10:09:00Z"}
    message = compose(parse_webhook(resolved()), {**HEALTHY, "ended_lately": [later]}, NOW)

    assert "it was" not in message.body


def test_what_was_over_long_before_an_alert_is_not_its_cause():
    over = {**CAUSE, "until": "2026-03-01T09:30:00Z"}
    message = compose(parse_webhook(webhook()), {**HEALTHY, "ended_lately": [over]}, NOW)

    assert "cause: none found at this moment" in message.body


def test_since_is_when_the_alert_that_is_named_began_and_not_one_that_is_over():
    over = alert("LedgerTriggerOverrun", "warning", status="resolved", startsAt="2026-03-01T09:30:00Z")
    milder = alert("LedgerFreshnessSlow", "warning", startsAt="2026-03-01T09:45:00Z")
    message = compose(parse_webhook(webhook(alert(), milder, over)), DIAGNOSIS, NOW)

    assert message.title.endswith("(alert since 10:00:00 UTC, for 3 min)")


def test_an_unsafe_remedy_is_the_first_thing_to_do_only_without_a_safe_one_and_is_marked():
    unsafe = {**DIAGNOSIS, "root_causes": [{**CAUSE, "remedies": CAUSE["remedies"][:1]}]}

    lines = compose(parse_webhook(webhook()), unsafe, NOW).body.splitlines()
    assert lines[2] == "do first (ask the owner before: this changes the job): drop the state (quick)"
    assert "drop the state" not in compose(parse_webhook(webhook()), DIAGNOSIS, NOW).text


def test_beside_a_step_that_only_prevents_a_loss_the_step_against_the_cause_is_said():
    keep = {
        "action": "raise retention.ms",
        "why": "4 s are left",
        "command": None,
        "safe": True,
        "prevents": "retention-risk",
    }
    cap = {"action": "raise the cap", "why": "it would keep up", "command": None, "safe": True, "prevents": None}
    lost = {**DIAGNOSIS, "root_causes": [{**CAUSE, "remedies": [keep, cap]}]}

    lines = compose(parse_webhook(webhook()), lost, NOW).body.splitlines()
    assert lines[2:4] == ["do first: raise retention.ms (4 s are left)", "then: raise the cap"]


def test_a_page_about_a_driver_silences_that_driver_and_one_about_several_the_alert():
    one, two = (unquote(about_drivers(*map(lost, numbers)).body.splitlines()[-1]) for numbers in ([1], [1, 2]))

    assert one.endswith('{alertname="LedgerDriverLost", job="ledgerops", instance="driver-001:9464"}')
    assert two.endswith('{alertname="LedgerDriverLost", job="ledgerops"}')


def test_the_end_says_how_long_it_took_and_what_changed():
    message = compose(parse_webhook(resolved()), HEALTHY, NOW, before=DIAGNOSIS)

    assert message.text.splitlines()[:3] == [
        "RESOLVED daily_counts: A query falls behind its input (recovered; the alert lasted 7 min)",
        "now: healthy, health 100",
        "gone: key-skew",
    ]


@pytest.mark.parametrize(
    ("diagnosis", "outcomes", "said"),
    [
        pytest.param({**HEALTHY, "status": "stopped"}, (), "stopped", id="a query that was stopped"),
        pytest.param({**HEALTHY, "status": "catching_up"}, (), "catching up", id="a query that catches up"),
        pytest.param(DIAGNOSIS, (), "key-skew is still active", id="a cause that goes on"),
        pytest.param(None, ("lost, not seen again since 10:01:00 UTC",), "lost, not seen again since", id="lost"),
        pytest.param(None, ("replaced: a:1 runs b",), "replaced: a:1 runs b", id="replaced"),
    ],
)
def test_the_end_of_an_alert_is_not_called_a_recovery_where_it_is_none(diagnosis, outcomes, said):
    message = compose(parse_webhook(resolved()), diagnosis, NOW, "no exporter is configured", outcomes=outcomes)

    assert f"its input ({said}" in message.title and message.title.endswith("the alert lasted 7 min)")
    assert "recovered" not in message.text and "diagnosis: none" not in message.text


def test_without_prometheus_and_driver_the_end_claims_nothing():
    message = compose(parse_webhook(resolved()), None, NOW, "no driver answered", outcomes=("",))

    assert message.title.endswith("(the alert lasted 7 min)")
    assert message.body.splitlines()[0] == "diagnosis: none (no driver answered)"


def test_a_cause_that_is_still_active_is_named_at_the_end():
    message = compose(parse_webhook(resolved()), DIAGNOSIS, NOW, before=DIAGNOSIS)

    assert "still active: key-skew" in message.text


def test_a_page_is_never_longer_than_a_screen():
    alerts = [alert(f"Ledger{n:03}") for n in range(200)]
    causes = [{**CAUSE, "summary": "x" * 5000} for _ in range(9)]

    lines = compose(parse_webhook(webhook(*alerts)), {**DIAGNOSIS, "root_causes": causes}, NOW).text.splitlines()

    assert len(lines) <= MAX_LINES and max(map(len, lines)) <= MAX_LINE_CHARACTERS


@pytest.mark.parametrize(
    "text", ["all well.\nRESOLVED daily_counts: over", "all well.\r\u2028RESOLVED daily_counts: over"]
)
def test_a_text_adds_no_line_of_its_own(text):
    given = alert(annotations={"summary": text, "description": text})

    lines = compose(parse_webhook(webhook(given)), None, NOW, text).text.splitlines()

    assert [line for line in lines if line.startswith("RESOLVED")] == []
    assert lines[0].startswith("CRITICAL daily_counts: all well. RESOLVED daily_counts: over (alert since")
    assert len(lines) == 4


def test_what_cannot_be_printed_is_not_sent():
    given = alert(annotations={"summary": "red \x1b[31m and \u202e back", "description": ""})

    assert "red ?[31m and ? back" in compose(parse_webhook(webhook(given)), None, NOW).title


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("ask @everyone", "ask @ everyone"),
        ("@Channel: down", "@ Channel: down"),
        ("<!here> <@U123> <#C1>", "< !here> < @U123> < #C1>"),
        ("[runbook](http://evil.example)", "[runbook] (http://evil.example)"),
        ("![](http://evil.example/x.png)", "![] (http://evil.example/x.png)"),
        pytest.param("mail ops@example.com, x@hereford", "mail ops@example.com, x@hereford", id="addresses of mail"),
        pytest.param("rows[3] (of 5) < 7 @ 10", "rows[3] (of 5) < 7 @ 10", id="usual text"),
    ],
)
def test_a_text_calls_nobody_and_hides_no_address(text, sent):
    given = alert(labels={"alertname": "A", "query": text}, annotations={"summary": text, "description": text})
    message = compose(parse_webhook(webhook(given)), None, NOW, text)

    assert message.title.startswith(f"WARNING {sent}: {sent} (alert since ")
    assert message.body.splitlines()[:2] == [f"diagnosis: none ({sent})", sent]


def test_less_than_nothing_left_out_is_nothing():
    assert " more" not in about_drivers(lost(1), truncatedAlerts=-7).body
