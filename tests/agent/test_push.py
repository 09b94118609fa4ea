import json
import re
import socket
import threading
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import pairwise

import pytest

from ledgerops.agent import otlp_receiver, push
from ledgerops.agent.attach import Hub
from ledgerops.agent.otlp_receiver import read_headers, retry_after
from ledgerops.agent.push import MAX_RECORDS, Pusher
from ledgerops.config import Config
from ledgerops.errors import UserError
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.metrics.throughput import METRICS as THROUGHPUT
from ledgerops.model.finding import Verdict
from ledgerops.runtime.family import Family
from ledgerops.runtime.registry import QueryState
from ledgerops.runtime.snapshot import Published, QuerySnapshot, Snapshot
from ledgerops.signals.query_view import QueryView
from tests.build import spark_json
from tests.hostile import dripping_server, silent_server
from tests.otlp_receiver import OtlpReceiver, reply
from tests.programs import SLACK_SECONDS, until
from tests.runtime.demo import KEY_SKEW
from tests.tables import cases

BATCHES = next(metric for metric in THROUGHPUT if metric.name == "ledgerops_batches_total")
LONG = 3600.0  # seconds: an interval that does not pass in a test


@pytest.fixture
def receiver():
    with closing(OtlpReceiver()) as made:
        yield made


@pytest.fixture
def pushing():
    """Starts a pusher of one counter, and ends it."""
    with ExitStack() as made:

        def start(endpoint, **settings):
            stats = SelfStats()
            families = [Published(BATCHES, [((("query", "q"),), Family(BATCHES, (((), 3.0),)))])]
            config = Config(otlp_endpoint=endpoint, **{"otlp_interval": LONG, **settings})
            pusher = made.enter_context(closing(Pusher(config, lambda: families, stats, "host:1")))
            pusher.start()
            return pusher, stats

        yield start


def left_out(stats):
    """What was not exported, by signal and reason."""
    return {key: count for key, count in stats.not_exported.items() if count}


def judged(*causes, at=1.0, ended=None):
    """A snapshot of one query."""
    state = QueryState("q", None)
    state.verdict = Verdict("q", at, "healthy", 100, root_causes=causes)
    state.history.start(0.5, "id", "run")
    if ended is not None:
        state.history.end(ended, "run", None, None)
    return Snapshot(at, {"q": QuerySnapshot(state, QueryView(state.history, at), 0, pytest.fail)})


def test_what_metrics_serves_arrives_with_the_headers_of_the_file(receiver, pushing, tmp_path):
    (tmp_path / "headers").write_text("Authorization: Bearer abc\nX-Tenant: 7\n")
    pusher, stats = pushing(receiver.url, otlp_headers_file=str(tmp_path / "headers"))
    pusher.close()

    [got] = receiver.got
    assert receiver.metrics()["ledgerops_batches_total"]["sum"]["dataPoints"][0]["asDouble"] == 3.0
    assert (got.headers["Authorization"], got.headers["X-Tenant"]) == ("Bearer abc", "7")
    assert (stats.exported["metrics"], left_out(stats)) == (1, {})


def test_protobuf_is_sent_where_it_is_asked_for_in_every_interval(receiver, pushing):
    pushing(receiver.url, otlp_encoding="protobuf", otlp_interval=0.05)
    until(lambda: len(receiver.got) >= 3)
    got = receiver.got[0]
    assert got.headers["Content-Type"] == "application/x-protobuf"
    assert b"ledgerops_batches_total" in got.document["protobuf"]


def test_the_end_of_a_query_exports_at_once_and_only_once(receiver, pushing):
    pusher, _ = pushing(receiver.url)
    pusher.notice(judged())
    assert receiver.got == []

    pusher.notice(judged(ended=9.0))
    until(lambda: receiver.got)

    pusher.notice(judged(ended=9.0, at=2.0))
    pusher.close()
    assert len(receiver.got) == 2  # the second is that of the end of the process


def test_a_root_cause_arrives_as_a_log_record_when_it_begins_and_when_it_ends(receiver, pushing):
    pusher, stats = pushing(receiver.url)
    for snapshot in (judged(KEY_SKEW), judged(KEY_SKEW, at=2.0), judged(at=3.0)):
        pusher.notice(snapshot)
    pusher.close()

    told = [(each["rule"], each["state"]) for each in receiver.records()]
    assert told == [("key-skew", "began"), ("key-skew", "ended")]
    assert stats.exported["logs"] == 2


