import email
import json
import logging
import ssl
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ledgerops.common.credentials import Secrets
from ledgerops.common.deadline import OneAtATime
from ledgerops.common.http_access import Rules
from ledgerops.mixin.site import Site
from ledgerops.notify import service as service_module
from ledgerops.notify import spool as spool_module
from ledgerops.notify.incident import parse_webhook
from ledgerops.notify.lookup import Lookup
from ledgerops.notify.message import compose
from ledgerops.notify.senders import Webhook, open_senders
from ledgerops.notify.service import MAX_BYTES, Service
from ledgerops.servers.process import answers
from tests.certificates import authority, certificate_of
from tests.hostile import dripping_server
from tests.monitoring import Alertmanager
from tests.notify.build import DIAGNOSIS, HEALTHY, KNOWN, OVER, alert, instances, resolved, webhook
from tests.notify.receiver import Mailbox
from tests.programs import until
from tests.refusals import refusal_of
from tests.tables import cases


@pytest.fixture
def local(tmp_path):
    """Rules of a service on loopback that wants the token t3mp, which is in a file."""
    (tmp_path / "token").write_text("t3mp\n")
    return Rules(host="127.0.0.1", token_file=str(tmp_path / "token"))


def asked(url, body=None, token=None, scheme="Bearer"):
    """Status and text of the answer."""
    request = urllib.request.Request(url, body, {"Authorization": f"{scheme} {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()


def post(service, payload=None, token=None, path="/alerts"):
    body = payload if isinstance(payload, bytes) else json.dumps(payload or webhook()).encode()
    return asked(f"{service.url}{path}", body, token)


def post_each(service, *payloads):
    """Each is taken, and what it asks for is sent before the next one comes."""
    for payload in payloads:
        assert post(service, payload)[0] == 200
        until(lambda: service.waiting() == 0, 60, "an empty queue")


def sent(receiver, count=1):
    """What was sent, once there are so many messages."""
    until(lambda: len(receiver.got) >= count, 60, f"{count} messages")
    return receiver.got


def test_an_alert_becomes_a_message_with_its_cause(notify, receiver, driver):
    driver.pages["/diagnosis"] = KNOWN

    assert post(notify(lookup=Lookup(exporters=["http://127.0.0.1:9", driver.url]))) == (200, "accepted")

    [message] = sent(receiver)
    assert "cause: key-skew (confidence high)" in message["body"]
    assert (message["severity"], message["resolved"]) == ("critical", False)


def test_the_driver_is_found_through_prometheus(notify, receiver, driver, tmp_path):
    (tmp_path / "token").write_text("secret")
    driver.pages |= {"/diagnosis": KNOWN, "/api/v1/query": instances(driver.url.removeprefix("http://"))}

    post(notify(lookup=Lookup(prometheus=driver.url, secrets=Secrets(token_file=str(tmp_path / "token")))))

    assert "cause: key-skew" in sent(receiver)[0]["body"]
    assert driver.authorization == ["", "Bearer secret"]


def test_a_repeated_delivery_is_no_second_page(notify, receiver):
    service = notify()

    first, second = post(service), post(service)
    sent(receiver)
    post(service, webhook(alert("LedgerOther")))

    assert len(sent(receiver, 2)) == 2
    assert (first, second) == ((200, "accepted"), (200, "nothing new"))


def test_an_incident_is_told_when_it_begins_when_the_worst_is_over_and_when_all_is(notify, receiver):
    """Alertmanager sends every change of the group; a ticket that joins a page is none to be told."""
    page, ticket = alert("LedgerSourceUnreachable"), alert("LedgerTriggerOverrun", "warning")
    states = ([page], [page, ticket], [page | OVER, ticket], [ticket])
    post_each(notify(), *(webhook(*alerts) for alerts in states), webhook(ticket | OVER, status="resolved"))

    assert [message["title"].split(":")[0] for message in receiver.got] == [
        "CRITICAL daily_counts",
        "WARNING daily_counts, better",
        "RESOLVED daily_counts",
    ]
    assert (
        receiver.got[1]["body"]
        .splitlines()[1]
        .startswith("over since 10:07:00 UTC: A query falls behind its input (daily_counts; that alert lasted 7 min)")
    )


def test_an_end_of_an_earlier_incident_is_not_told_again(notify, receiver):
    """Prometheus repeats it for a quarter of an hour, and so it is in the group of the next incident."""
    later = {"startsAt": "2026-03-01T10:10:00Z", "annotations": {"summary": "A driver stopped answering."}}
    stuck, lost = alert("LedgerQueryStuck"), alert("LedgerDriverLost", query="", **later)
    ended = lost | OVER | {"endsAt": "2026-03-01T10:12:00Z"}
    states = ([stuck], [stuck | OVER], [stuck | OVER, lost], [stuck | OVER, ended])
    post_each(notify(), *(webhook(*alerts) for alerts in states))

    _, end, page, last = receiver.got
    assert "A query falls behind" in end["title"]
    assert "A driver stopped answering" in page["title"]
    assert "over since" not in page["body"]
    assert "A driver stopped answering" in last["title"]
    assert "the alert lasted 2 min" in last["title"]


@pytest.mark.parametrize("number", [2, 3])
def test_an_end_is_told_once_however_often_it_comes(notify, receiver, number):
    earlier = alert(**OVER | {"endsAt": "2026-03-01T10:01:00Z"})
    page = alert("LedgerOther", startsAt="2026-03-01T10:02:00Z")
    post_each(notify(), webhook(page, earlier), *[webhook(earlier, page | OVER)] * number)

    assert [message["resolved"] for message in receiver.got] == [False, True]


def test_an_end_takes_the_place_of_a_beginning_that_nobody_heard_of(notify, receiver, caplog):
    now = time.time()  # stands still: the next attempt never comes
    receiver.refuse = 1
    service = notify(clock=lambda: now)
    post(service)
    until(lambda: "next attempt in 5 s" in caplog.text, 60, "the end of the refused attempt")
    post_each(service, resolved())

    assert [message["resolved"] for message in receiver.got] == [True]


@cases(
    "cause, why",
    ("nonsense", {"rule": "x"}, "the driver returned an invalid diagnosis"),
    ("a huge number", {**DIAGNOSIS["root_causes"][0], "confidence": 10**400}, "a number that is too large"),
)
def test_a_driver_that_answers_what_no_diagnosis_has_costs_the_diagnosis_only(notify, receiver, driver, cause, why):
    driver.pages["/diagnosis"] = {"queries": [{**DIAGNOSIS, "root_causes": [cause]}]}

    post(notify(lookup=Lookup(exporters=[driver.url])))

    [first, *_] = sent(receiver)[0]["body"].splitlines()
    assert first.startswith("diagnosis: none (") and why in first


def test_a_sender_that_fails_is_asked_again_and_the_others_are_not(notify, receiver, driver, monkeypatch):
    monkeypatch.setattr(spool_module, "BACKOFF_SECONDS", (0.05,))
    receiver.refuse = 2

    post_each(notify(open_senders([receiver.url, driver.url])), webhook())

    assert (len(receiver.got), receiver.refused, len(driver.got)) == (1, 2, 1)


def test_a_sender_that_never_delivers_holds_up_no_other(notify, receiver, driver):
    driver.refuse = 1_000_000
    service = notify(open_senders([driver.url, receiver.url]))

    for number, payload in enumerate((webhook(), webhook(alert(), alert("LedgerOther")), resolved()), 1):
        assert post(service, payload) == (200, "accepted")
        sent(receiver, number)

    assert [message["resolved"] for message in receiver.got] == [False, False, True]
    assert driver.got == []
    assert service.waiting() == 1, "the latest state of the group waits for the one that fails"


def test_the_end_of_an_incident_says_what_changed(notify, receiver, driver):
    driver.pages["/diagnosis"] = KNOWN
    service = notify(lookup=Lookup(exporters=[driver.url]))
    post_each(service, webhook())
    driver.pages["/diagnosis"] = {"version": 1, "queries": [HEALTHY]}
    post_each(service, resolved())

    _, end = receiver.got
    assert end["resolved"] is True
    assert "now: healthy, health 100\ngone: key-skew" in end["body"]


@pytest.mark.parametrize(
    ("path", "body", "token", "answer"),
    [
        ("/alerts", b"{", "t", (400, "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)")),
        ("/alerts", b"[]", "t", (400, "not a webhook of Alertmanager: expected a JSON object")),
        ("/alerts", b"[" * 100_000, "t", (400, None)),
        ("/alerts", webhook(groupKey="\ud800"), "t", (400, None)),
        ("/alerts", webhook(truncatedAlerts="many"), "t", (400, None)),
        ("/alerts", b"x" * (MAX_BYTES + 1), "t", (413, f"at most {MAX_BYTES} bytes")),
        ("/alerts", b"{}", None, (401, "credentials are required")),
        ("/alerts", b"{}", "wrong", (401, "credentials are required")),
        ("/other", b"{}", "t", (404, "POST to /alerts")),
    ],
)
def test_bad_requests_are_told_and_nothing_is_queued(notify, path, body, token, answer):
    service = notify(rules=Rules(host="127.0.0.1", token="t"))

    status, text = post(service, body, token, path)

    assert (status, text) == (answer[0], answer[1] or text)
    assert service.waiting() == 0


@pytest.fixture
def mailbox():
    made = Mailbox()
    yield made
    made.close()


def test_mail_goes_through_a_real_smtp_server(notify, mailbox):
    post(notify(open_senders([mailbox.url])))

    [envelope] = until(lambda: mailbox.got, 60, "the mail")
    assert envelope.rcpt_tos == ["oncall@example.com"]
    assert b"CRITICAL daily_counts" in envelope.content


def test_markup_in_an_alert_reaches_nobody_as_markup(notify, mailbox):
    annotations = {"summary": "Slow.", "description": "<img src=http://evil.example/x>"}
    post(notify(open_senders([f"{mailbox.url}&format=html"])), webhook(alert(annotations=annotations)))

    [envelope] = until(lambda: mailbox.got, 60, "the mail")
    parts = email.message_from_bytes(envelope.content).walk()
    [html] = [each.get_payload(decode=True) for each in parts if each.get_content_type() == "text/html"]
    assert b"evil.example" in html
    assert b"<img" not in html


@pytest.fixture
def alerted(notify, tmp_path):
    """Sends alerts to a real Alertmanager with the generated configuration; its messages go to the receiver."""
    waits = {"group_wait": "1s", "group_interval": "1s"}
    server = Alertmanager(tmp_path / "am", f"{notify().url}/alerts", Site(), waits)

    def send(*alerts):
        body = json.dumps([{"labels": each["labels"], "annotations": each["annotations"]} for each in alerts]).encode()
        url = f"http://{server.address}/api/v2/alerts"
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=60).close()

    yield send
    server.close()


def test_alertmanager_routes_by_the_generated_configuration(alerted, receiver):
    """A page arrives; a ticket, the watchdog and what another alert explains do not."""
    told_nobody = alert("LedgerFallingBehind"), alert("LedgerKeySkew", "info"), alert("LedgerWatchdog", "info")
    alerted(alert("LedgerQueryStuck"), *told_nobody)

    [page] = sent(receiver)
    assert page["title"].startswith("CRITICAL daily_counts:")
    assert "LedgerFallingBehind" not in page["body"].split("runbook")[0]
    assert "LedgerQueryStuck.md" in page["body"]


def of_app(app, query, name, severity="critical"):
    labels = {"alertname": name, "severity": severity, "job": "ledgerops", "app": app}
    return alert(name, severity, labels={**labels, **({"query": query} if query else {"instance": f"{app}:9464"})})


@cases(
    "alerts, titles",
    ("a broker that is away", [of_app("shop", query, "LedgerSourceUnreachable") for query in "abc"],
     ["CRITICAL 3 queries of shop"]),
    ("a host without a free core", [of_app("shop", query, "LedgerTriggerOverrun", "warning") for query in "abc"],
     ["WARNING 3 queries of shop"]),
    ("a full disk", [of_app("shop", query, "LedgerQueryFailed") for query in "abc"], ["CRITICAL 3 queries of shop"]),
    ("a cluster without executors",
     [*(of_app("shop", query, "LedgerQueryStuck") for query in "ab"), of_app("shop", "c", "LedgerFallingBehind")],
     ["CRITICAL 3 queries of shop"]),
    ("a driver", [of_app("shop", "", "LedgerDriverLost"), of_app("shop", "", "LedgerTargetDown", "warning")],
     ["CRITICAL shop"]),
    ("two applications have a page each", [of_app(app, "a", "LedgerQueryStuck") for app in ("shop", "depot")],
     ["CRITICAL a of depot", "CRITICAL a of shop"]),
    ("a query of one application and the driver of another",
     [of_app("shop", "a", "LedgerFallingBehind"), of_app("depot", "", "LedgerDriverLost")],
     ["CRITICAL a of shop", "CRITICAL depot"]),
)  # fmt: skip
def test_what_an_application_has_in_common_is_one_page_and_nothing_else_is(alerted, receiver, alerts, titles):
    alerted(*alerts)

    sent(receiver, len(titles))
    time.sleep(1.5)  # another group interval: what came apart would have arrived
    assert sorted(message["title"].split(":")[0] for message in receiver.got) == titles


NO_WEBHOOK = "cannot send to sender 1: a webhook is http://HOST/PATH or https://HOST/PATH"
NO_URL = "cannot send to sender 1: not a URL; give one such as mailto://USER@HOST or https://HOST/PATH"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp-nonsense://x", "apprise does not support the ftp-nonsense:// URL of sender 1; see its list of services"),
        ("http://", NO_WEBHOOK),
        ("https://user:s3cret@/x", NO_WEBHOOK),
        ("http://[s3cret", NO_WEBHOOK),
        ("http://host:99999/s3cret", NO_WEBHOOK),
        ("xoxb-s3cret", NO_URL),
        ("mailto:user:s3cret@example.com", NO_URL),
        ("htps//user:s3cret@example.com", NO_URL),
        ("s3cret!://x", NO_URL),
    ],
)
def test_a_sender_that_makes_no_sense_is_refused_without_its_secrets(url, message):
    assert refusal_of(open_senders, [url]) == message


