from urllib.parse import unquote

import pytest

from ledgerops.notify import message as message_module
from ledgerops.notify.incident import parse_webhook
from ledgerops.notify.message import MAX_LINE_CHARACTERS, MAX_LINES
from tests.notify.build import CAUSE, DIAGNOSIS, HEALTHY, OVER, alert, resolved, webhook
from tests.tables import cases

NOW = 1772359200.0 + 180
KEY_SKEW = "key-skew (confidence high): key 789087abc47c of customer_id has 80% of the rows"
SALT = "do first: salt the key (only splitting the key spreads its rows)"
OVER_AT_2 = {"status": "resolved", "endsAt": "2026-03-01T10:02:00Z"}


def compose(received, diagnosis=None, trouble=None, before=None, outcome=None):
    """The message about one query or driver."""
    incident = parse_webhook(received)

    def of(known):
        return {incident.worst.about: known} if known else {}

    return message_module.compose(incident, of(diagnosis), NOW, trouble, of(before), of(outcome))


def caused_by(**changes):
    """The diagnosis of a query with another cause."""
    return {**DIAGNOSIS, "root_causes": [{**CAUSE, **changes}]}


def begun(message, *words):
    """The lines of the body that begin with one of these words."""
    return [line for line in message.body.splitlines() if line.startswith(words)]


def test_a_page_says_what_since_when_why_and_what_to_do():
    message = compose(webhook(alert(), alert("LedgerTriggerOverrun", "warning")), DIAGNOSIS)

    assert message.text.splitlines() == [
        "CRITICAL daily_counts: A query falls behind its input (alert since 10:00:00 UTC, for 3 min)",
        "reads rows that are 3m old.",
        f"cause: {KEY_SKEW}",
        SALT,
        "ruled out: slow-sink",
        "also firing: LedgerTriggerOverrun",
        "runbook: https://example.com/runbooks/LedgerFallingBehind.md",
        "dashboard: https://example.com/d/ledgerops-query",
        "silence: http://alertmanager:9093/#/silences/new?filter=%7Bjob%3D%22ledgerops%22%2C%20query%3D%22daily_counts%22%7D",
    ]


def test_the_exception_that_ended_a_query_is_in_the_first_line_and_nowhere_else():
    why = "the query failed after batch 17 (FOREACH_BATCH_USER_FUNCTION_ERROR): OSError: disk quota exceeded"
    message = compose(webhook(), caused_by(rule="query-failed", summary=why))

    assert message.title == f"CRITICAL daily_counts: {why} (alert since 10:00:00 UTC, for 3 min)"
    assert message.body.splitlines()[:2] == ["cause: query-failed (confidence high)", SALT]


def test_a_page_names_the_application_of_the_query_and_silences_only_that():
    labels = {"job": "ledgerops", "app": "billing", "query": "daily_counts"}
    found = compose(webhook(groupLabels=labels, commonLabels=labels), DIAGNOSIS)

    assert found.title.startswith("CRITICAL daily_counts of billing: ")
    silence = found.body.splitlines()[-1]
    assert unquote(silence).endswith('?filter={job="ledgerops", app="billing", query="daily_counts"}')


@pytest.mark.parametrize(
    ("labels", "subject"), [({"job": "ledgerops"}, "CRITICAL ledgerops: "), ({}, "CRITICAL: ")], ids=["job", "nothing"]
)
def test_a_page_about_no_query_names_the_job_where_it_is_known(labels, subject):
    about_none = alert(labels={"alertname": "LedgerExporterAbsent", "severity": "critical", **labels})

    assert compose(webhook(about_none, groupLabels=labels, commonLabels=labels)).title.startswith(subject)


def test_a_page_names_its_one_query_also_where_the_group_had_others():
    found = about_shop([of_shop("orders"), of_shop("payments", **OVER_AT_2)])

    assert found.title.startswith("CRITICAL orders of shop: ")


def lost(number, name="LedgerDriverLost", **other):
    labels = {"alertname": name, "severity": "critical", "job": "ledgerops", "instance": f"driver-{number:03}:9464"}
    return {**alert(labels={**labels, **other}), "fingerprint": f"{name} {number}"}


def about_drivers(*alerts, **other):
    labels = {"job": "ledgerops"}
    return compose(webhook(*alerts, groupLabels=labels, commonLabels=labels, **other))


def test_a_page_about_many_drivers_counts_them_and_names_the_first():
    lines = about_drivers(*map(lost, range(250))).body.splitlines()

    first = ", ".join(f"driver-{number:03}:9464" for number in range(1, 9))
    assert lines[1] == f"driver-000:9464 and 249 more: {first}, ..."
    assert not any(line.startswith("also firing") for line in lines)


def test_drivers_are_named_by_their_application_where_it_is_known():
    assert "shop and 1 more: warehouse" in about_drivers(lost(1, app="shop"), lost(2, app="warehouse")).body