def test_a_receiver_without_logs_is_not_sent_any_again(receiver, pushing, warned):
    """Prometheus takes metrics only."""
    receiver.answer = lambda handler: reply(200 if handler.path == "/v1/metrics" else 404)(handler)
    pusher, _ = pushing(receiver.url)
    pusher.notice(judged(KEY_SKEW, ended=9.0))
    until(lambda: len(receiver.got) == 2)
    until(lambda: not pusher._takes_logs)
    pusher.notice(judged(at=2.0, ended=9.0))
    pusher.close()

    assert [each.path for each in receiver.got] == ["/v1/metrics", "/v1/logs", "/v1/metrics"]
    assert warned.messages == [f"{receiver.url} takes no log records; root causes are sent as metrics only"]


@pytest.fixture
def away():
    """A port at which no receiver listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def test_records_wait_for_a_receiver_that_is_away_and_arrive_once(pushing, away):
    pusher, stats = pushing(f"http://127.0.0.1:{away}")
    pusher.notice(judged(KEY_SKEW, ended=9.0))
    until(lambda: stats.not_exported["metrics", "unreachable"])
    with closing(OtlpReceiver(port=away)) as late:
        until(late.records)
        pusher.close()

    assert len(late.records()) == 1
    assert stats.not_exported["logs", "unreachable"] == 0


def test_records_beyond_the_limit_are_counted(pushing, away):
    pusher, stats = pushing(f"http://127.0.0.1:{away}")
    for number in range(MAX_RECORDS // 2 + 5):
        pusher.notice(judged(KEY_SKEW, at=2.0 * number))
        pusher.notice(judged(at=2.0 * number + 1))
    assert (len(pusher._records), stats.not_exported["logs", "full"]) == (MAX_RECORDS, 10)


def test_the_receiver_says_when_to_come_back_within_limits(receiver, pushing):
    answers = iter([reply(429, headers={"Retry-After": "1"}), reply(503, headers={"Retry-After": "31536000"})])
    receiver.answer = lambda handler: next(answers, reply())(handler)
    pusher, stats = pushing(receiver.url, otlp_interval=0.05)
    until(lambda: stats.not_exported["metrics", "refused"] == 2)
    assert receiver.got[1].at - receiver.got[0].at >= 1.0
    assert 0.0 < pusher._not_before - time.monotonic() <= push.MAX_WAIT_SECONDS, "a year is cut"


def test_the_end_of_a_query_does_not_hurry_a_receiver_that_asked_for_time(receiver, pushing):
    receiver.answer = reply(503, headers={"Retry-After": "600"})
    pusher, stats = pushing(receiver.url, otlp_interval=0.05)
    until(lambda: stats.not_exported["metrics", "refused"])
    pusher.notice(judged(ended=9.0))
    until(lambda: not pusher._due.is_set())
    assert len(receiver.got) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 413, 500, 302])
def test_a_refusal_is_not_repeated_before_the_interval_and_is_logged_once(receiver, pushing, warned, status):
    receiver.answer = reply(status, headers={"Location": "http://127.0.0.1:1/"})
    _, stats = pushing(receiver.url, otlp_interval=0.2)
    until(lambda: len(receiver.got) >= 3)

    assert min(later.at - earlier.at for earlier, later in pairwise(receiver.got)) >= 0.19
    assert stats.exported["metrics"] == 0
    assert warned.messages == [
        f"the OTLP receiver at {receiver.url} did not take an export: it answers {status}; the job is not affected, "
        "and further failures are only counted"
    ]


REFUSED, UNREACHABLE, REJECTED = (("metrics", reason) for reason in ("refused", "unreachable", "rejected"))


def partly(rejected):
    return reply(body=b'{"partialSuccess":{"rejectedDataPoints":"%d"}}' % rejected)


def another_protocol(handler):
    handler.wfile.write(b"SSH-2.0-OpenSSH_9\r\n\r\n")


@cases(
    "answer, exported, dropped",
    ("an empty answer", reply(body=b""), 1, {}),
    ("an answer that is no JSON", reply(body=b"\x00\xffgarbage"), 1, {}),
    ("a number instead of an object", reply(body=b'{"partialSuccess": 7}'), 1, {}),
    ("rejected", partly(rejected=1), 0, {REJECTED: 1}),
    ("too many", partly(rejected=9), 0, {REJECTED: 1}),
    ("a web page", reply(body=b"<p>", headers={"Content-Type": "text/html"}), 0, {REFUSED: 1}),
    ("an endless answer", reply(body=b"x" * 100_000), 0, {UNREACHABLE: 1}),
    ("another protocol", another_protocol, 0, {UNREACHABLE: 1}),
)
def test_what_an_answer_means(receiver, pushing, answer, exported, dropped):
    receiver.answer = answer
    pusher, stats = pushing(receiver.url)
    pusher.notice(judged(ended=9.0))
    until(lambda: stats.exported["metrics"] + sum(stats.not_exported.values()))
    assert (stats.exported["metrics"], left_out(stats)) == (exported, dropped)


def test_garbage_is_named_in_one_readable_line(receiver, pushing, warned):
    receiver.answer = lambda handler: handler.wfile.write(bytes(range(32)) * 100 + b"\r\n")
    pusher, stats = pushing(receiver.url)
    pusher.notice(judged(ended=9.0))
    until(lambda: stats.not_exported["metrics", "unreachable"])
    pusher.close()
    assert "did not take an export: the answer is not HTTP; the job" in warned.text


@pytest.fixture(params=[silent_server, dripping_server])
def slow_receiver(request):
    with request.param() as url:
        yield url


def waiting():
    return sum(thread.name == "ledgerops-deadline" for thread in threading.enumerate())


def test_a_slow_receiver_holds_no_thread_and_no_close(slow_receiver, pushing, monkeypatch):
    monkeypatch.setattr(otlp_receiver, "REQUEST_SECONDS", 0.3)
    pusher, stats = pushing(slow_receiver, otlp_interval=0.01)
    until(lambda: stats.not_exported["metrics", "unreachable"] >= 3)
    until(lambda: waiting() <= 1)  # the one before may still be ending

    began = time.monotonic()
    pusher.close()
    assert time.monotonic() - began < push.CLOSING_SECONDS + SLACK_SECONDS
    until(lambda: not waiting())


def test_closing_waits_a_second_at_most(slow_receiver, pushing, warned):
    pusher, _ = pushing(slow_receiver)
    began = time.monotonic()
    pusher.close()
    assert 0.9 < time.monotonic() - began < push.CLOSING_SECONDS + SLACK_SECONDS
    assert "has not taken the last values in time" in warned.text


def test_what_follows_a_request_without_an_answer_is_counted_and_not_sent(receiver, monkeypatch):
    monkeypatch.setattr("ledgerops.runtime.otlp.MAX_POINTS", 2)
    series = tuple(((str(number),), 1.0) for number in range(5))
    metric = replace(BATCHES, labels=("source",))
    families = [Published(metric, [((("query", "q"),), Family(metric, series))])]
    stats = SelfStats()
    receiver.answer = reply(503)
    pusher = Pusher(Config(otlp_endpoint=receiver.url), lambda: families, stats, "host:1")
    pusher._export()

    assert (len(receiver.got), stats.not_exported["metrics", "refused"]) == (1, 5)


def test_an_error_of_our_own_is_logged_and_the_next_export_comes(receiver, warned):
    answers = iter([RuntimeError("odd")])

    def families():
        for error in answers:
            raise error
        return []

    pusher = Pusher(Config(otlp_endpoint=receiver.url, otlp_interval=0.05), families, SelfStats(), "host:1")
    pusher.notice(judged(KEY_SKEW))
    pusher.start()
    until(receiver.records)
    pusher.close()
    assert "RuntimeError: odd" in warned.text


def test_a_hub_pushes_the_last_batch_when_it_is_closed(receiver):
    hub = Hub(Config(port=0, app="shop", otlp_endpoint=receiver.url, otlp_interval=LONG))
    hub.start()
    hub.queue.put("progress", json.dumps(spark_json()))
    hub.close()

    sums = receiver.metrics()["ledgerops_batches_total"]["sum"]["dataPoints"]
    assert [point["asDouble"] for point in sums] == [1.0]
    name, instance, *_ = receiver.got[-1].document["resourceMetrics"][0]["resource"]["attributes"]
    assert name["value"] == {"stringValue": "ledgerops"}
    assert instance["value"]["stringValue"].endswith(f":{hub.exporter.port}")


def test_without_an_endpoint_nothing_is_pushed():
    with closing(Hub(Config(port=0))) as hub:
        assert (hub.pusher, hub.stats.copy().not_exported) == (None, {})


@cases(
    "settings, line",
    ("an absent file", {"otlp_headers_file": "/no/such/file"}, "cannot read /no/such/file: no such file or directory"),
    (
        "credentials in the address",
        {"otlp_endpoint": "http://user:secret@127.0.0.1:1"},
        "the address of 127.0.0.1 holds credentials; leave them out and set otlp_headers_file",
    ),
)
def test_settings_that_cannot_be_used_are_one_line_and_leave_no_exporter(settings, line):
    with pytest.raises(UserError) as caught:
        Hub(Config(**{"port": 0, "otlp_endpoint": "http://127.0.0.1:1", **settings}))
    assert str(caught.value).lower().startswith(line.lower())


def test_a_line_that_is_no_header_is_not_quoted(tmp_path):
    headers = tmp_path / "headers"
    headers.write_text("X-Key: abc\n\nmy-secret\n")
    with pytest.raises(UserError, match=f"^{re.escape(str(headers))}:3 is not a header; write Name: value$"):
        read_headers(str(headers))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, 0.0), ("7", 7.0), ("-3", 0.0), ("soon", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("nan", 0.0)],
)
def test_what_retry_after_says(value, seconds):
    assert retry_after(value) == seconds