def figures(service):
    """The samples of /metrics by name and label value."""
    status, text = asked(f"{service.url}/metrics")
    assert status == 200
    return {
        (sample.name.removeprefix("ledgerops_notify_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_its_own_metrics_tell_senders_that_deliver_from_those_that_do_not(notify, receiver, driver):
    driver.refuse = 1_000_000
    service = notify(open_senders([receiver.url, driver.url]))
    post(service)
    until(
        lambda: driver.refused and service.counts.of("delivered_total", "webhook 127.0.0.1 1"),
        60,
        "one delivery and one that failed",
    )

    found = figures(service)

    good, bad = "webhook 127.0.0.1 1", "webhook 127.0.0.1 2"
    assert (found["delivered_total", good], found["delivered_total", bad]) == (1, 0)
    assert (found["failed_total", good], found["failed_total", bad]) == (0, 1)
    assert (found["waiting", good], found["waiting", bad]) == (0, 1)
    assert found["oldest_waiting_seconds", good] == 0 < found["oldest_waiting_seconds", bad]
    assert ("last_delivery_timestamp_seconds", bad) not in found
    assert (found["accepted_total",], found["without_diagnosis_total",]) == (1, 1)


def test_a_probe_needs_no_token_and_everything_else_does(notify, local):
    service = notify(rules=local)

    assert answers(f"{service.url}/healthz")
    assert asked(f"{service.url}/metrics")[0] == 401
    status, text = asked(f"{service.url}/metrics", token="t3mp", scheme="bearer")
    assert status == 200 and "\nledgerops_notify_accepted_total 0" in text
    assert post(service, token="t3mp") == (200, "accepted")


def test_an_open_service_without_authentication_is_warned_of(notify, caplog):
    with caplog.at_level(logging.WARNING, "ledgerops"):
        notify(rules=Rules(host="0.0.0.0"))

    assert any("anyone who reaches it can send messages" in line for line in caplog.messages)


def test_with_tls_only_clients_of_the_authority_are_let_in(notify, tmp_path):
    ca = authority(tmp_path)
    server, client = certificate_of(ca, "server"), certificate_of(ca, "client")
    access = {"certificate": server.certificate, "key": server.key, "client_ca": ca.certificate}
    service = notify(rules=Rules(host="127.0.0.1", **access))
    stranger, known = (ssl.create_default_context(cafile=ca.certificate) for _ in range(2))
    known.load_cert_chain(client.certificate, client.key)
    request = urllib.request.Request(f"{service.url}/alerts", json.dumps(webhook()).encode())

    assert service.url.startswith("https://")
    with pytest.raises(OSError):
        urllib.request.urlopen(request, timeout=60, context=stranger)
    with urllib.request.urlopen(request, timeout=60, context=known) as answer:
        assert answer.read() == b"accepted\n"


def test_a_clock_that_is_set_back_delays_no_attempt(notify, receiver, monkeypatch):
    monkeypatch.setattr(spool_module, "BACKOFF_SECONDS", (0.2,))
    receiver.refuse = 1
    post(notify())
    until(lambda: receiver.refused, 60, "the refused attempt")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600.0)

    assert len(sent(receiver)) == 1


def test_a_clock_that_is_set_back_between_two_runs_delays_no_attempt(notify, receiver, spooled):
    name, later = Webhook(receiver.url).name, time.time() + 3600.0
    earlier = spooled(name, now=later)
    earlier.put("a", "a", "critical", webhook(), now=later)
    earlier.again(name, earlier.due(name, later).number, now=later)
    earlier.close()

    notify()

    assert len(sent(receiver)) == 1


def test_a_service_that_never_began_can_be_closed(spooled, receiver):
    sender = Webhook(receiver.url)
    Service(spooled(sender.name), Lookup(), [sender]).close()

    spooled(sender.name).close()


def test_a_sender_that_answers_without_end_is_a_failed_attempt(notify, receiver, monkeypatch):
    monkeypatch.setattr("ledgerops.notify.senders.DELIVERY_SECONDS", 0.3)
    with dripping_server() as url:
        service = notify(open_senders([url, receiver.url]))
        post(service)

        sent(receiver)
        until(lambda: service.counts.of("failed_total", "webhook 127.0.0.1 1"), 60, "the end of the attempt")


def test_a_service_that_hangs_for_ever_stops_no_other_and_takes_few_threads(notify, receiver, monkeypatch):
    monkeypatch.setattr("ledgerops.notify.service.SEND_SECONDS", 0.05)
    monkeypatch.setattr(spool_module, "BACKOFF_SECONDS", (0.0,))
    hanging, end = [], threading.Event()

    class Hung:
        name = "hung"

        def send(self, message):
            hanging.append(1)
            end.wait(120)

    service = notify([Hung(), Webhook(receiver.url)])
    post(service)

    until(lambda: service.counts.of("failed_total", "hung") > 20, 120, "many attempts")
    post(service, webhook(alert(query="another"), groupKey="another"))
    until(lambda: len(receiver.got) == 2, 120, "both messages")
    assert len(hanging) == 1
    end.set()


def test_deliveries_go_on_once_there_are_threads_again(notify, receiver, monkeypatch):
    monkeypatch.setattr(spool_module, "BACKOFF_SECONDS", (0.0,))
    attempts, start = [], OneAtATime._start

    def start_late(self):
        attempts.append(1)
        if len(attempts) <= 20:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(OneAtATime, "_start", start_late)
    post(notify([Webhook(receiver.url)]))
    until(lambda: receiver.got, 120, "the message")


def test_a_lookup_that_is_late_costs_the_diagnosis_only(notify, receiver, monkeypatch):
    monkeypatch.setattr("ledgerops.notify.service.DIAGNOSIS_SECONDS", 0.1)
    end = threading.Event()

    class Late(Lookup):
        def diagnose(self, *about):
            end.wait(120)
            return super().diagnose(*about)

    post(notify(lookup=Late()))

    [message] = sent(receiver)
    end.set()
    assert "diagnosis: none (its lookup did not end in time)" in message["body"]


def test_what_waited_before_a_restart_is_looked_up_together(notify, receiver, spooled):
    """Each lookup takes a second; one after the other they would take twelve."""
    earlier = spooled(Webhook(receiver.url).name)
    for query in map("query_{}".format, range(12)):
        earlier.put(query, query, "critical", webhook(alert(query=query), groupKey=query), time.time())
    earlier.close()
    running, most = [], []

    class Slow(Lookup):
        def diagnose(self, *about):
            running.append(1)
            most.append(len(running))
            time.sleep(1.0)
            running.pop()
            return super().diagnose(*about)

    notify(lookup=Slow())

    until(lambda: len(receiver.got) == 12, 60, "twelve messages")
    assert max(most) > 6


def test_a_webhook_with_credentials_in_its_url_sends_them_and_does_not_show_them(receiver):
    sender = Webhook(receiver.url.replace("://", "://me:geh%40eim@"))
    sender.send(compose(parse_webhook(webhook()), {}, 0.0))

    assert receiver.got_authorization == ["Basic bWU6Z2VoQGVpbQ=="]
    assert "geh" not in sender.name


def test_webhooks_that_come_together_are_read_one_after_the_other(notify, monkeypatch):
    service, reading, most, usual = notify([]), [], [], service_module.parse_webhook

    def parse(payload):
        reading.append(payload)
        most.append(len(reading))
        threading.Event().wait(0.02)  # long enough for another to begin
        reading.pop()
        return usual(payload)

    monkeypatch.setattr(service_module, "parse_webhook", parse)
    bodies = [json.dumps(webhook(groupKey=str(number))).encode() for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert {status for status, _ in pool.map(service.accept, bodies)} == {HTTPStatus.OK}

    assert set(most) == {1}