def test_other_alerts_are_named_after_them():
    body = about_drivers(lost(1), lost(2), lost(3, "LedgerTargetDown")).body

    assert "driver-001:9464 and 1 more: driver-002:9464\nalso firing: LedgerTargetDown" in body


def test_a_query_of_many_applications_is_counted():
    common = {"job": "ledgerops", "query": "orders"}
    alerts = [alert(labels={**common, "alertname": "LedgerQueryStuck", "app": f"app-{n}"}) for n in range(3)]
    page = compose(webhook(*alerts, groupLabels=common, commonLabels=common))

    assert page.title.startswith("WARNING 3 queries: ")
    assert "queries: orders of app-0, orders of app-1, orders of app-2" in page.body.splitlines()


def test_links_are_whole_however_long():
    address = "https://graphs.example.com/d/ledgerops-query?var-query=" + "%E6%97%A5" * 60
    page = compose(webhook(alert(annotations={"dashboard_url": address})))

    assert f"dashboard: {address}" in page.body.splitlines()


def test_the_first_line_is_of_the_worst_alert_also_where_only_another_query_is_known():
    incident = parse_webhook(webhook(alert("LedgerQueryDown", query="a"), alert("LedgerQueryFailed", query="b")))
    failed = caused_by(rule="query-failed", summary="the query failed after batch 17")

    assert "the query failed" not in message_module.compose(incident, {"b": failed}, NOW).title


@cases(
    "message",
    ("one driver", about_drivers(lost(1))),
    ("one query", compose(webhook(alert(), alert()))),
)
def test_a_page_about_one_driver_or_one_query_counts_nothing(message):
    assert " more" not in message.body


def test_without_a_diagnosis_the_page_says_why():
    message = compose(webhook(), trouble="http://driver:9464: timed out")

    assert message.body.splitlines()[0] == "diagnosis: none (http://driver:9464: timed out)"


NOTHING = "cause: none found at this moment; status healthy, health 100"


def until(instant, **changes):
    return {**CAUSE, **changes, "until": f"2026-03-01T{instant}Z"}


@cases(
    "diagnosis, ended, lines",
    ("it has recovered meanwhile", HEALTHY, [], [NOTHING]),
    ("what is over when the page is written", HEALTHY,
     [until("09:59:20"), until("09:59:50", rule="slow-sink", severity="info")],
     [f"cause until 09:59:20 UTC: {KEY_SKEW}", "now: nothing found; status healthy, health 100", SALT]),
    ("what was over long before the alert", HEALTHY, [until("09:30:00")], [NOTHING]),
    ("what is over and worse than the cause of now", DIAGNOSIS,
     [until("10:02:00", rule="query-stuck", severity="critical")],
     [f"cause until 10:02:00 UTC: query-stuck{KEY_SKEW.removeprefix('key-skew')}", f"cause: {KEY_SKEW}", SALT]),
    ("what is over and as severe as the cause of now", DIAGNOSIS, [until("10:02:00", rule="slow-sink")],
     [f"cause: {KEY_SKEW}", SALT]),
)  # fmt: skip
def test_a_page_names_causes_of_now_and_those_that_are_just_over(diagnosis, ended, lines):
    """An alert that waits for some minutes may begin when the trouble has just ended."""
    message = compose(webhook(), {**diagnosis, "ended_lately": ended})

    assert begun(message, "cause", "now", "do first") == lines


@pytest.mark.parametrize(
    ("rule", "named"), [("falling-behind", True), ("key-skew", True), ("source-unreachable", False), ("", True)]
)
def test_what_is_over_is_named_only_by_an_alert_that_it_explains(rule, named):
    given = alert()
    given["annotations"]["rule"] = rule
    found = compose(webhook(given), {**HEALTHY, "ended_lately": [until("09:59:20")]})

    assert ("cause until 09:59:20 UTC: key-skew" in found.body) is named


@cases(
    "diagnosis, step",
    ("no diagnosis", None, "do first: check that the broker is up"),
    ("no cause", HEALTHY, "do first: check that the broker is up"),
    ("a cause", DIAGNOSIS, SALT),
)
def test_without_a_cause_the_first_step_is_that_of_the_alert(diagnosis, step):
    given = alert()
    given["annotations"]["first_step"] = "Check that the broker is up."
    message = compose(webhook(given), diagnosis)

    assert begun(message, "do first") == [step]
    assert message.body.count("the broker is up") == step.count("the broker is up")


QUERIES = ("orders", "payments", "refunds")
SHOP = {"job": "ledgerops", "app": "shop"}


def of_shop(query, name="LedgerSourceUnreachable", severity="critical", **other):
    labels = {"alertname": name, "severity": severity, "query": query, **SHOP}
    return alert(name, severity, query, labels=labels, **other)


def about_shop(alerts, diagnoses=(), **other):
    incident = parse_webhook(webhook(*alerts, groupLabels=SHOP, commonLabels=SHOP, **other))
    given = {f"{query} of shop": diagnosis for query, diagnosis in dict(diagnoses).items()}
    return message_module.compose(incident, given, NOW)


def test_queries_with_one_cause_are_one_page_with_their_list():
    away = caused_by(rule="source-unreachable", summary="broker kafka:9092 does not answer")
    message = about_shop(map(of_shop, QUERIES), dict.fromkeys(QUERIES, away))

    assert message.title == (
        "CRITICAL 3 queries of shop: A query falls behind its input (alert since 10:00:00 UTC, for 3 min)"
    )
    assert message.body.splitlines()[:4] == [
        "queries: orders, payments, refunds",
        "orders reads rows that are 3m old.",
        "cause of orders, payments, refunds: source-unreachable (confidence high): broker kafka:9092 does not answer",
        SALT,
    ]


def test_queries_with_causes_of_their_own_have_a_line_each():
    causes = zip(QUERIES, ("key-skew", "slow-sink", "straggler"), strict=True)
    message = about_shop(map(of_shop, QUERIES), {query: caused_by(rule=rule) for query, rule in causes})

    assert [line.split(" (")[0] for line in begun(message, "cause")] == [
        "cause of orders: key-skew",
        "cause of payments: slow-sink",
        "cause of refunds: straggler",
    ]


def test_a_page_about_a_hundred_queries_names_eight_and_has_its_links():
    lines = about_shop([of_shop(f"query_{n:03}") for n in range(100)]).text.splitlines()

    assert lines[0].startswith("CRITICAL 100 queries of shop: ")
    assert "queries: " + ", ".join(f"query_{n:03}" for n in range(8)) + " and 92 more" in lines
    assert lines[-1].startswith("silence: ")


def test_when_the_worst_is_over_the_message_says_so_and_what_the_queries_do_now():
    alerts = [of_shop(query, **OVER_AT_2) for query in QUERIES]
    alerts += [of_shop(query, "LedgerTriggerOverrun", "warning") for query in QUERIES[:2]]
    busy = {**HEALTHY, "status": "catching_up", "forecast": {"drain_seconds": 240.0, "seconds_to_slo_breach": None}}
    message = about_shop(alerts, dict.fromkeys(QUERIES[:2], busy))

    assert message.title.startswith("WARNING 2 queries of shop, better: ")
    assert message.body.splitlines()[:2] == [
        "over since 10:02:00 UTC: A query falls behind its input (orders, payments, refunds; that alert lasted 2 min)",
        "now catching up, backlog clears in 4 min: orders, payments",
    ]


@cases(
    "ended, lines",
    (
        "another alert of the query that is as severe, and a milder one",
        [("orders", "LedgerQueryDown"), ("orders", "LedgerOverrun", "warning")],
        ["over since 10:02:00 UTC: A query falls behind its input (orders; that alert lasted 2 min)"],
    ),
    ("the same alert of another query", [("payments", "LedgerQueryStuck")], []),
    ("a milder one of another query", [("payments", "LedgerTriggerOverrun", "warning")], []),
)
def test_beside_what_goes_on_is_said_what_is_over_and_not_that_it_is_better(ended, lines):
    message = about_shop([*(of_shop(*each, **OVER_AT_2) for each in ended), of_shop("orders", "LedgerQueryStuck")])

    assert message.title.startswith("CRITICAL orders of shop: ")
    assert [line for line in message.text.splitlines() if "over since" in line] == lines


def test_the_end_of_several_says_of_each_what_became_of_it():
    known = {"orders": HEALTHY, "payments": HEALTHY, "refunds": {**HEALTHY, "status": "stopped"}}
    message = about_shop([of_shop(query, **OVER) for query in QUERIES], known, status="resolved")

    assert message.title.startswith("RESOLVED 3 queries of shop: ")
    assert message.body.splitlines()[:2] == ["now recovered: orders, payments", "now stopped: refunds"]


@cases(
    "ended, lines",
    ("what was there", until("10:05:00"), [f"it was until 10:05:00 UTC: {KEY_SKEW}"]),
    ("what began after it", until("10:09:00", since="2026-03-01T10:08:00Z"), []),
)
def test_the_end_names_what_it_was_where_the_first_message_knew_no_cause(ended, lines):
    message = compose(resolved(), {**HEALTHY, "ended_lately": [ended]})

    assert begun(message, "it was") == lines


def test_since_is_when_the_alert_that_is_named_began_and_not_one_that_is_over():
    over = alert("LedgerTriggerOverrun", "warning", status="resolved", startsAt="2026-03-01T09:30:00Z")
    milder = alert("LedgerFreshnessSlow", "warning", startsAt="2026-03-01T09:45:00Z")

    assert compose(webhook(alert(), milder, over)).title.endswith("(alert since 10:00:00 UTC, for 3 min)")


KEEP = {"action": "raise retention.ms", "why": "4 s are left", "safe": True, "prevents": "retention-risk"}
CAP = {"action": "raise the cap", "why": "it would keep up", "safe": True, "prevents": None}


@cases(
    "remedies, lines",
    ("only an unsafe one", CAUSE["remedies"][:1],
     ["do first (ask the owner before: this changes the job): drop the state (quick)"]),
    ("an unsafe one, then a safe one", CAUSE["remedies"], [SALT]),
    ("one that only prevents a loss, and one against the cause", [{**KEEP, "command": None}, {**CAP, "command": None}],
     ["do first: raise retention.ms (4 s are left)", "then: raise the cap"]),
)  # fmt: skip
def test_the_first_thing_to_do_is_safe_where_it_can_be(remedies, lines):
    message = compose(webhook(), caused_by(remedies=remedies))

    assert message.body.splitlines()[2 : 2 + len(lines)] == lines
    assert begun(message, "do first", "then") == lines and message.body.count("drop the state") == ("drop" in lines[0])


def test_a_page_about_a_driver_silences_that_driver_and_one_about_several_the_alert():
    one, two = (unquote(about_drivers(*map(lost, numbers)).body.splitlines()[-1]) for numbers in ([1], [1, 2]))

    assert one.endswith('{alertname="LedgerDriverLost", job="ledgerops", instance="driver-001:9464"}')
    assert two.endswith('{alertname="LedgerDriverLost", job="ledgerops"}')


def test_the_end_says_how_long_it_took_and_what_changed():
    message = compose(resolved(), HEALTHY, before=DIAGNOSIS)

    assert message.text.splitlines()[:3] == [
        "RESOLVED daily_counts: A query falls behind its input (recovered; the alert lasted 7 min)",
        "now: healthy, health 100",
        "gone: key-skew",
    ]


@cases(
    "diagnosis, outcome, said",
    ("a query that was stopped", {**HEALTHY, "status": "stopped"}, None, "stopped"),
    ("a query that catches up", {**HEALTHY, "status": "catching_up"}, None, "catching up"),
    ("a cause that goes on", DIAGNOSIS, None, "key-skew is still active"),
    ("lost", None, "lost, not seen again since 10:01:00 UTC", "lost, not seen again since"),
    ("replaced", None, "replaced: a:1 runs b", "replaced: a:1 runs b"),
)
def test_the_end_of_an_alert_is_not_called_a_recovery_where_it_is_none(diagnosis, outcome, said):
    message = compose(resolved(), diagnosis, "no exporter is configured", outcome=outcome)

    assert f"its input ({said}" in message.title and message.title.endswith("the alert lasted 7 min)")
    assert "recovered" not in message.text and "diagnosis: none" not in message.text


def test_without_prometheus_and_driver_the_end_claims_nothing():
    message = compose(resolved(), trouble="no driver answered")

    assert message.title.endswith("(the alert lasted 7 min)")
    assert message.body.splitlines()[0] == "diagnosis: none (no driver answered)"


def test_a_cause_that_is_still_active_is_named_at_the_end():
    assert "still active: key-skew" in compose(resolved(), DIAGNOSIS, before=DIAGNOSIS).text


def test_a_page_is_never_longer_than_a_screen():
    alerts = [alert(f"Ledger{n:03}") for n in range(200)]
    causes = [{**CAUSE, "summary": "x" * 5000}] * 9
    lines = compose(webhook(*alerts), {**DIAGNOSIS, "root_causes": causes}).text.splitlines()

    assert len(lines) <= MAX_LINES and max(map(len, lines)) <= MAX_LINE_CHARACTERS


@pytest.mark.parametrize(
    "text", ["all well.\nRESOLVED daily_counts: over", "all well.\r\u2028RESOLVED daily_counts: over"]
)
def test_a_text_adds_no_line_of_its_own(text):
    given = alert(annotations={"summary": text, "description": text})
    lines = compose(webhook(given), trouble=text).text.splitlines()

    assert [line for line in lines if line.startswith("RESOLVED")] == []
    assert lines[0].startswith("CRITICAL daily_counts: all well. RESOLVED daily_counts: over (alert since")
    assert len(lines) == 4


def test_what_cannot_be_printed_is_not_sent():
    given = alert(annotations={"summary": "red \x1b[31m and \u202e back", "description": ""})

    assert "red ?[31m and ? back" in compose(webhook(given)).title


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
    message = compose(webhook(given), trouble=text)

    assert message.title.startswith(f"WARNING {sent}: {sent} (alert since ")
    assert message.body.splitlines()[:2] == [f"diagnosis: none ({sent})", sent]
