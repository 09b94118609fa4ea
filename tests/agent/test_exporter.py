import gzip
import http.client
import itertools
import json
import logging
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from ledgerops.agent import exporter as exporter_module
from ledgerops.agent.exporter import Exporter
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.worker import Worker
from ledgerops.cli import main
from ledgerops.common import http_answers, http_handler, http_refusal, http_server, rate_limit
from ledgerops.common.http import ask
from ledgerops.common.http_server import MAX_REQUESTS, MAX_REQUESTS_PER_ADDRESS
from ledgerops.config import Config
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.errors import UserError
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.runtime.exposition import OPENMETRICS, TEXT, accepted, render
from ledgerops.runtime.family import clean_label
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.snapshot import published
from tests.build import T0, spark_json
from tests.certificates import authority, certificate_of
from tests.paths import ROOT
from tests.programs import until

PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.1"
)


class Served:
    """A worker and its exporter on a free port."""

    def __init__(self, clock=time.time, start_worker=True, **settings):
        self.stats = SelfStats()
        self.queue = EventQueue(self.stats)
        self.worker = Worker(self.queue, QueryRegistry(Diagnoser), self.stats, clock=clock)
        self.exporter = Exporter(Config(port=0, **settings), self.worker, self.stats, clock=clock)
        self.exporter.start()
        if start_worker:
            self.worker.start()

    def see(self, kind="progress", **changes):
        self.queue.put(kind, json.dumps(spark_json(**changes)))
        self.worker.turn()

    def get(self, path, method="GET", context=None, **headers):
        port, host = self.exporter.port, "127.0.0.1"
        if context is None:
            connection = http.client.HTTPConnection(host, port, timeout=60)
        else:
            connection = http.client.HTTPSConnection(host, port, timeout=60, context=context)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def close(self):
        self.exporter.close()
        self.worker.stop()


@pytest.fixture
def serve():
    made = []

    def start(**options):
        made.append(Served(**options))
        return made[-1]

    yield start
    for each in made:
        each.close()


def samples(text, parse=parse_text):
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def test_the_text_is_read_back_by_the_library(serve):
    served = serve(start_worker=False)
    served.see()
    status, headers, body = served.get("/metrics")

    found = samples(body.decode())
    assert (status, headers["Content-Type"]) == (200, TEXT)
    assert found["ledgerops_batches_total", (("query", "daily_counts"),)] == 1.0
    assert (
        found[
            "ledgerops_source_backlog_offsets",
            (("partition", "0"), ("query", "daily_counts"), ("topic", "transactions")),
        ]
        == 50.0
    )
    assert found["ledgerops_batch_duration_seconds_count", (("query", "daily_counts"),)] == 1.0
    assert found["ledgerops_batch_duration_seconds_bucket", (("le", "+Inf"), ("query", "daily_counts"))] == 1.0
    assert found["ledgerops_batch_duration_seconds_bucket", (("le", "0.5"), ("query", "daily_counts"))] == 0.0


def test_openmetrics_has_the_same_samples_and_the_batch_as_exemplar(serve):
    served = serve(start_worker=False, clock=lambda: T0 + 5)
    served.see()
    _, _, text = served.get("/metrics")
    _, headers, rich = served.get("/metrics", Accept=PROMETHEUS_3)

    plain = {name for name, _ in samples(text.decode())}
    assert headers["Content-Type"] == OPENMETRICS
    assert plain <= {name for name, _ in samples(rich.decode(), parse_openmetrics)}
    [exemplar] = [
        sample.exemplar
        for family in parse_openmetrics(rich.decode())
        for sample in family.samples
        if sample.exemplar is not None
    ]
    assert (exemplar.labels["batch_id"], exemplar.value) == ("7", 0.9)


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/html, */*;q=0.1", TEXT),
        (PROMETHEUS_3, OPENMETRICS),
        ("text/plain;q=0.9, application/openmetrics-text;version=1.0.0;q=0.5", TEXT),
        ("application/openmetrics-text;version=2.0.0", TEXT),
        ("application/openmetrics-text; q=nonsense", TEXT),
        ("application/openmetrics-text", OPENMETRICS),
    ],
)
def test_the_format_follows_the_weights_of_the_accept_header(header, kind):
    assert accepted(header) == kind


def test_hostile_names_do_not_break_the_text(serve):
    served = serve(start_worker=False)
    name = 'a"b\\c\nd{}é' + "x" * 500
    served.see(name=name)
    for accept, parse in (("", parse_text), (PROMETHEUS_3, parse_openmetrics)):
        _, _, body = served.get("/metrics", Accept=accept)
        assert samples(body.decode(), parse)["ledgerops_batches_total", (("query", clean_label(name)),)] == 1.0


def test_an_age_grows_while_nothing_happens_and_is_never_negative(serve):
    now = [T0]
    served = serve(start_worker=False, clock=lambda: now[0])
    watermark = {"watermark": "2027-01-15T07:59:50.000Z"}  # ten seconds before T0
    served.see(eventTime=watermark)
    key = ("ledgerops_watermark_lag_seconds", (("query", "daily_counts"),))
    lags = []
    for now[0] in (T0, T0 + 100, T0 - 100):
        lags.append(samples(served.get("/metrics")[2].decode())[key])

    assert lags == [10.0, 110.0, 0.0]


def test_an_expected_query_is_expected_even_after_it_ended_by_itself(serve):
    served = serve(start_worker=False, expected_queries=("daily_counts",))
    served.see()
    served.queue.put("plan", json.dumps({"run_id": spark_json()["runId"], "trigger": "available_now"}), "daily_counts")
    served.see("terminated", exception=None)
    found = samples(served.get("/metrics")[2].decode())

    assert found["ledgerops_query_expected", (("query", "daily_counts"),)] == 1.0
    assert found["ledgerops_query_active", (("query", "daily_counts"),)] == 0.0


def test_an_expected_query_that_never_ran_is_reported_as_not_active(serve):
    served = serve(start_worker=False, expected_queries=("daily_counts", "absent"))
    served.see()
    found = samples(served.get("/metrics")[2].decode())

    assert found["ledgerops_query_expected", (("query", "absent"),)] == 1.0
    assert found["ledgerops_query_active", (("query", "absent"),)] == 0.0
    assert found["ledgerops_query_active", (("query", "daily_counts"),)] == 1.0


def test_each_family_is_printed_once(serve):
    served = serve(start_worker=False)
    for name in ("a", "b", "c"):
        served.see(name=name, runId=f"run-{name}")
    _, _, body = served.get("/metrics")
    types = [line for line in body.decode().splitlines() if line.startswith("# TYPE")]

    assert len(types) == len(set(types))


def test_after_the_end_of_a_query_its_totals_stay_for_a_while_and_its_last_values_are_gone(serve):
    served = serve(start_worker=False)
    served.see()
    served.see("terminated", exception=None)
    found = {
        name for name, labels in samples(served.get("/metrics")[2].decode()) if ("query", "daily_counts") in labels
    }

    assert {"ledgerops_query_active", "ledgerops_batches_total", "ledgerops_input_rows_total"} <= found
    assert not {"ledgerops_last_batch_duration_seconds", "ledgerops_source_backlog_offsets"} & found


def test_promtool_finds_nothing_to_say(serve):
    promtool = shutil.which("promtool")
    if promtool is None and not os.environ.get("LEDGEROPS_REQUIRE_SERVERS"):
        pytest.skip("promtool is not installed")
    served = serve(start_worker=False)
    served.see(eventTime={"watermark": "2027-01-15T07:59:50.000Z"})
    host = {
        "cpu_count": 2,
        "cpu_busy_ratio": 0.5,
        "memory_total_bytes": 8,
        "memory_available_bytes": 4,
        "processes": [
            {
                "role": "driver_python",
                "cpu_seconds": 1,
                "memory_bytes": 1,
                "threads": 1,
                "open_files": 1,
                "processes": 1,
            }
        ],
    }
    served.queue.put("host", json.dumps(host))
    served.worker.turn()
    _, _, body = served.get("/metrics")
    found = subprocess.run([promtool, "check", "metrics"], input=body, capture_output=True, timeout=30, check=False)

    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")


def test_gzip_is_used_when_asked_for(serve):
    served = serve(start_worker=False)
    served.see()
    _, plain_headers, _ = served.get("/metrics")
    _, headers, body = served.get("/metrics", **{"Accept-Encoding": "gzip"})

    assert "Content-Encoding" not in plain_headers
    assert headers["Content-Encoding"] == "gzip"
    assert b"ledgerops_batches_total" in gzip.decompress(body)


def test_the_recording_gives_what_is_younger_and_of_the_query(serve):
    now = [T0]
    served = serve(start_worker=False, clock=lambda: now[0])
    served.see(name="a", runId="run-a")
    served.see(name="b", runId="run-b")

    def names(path):
        status, headers, body = served.get(path)
        assert (status, headers["Content-Type"]) == (200, "application/x-ndjson")
        return [json.loads(line)["query"] for line in body.splitlines()]

    assert names("/recording") == ["a", "b"]
    assert names("/recording?query=b") == ["b"]
    assert names("/recording?query=c") == []
    now[0] = time.time() + 3600
    assert names("/recording?since=60") == []
    assert names("/recording?since=7200") == ["a", "b"]
    assert served.get("/recording?since=x")[0] == 400


def test_the_diagnosis_is_the_document(serve):
    served = serve(start_worker=False)
    served.see()
    status, _, body = served.get("/diagnosis?query=daily_counts")
    found = json.loads(body)

    assert (status, found["version"], found["source"]) == (200, 1, served.exporter.url)
    assert [query["query"] for query in found["queries"]] == ["daily_counts"]
    assert json.loads(served.get("/diagnosis")[2])["queries"] == found["queries"]


def test_an_unknown_query_is_one_line_of_error(serve):
    served = serve(start_worker=False)
    served.see()
    status, _, body = served.get("/diagnosis?query=nope")

    assert (status, json.loads(body)) == (404, {"error": "no query 'nope'; the queries are daily_counts"})
    assert body.count(b"\n") == 1


def test_the_status_is_a_document_of_all_queries(serve):
    served = serve(start_worker=False)
    served.see()
    found = json.loads(served.get("/status")[2])

    assert [query["query"] for query in found["queries"]] == ["daily_counts"]


def test_the_live_page_is_served(serve):
    status, headers, body = serve().get("/")

    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"<html" in body


def test_anything_else_is_not_found(serve):
    served = serve()

    assert [served.get(path)[0] for path in ("/favicon.ico", "/metrics/", "/../etc/passwd")] == [404] * 3


def test_a_healthy_worker_is_healthy(serve):
    assert serve().get("/healthz")[::2] == (200, b"ok\n")


def test_a_dead_worker_is_not_and_why(serve):
    served = serve()
    served.worker.stop()

    assert served.get("/healthz")[::2] == (503, b"the worker has ended\n")


def test_a_stuck_worker_is_not(serve, monkeypatch):
    served, stuck = serve(), threading.Event()

    def turn(timeout):
        stuck.set()
        time.sleep(0.05)

    monkeypatch.setattr(served.worker, "turn", turn)
    assert stuck.wait(60)  # the turn before it is over, and notes its time no more
    served.worker.last_turn -= 100

    assert served.get("/healthz")[0] == 503


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_are_refused(serve, method):
    assert serve().get("/metrics", method)[0] == 501


def test_head_has_no_body(serve):
    status, headers, body = serve().get("/metrics", "HEAD")

    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 0


def test_a_page_that_fails_is_a_500_and_counted(serve, monkeypatch, caplog):
    served = serve(start_worker=False)
    monkeypatch.setattr(exporter_module, "status_document", lambda registry, now: 1 / 0)
    status, _, body = served.get("/status")

    assert (status, json.loads(body)) == (500, {"error": "this page failed; see the driver's log"})
    assert served.stats.collector_errors["exporter"] == 1


def test_a_taken_port_is_an_os_error(serve):
    served = serve()

    with pytest.raises(OSError, match="in use"):
        Exporter(Config(port=served.exporter.port), served.worker, served.stats)


def test_a_storm_of_scrapes_does_not_hold_the_worker_up(serve):
    served = serve()
    for name in range(20):
        served.queue.put("progress", json.dumps(spark_json(name=f"query{name}", runId=f"run-{name}")))
    with ThreadPoolExecutor(50) as pool:
        scrapes = [pool.submit(served.get, "/metrics") for _ in range(200)]
        for number in range(500):
            served.queue.put("progress", json.dumps(spark_json(batchId=number)))
        answers = []
        for scrape in scrapes:
            try:
                answers.append(scrape.result()[0])
            except (http.client.HTTPException, OSError):
                answers.append(None)  # turned away before it had sent its request
    served.worker.stop(timeout=60)

    assert set(answers) <= {200, 503, None} and answers.count(200) >= MAX_REQUESTS
    assert served.stats.dropped == 0
    total = served.worker.snapshot.queries["daily_counts"].families["ledgerops_batches_total"].series
    assert total == (((), 493.0),) or total == (((), 500.0),)


def test_clients_that_say_nothing_are_cut_and_others_are_served(serve, monkeypatch):
    served = serve()
    silent = [
        socket.create_connection(("127.0.0.1", served.exporter.port)) for _ in range(MAX_REQUESTS_PER_ADDRESS - 3)
    ]
    try:
        assert served.get("/healthz")[0] == 200
        monkeypatch.setattr(http_handler.Handler, "timeout", 0.2)
        silent.append(socket.create_connection(("127.0.0.1", served.exporter.port), timeout=60))
        assert silent[-1].recv(1) == b""
    finally:
        for each in silent:
            each.close()


def test_a_client_that_trickles_is_cut(serve, monkeypatch):
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.3)
    served = serve()
    slow = socket.create_connection(("127.0.0.1", served.exporter.port))
    slow.settimeout(0.05)

    def cut():
        try:
            slow.sendall(b"G")
            return slow.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    with slow:
        until(cut, 60, "the end of the connection")
    monkeypatch.undo()
    assert served.get("/healthz")[0] == 200


def opened(served, count):
    return [socket.create_connection(("127.0.0.1", served.exporter.port), timeout=60) for _ in range(count)]


def test_clients_that_never_finish_their_request_leave_room_for_those_that_do(serve, monkeypatch):
    monkeypatch.setattr(http_handler.Handler, "timeout", None)
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 600.0)
    monkeypatch.setattr(http_server, "ROOM_SECONDS", 60.0)  # a cut thread takes long to end on a busy machine
    served = serve()
    before = threading.active_count()
    slow = opened(served, 2 * MAX_REQUESTS)
    try:
        for each in slow:
            each.settimeout(0.1)
            try:
                each.sendall(b"GET /metrics HTTP/1.1\r\nA: b\r\n")
            except OSError:
                pass
        rest = 2 * MAX_REQUESTS - MAX_REQUESTS_PER_ADDRESS
        until(lambda: served.stats.copy().requests_refused.total() >= rest, 60, "all to be accepted, or refused")
        time.sleep(http_server.SPARED_SECONDS)  # for so long a new connection is not cut
        assert [served.get("/metrics")[0] for _ in range(10)] == [200] * 10
        assert threading.active_count() - before <= MAX_REQUESTS
        assert served.stats.requests_refused["slow"] >= 1
    finally:
        for each in slow:
            each.close()


def test_headers_that_are_large_together_are_refused(serve):
    served = serve()
    with opened(served, 1)[0] as client:
        client.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 60_000 + b"\r\nB: " + b"b" * 60_000)
        client.sendall(b"\r\nC: " + b"c" * (http_handler.MAX_HEAD_BYTES - 120_000))
        client.sendall(b"\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 431 ")

    status, _, _ = served.get("/status", A="a" * 60_000, B="b" * 60_000)
    assert status == 200


def test_clients_that_do_not_read_a_large_answer_hold_little_memory_and_no_other_up(serve, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 600.0)
    monkeypatch.setattr(http_handler.Handler, "timeout", None)
    served, large = serve(), http_answers.MAX_BYTES_PER_ADDRESS
    served.exporter._pages["/large"] = lambda query, accept: http_handler.Answer(bytes(large))
    served.exporter._pages["/small"] = lambda query, accept: http_handler.Answer(bytes(http_answers.LARGE_BYTES))
    with opened(served, 1)[0] as slow:
        slow.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert slow.recv(100).startswith(b"HTTP/1.1 200")
        refused = served.get("/large")
        assert (refused[0], served.stats.requests_refused) == (503, {"busy": 1})
        assert served.get("/small")[0] == 200
        with socket.create_connection(("127.0.0.1", served.exporter.port), 60, ("127.0.0.2", 0)) as other:
            other.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 200"), "another address has its own share"
    until(lambda: served.get("/large")[0] == 200, 60, "the end of the slow client")


def test_a_large_answer_that_is_the_only_one_is_sent(serve):
    served = serve()
    served.exporter._pages["/large"] = lambda query, accept: http_handler.Answer(bytes(2 * http_answers.MAX_BYTES))

    assert len(served.get("/large")[2]) == 2 * http_answers.MAX_BYTES


def test_when_all_places_are_taken_by_requests_the_next_is_answered_503_and_counted(serve, monkeypatch):
    served, ready, done = serve(), threading.Semaphore(0), threading.Event()
    served.exporter._pages["/slow"] = lambda query, accept: (ready.release(), done.wait(60), http_handler.Answer(b""))[
        2
    ]
    with ThreadPoolExecutor(MAX_REQUESTS_PER_ADDRESS) as pool:
        waiting = [pool.submit(served.get, "/slow") for _ in range(MAX_REQUESTS_PER_ADDRESS)]
        for _ in waiting:
            assert ready.acquire(timeout=60)
        with opened(served, 1)[0] as turned_away:
            told = turned_away.makefile("rb").read()
        done.set()
        assert {each.result()[0] for each in waiting} == {200}

    assert told.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1" in told
    assert served.stats.requests_refused == {"address": 1}
    line = 'ledgerops_http_requests_refused_total{reason="address"} 1.0'
    assert line in served.get("/metrics")[2].decode()


def test_an_address_that_asks_too_often_waits_and_then_is_answered(serve, monkeypatch):
    monkeypatch.setattr(rate_limit, "MAX_BURST", 5)
    served = serve()
    with ThreadPoolExecutor(4) as pool:
        began = time.monotonic()
        answers = {each.result()[0] for each in [pool.submit(served.get, "/healthz") for _ in range(25)]}
        took = time.monotonic() - began

    assert answers == {200}
    assert took > 0.9 * (25 - 5) / exporter_module.MAX_PER_SECOND
    assert not served.stats.requests_refused


@pytest.mark.skipif(not http_refusal.ENDED_BY_PEER, reason="the system does not say it")
def test_a_client_that_gave_up_waiting_takes_no_place_of_one_that_waits(serve, monkeypatch):
    monkeypatch.setattr(rate_limit, "MAX_BURST", 1)
    monkeypatch.setattr(exporter_module, "MAX_PER_SECOND", 0.001)
    served = serve()
    first, *waiting = opened(served, 6)
    parked = served.exporter._server._parked
    try:
        until(lambda: len(parked.get("127.0.0.1", ())) == 5, 60, "all but the first to wait")
        for each in waiting[:3]:
            each.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            each.close()
        until(lambda: served.stats.requests_refused["rate"] == 3, 60, "the end of those that gave up")
        assert len(parked["127.0.0.1"]) == 2
        served.exporter._server._limit._per_second = 1000.0
        for each in waiting[3:]:
            each.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert each.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        for each in (first, *waiting):
            each.close()


def test_one_address_that_asks_too_often_holds_up_no_other(serve, monkeypatch):
    monkeypatch.setattr(rate_limit, "MAX_BURST", 1)
    monkeypatch.setattr(exporter_module, "MAX_PER_SECOND", 0.1)
    served = serve()
    greedy = opened(served, http_server.MAX_PARKED + 20)
    try:
        until(lambda: served.stats.requests_refused["rate"] >= 10, 60, "refused requests")
        with socket.create_connection(("127.0.0.1", served.exporter.port), 60, ("127.0.0.2", 0)) as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 200")
            assert served.exporter._server._parked, "it did not wait behind the greedy one"
    finally:
        for each in greedy:
            each.close()


def test_refused_clients_that_say_nothing_hold_up_no_other(serve, monkeypatch):
    monkeypatch.setattr(rate_limit, "MAX_BURST", 1)
    monkeypatch.setattr(exporter_module, "MAX_PER_SECOND", 0.001)
    monkeypatch.setattr(http_refusal, "LEAVING_SECONDS", 600.0)
    monkeypatch.setattr(http_refusal, "MAX_LEAVING", 10)
    served = serve()
    greedy = opened(served, http_server.MAX_PARKED + 1)
    try:
        parked = served.exporter._server._parked
        until(lambda: len(parked.get("127.0.0.1", ())) == http_server.MAX_PARKED, 60, "all to wait")
        refused = opened(served, 20)
        greedy += refused
        for each in refused:
            assert each.recv(2000).startswith(b"HTTP/1.1 503 ")
        assert refused[9].recv(1) == b"", "the oldest of more than MAX_LEAVING is closed"
        assert len(served.exporter._server._refusals.waiting()) == 10
        with socket.create_connection(("127.0.0.1", served.exporter.port), 60, ("127.0.0.2", 0)) as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 200")
        served.exporter.close()
        assert refused[-1].recv(1) == b"", "the end of the exporter closes those that are left"
    finally:
        for each in greedy:
            each.close()


OUT_OF_DESCRIPTORS = """
import json, os, resource, socket, time
from tests.agent.test_exporter import Served

served = Served()
client = socket.socket()
free = os.open(os.devnull, os.O_RDONLY)
held = [free]
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
try:
    while True:
        held.append(os.dup(free))
except OSError:
    pass
client.connect(("127.0.0.1", served.exporter.port))
client.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
clock = time.pthread_getcpuclockid(served.exporter._thread.ident)
began = time.clock_gettime(clock)
time.sleep(2.0)
used = time.clock_gettime(clock) - began
for each in held:
    os.close(each)
client.settimeout(60)
answer = client.recv(100)[:15].decode()
served.close()
print(json.dumps([used, answer]))
"""


def test_a_driver_without_free_descriptors_loses_no_core_and_the_client_is_answered_later():
    command = [sys.executable, "-c", OUT_OF_DESCRIPTORS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=True)
    used, answer = json.loads(done.stdout)

    assert used < 0.1, "CPU seconds in two, of which a loop would take nearly all"
    assert answer == "HTTP/1.1 200 OK"


def test_after_a_refused_request_others_are_accepted_together(serve, monkeypatch):
    monkeypatch.setattr(rate_limit, "MAX_BURST", 1)
    monkeypatch.setattr(exporter_module, "MAX_PER_SECOND", 0.001)
    monkeypatch.setattr(http_server, "PAUSE_SECONDS", 0.5)
    served = serve()
    waiting = opened(served, http_server.MAX_PARKED + 1)
    longest = 0.0
    for _ in range(3000):  # those that come within ACCEPT_SECONDS of each other are refused without a pause
        began = time.monotonic()
        with opened(served, 1)[0] as refused:
            assert refused.recv(100).startswith(b"HTTP/1.1 503 ")
        longest = max(longest, time.monotonic() - began)
        if longest > 0.9 * 0.5:
            break
    for each in waiting:
        each.close()

    assert longest > 0.9 * 0.5


def test_a_request_does_not_overtake_those_of_its_address_that_wait(serve, monkeypatch):
    monkeypatch.setattr(rate_limit, "MAX_BURST", 1)
    monkeypatch.setattr(exporter_module, "MAX_PER_SECOND", 4.0)
    served, order = serve(), []
    served.exporter._pages["/turn"] = lambda query, accept: (order.append(query["n"]), http_handler.Answer(b""))[1]
    connections = opened(served, 6)
    for number, each in enumerate(connections):
        each.sendall(b"GET /turn?n=%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % number)
    for each in connections:
        with each:
            assert each.recv(100).startswith(b"HTTP/1.1 200")

    assert order == sorted(order)


def counted_page(served):
    """Has a page /count, which says how often it was made."""
    made = itertools.count(1)

    def count(query, accept):
        return http_handler.Answer(b"%d " % next(made) * 1000, "text/plain")

    served.exporter._pages["/count"] = count


def test_requests_that_had_to_wait_share_an_answer_and_others_get_their_own(serve, monkeypatch):
    monkeypatch.setattr(rate_limit, "MAX_BURST", 1)
    monkeypatch.setattr(exporter_module, "MAX_PER_SECOND", 0.001)
    monkeypatch.setattr(http_answers, "SHARED_SECONDS", 600.0)
    served = serve()
    counted_page(served)
    parked, limit = served.exporter._server._parked, served.exporter._server._limit
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(served.get, "/count", **{"Accept-Encoding": "gzip"}) for _ in range(8)]
        until(lambda: len(parked.get("127.0.0.1", ())) == 7, 60, "all but the first to wait")
        limit._per_second = 1000.0
        answers = [each.result() for each in waiting]
    bodies = [gzip.decompress(body) for _, _, body in answers]
    with socket.create_connection(("127.0.0.1", served.exporter.port), 60, ("127.0.0.2", 0)) as second:
        second.sendall(b"GET /count HTTP/1.1\r\nHost: localhost\r\n\r\n")
        fresh = second.makefile("rb").read()

    assert {status for status, _, _ in answers} == {200}
    assert sorted(body.split()[0] for body in bodies) == [b"1"] + [b"2"] * 7
    assert fresh.endswith(b" 3 "), "who did not have to wait gets a new one"


def test_connections_that_come_together_are_accepted_in_one_go(serve, monkeypatch):
    monkeypatch.setattr(http_server, "ACCEPT_SECONDS", 60.0)
    served = serve()
    served.exporter._server.shutdown()
    accepted = []
    monkeypatch.setattr(served.exporter._server, "process_request", lambda request, address: accepted.append(request))
    clients = opened(served, 20)
    served.exporter._server._handle_request_noblock()
    for each in (*clients, *accepted):
        each.close()

    assert len(accepted) == 20


@pytest.mark.parametrize("step", ["get_request", "_do_what_is_due"])
def test_a_lack_of_memory_ends_one_request_and_not_the_exporter(serve, monkeypatch, step):
    served, failed = serve(), threading.Event()
    usual = getattr(served.exporter._server, step)

    def fail(*args):
        if not failed.is_set():
            failed.set()
            raise MemoryError
        return usual(*args)

    monkeypatch.setattr(served.exporter._server, step, fail)
    assert served.get("/healthz")[0] == 200
    assert failed.wait(60)
    assert served.get("/healthz")[0] == 200, "it goes on after the error"


def test_many_clients_find_a_place_while_the_server_pauses(serve):
    limit = Path("/proc/sys/net/core/somaxconn")
    if not limit.exists() or int(limit.read_text()) < 1024:
        pytest.skip("the system lets fewer connections wait")
    served = serve()
    served.exporter._server.shutdown()
    clients = opened(served, 600)  # one that finds no place would wait for its next attempt, longer each time
    for each in clients:
        each.close()


def test_clients_of_one_network_of_ipv6_share_their_rate(serve, monkeypatch):
    monkeypatch.setattr(rate_limit, "MAX_BURST", 4)
    monkeypatch.setattr(exporter_module, "MAX_PER_SECOND", 0.001)
    hosts, accept = itertools.count(1), http_server.Server.get_request

    def from_one_network(server):
        return accept(server)[0], (f"2001:db8::{next(hosts):x}", 1, 0, 0)

    monkeypatch.setattr(http_server.Server, "get_request", from_one_network)
    served = serve()
    clients = opened(served, 6)
    try:
        for each in clients:
            each.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for each in clients[:4]:
            assert each.recv(100).startswith(b"HTTP/1.1 200")
        parked = served.exporter._server._parked
        until(lambda: [(of, len(waiting)) for of, waiting in parked.items()] == [("2001:db8::/64", 2)], 60, "the rest")
    finally:
        for each in clients:
            each.close()


def test_clients_of_ipv4_do_not_share_their_rate_at_an_address_of_ipv6(serve, monkeypatch):
    served = serve(host="::") if socket.has_dualstack_ipv6() else pytest.skip("no IPv6 here")
    for host in ("127.0.0.1", "127.0.0.2"):
        with socket.create_connection(("127.0.0.1", served.exporter.port), 60, (host, 0)) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200")

    assert list(served.exporter._server._limit._left) == ["127.0.0.1", "127.0.0.2"]


def test_an_answer_that_takes_long_counts_as_several(serve, monkeypatch):
    monkeypatch.setattr(rate_limit, "CPU_SECONDS_PER_ANSWER", 1e-7)
    monkeypatch.setattr(exporter_module, "MAX_PER_SECOND", 0.001)
    served = serve()
    assert served.get("/metrics")[0] == 200
    until(lambda: served.exporter._server._limit._left["127.0.0.1"][0] < 0, 60, "the charge")
    with opened(served, 1)[0]:
        until(lambda: served.exporter._server._parked, 60, "the next one to wait")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9464", 200),
        ("127.0.0.1:9464", 200),
        ("[::1]:9464", 200),
        ("LOCALHOST.", 200),
        ("evil.example", 421),
        ("evil.example:9464", 421),
        ("127.0.0.1.evil.example", 421),
        ("169.254.169.254", 421),
        ("[::1", 421),
    ],
)
@pytest.mark.parametrize("path", ["/metrics", "/recording", "/"])
def test_on_loopback_a_name_that_is_not_this_machines_is_refused(serve, path, host, status):
    assert serve().get(path, Host=host)[0] == status


def test_an_exporter_that_is_open_to_the_network_takes_any_name(serve):
    assert serve(host="0.0.0.0").get("/metrics", Host="driver.example")[0] == 200


@pytest.mark.parametrize(
    ("host", "warned"), [("0.0.0.0", True), ("", True), ("127.0.0.1", False), ("localhost", False)]
)
def test_an_open_exporter_without_authentication_is_warned_of(serve, caplog, host, warned):
    with caplog.at_level(logging.WARNING, "ledgerops"):
        serve(host=host)

    assert ["without authentication" in record.getMessage() for record in caplog.records] == [True] * warned


def test_an_open_exporter_with_a_token_is_not_warned_of(serve, tmp_path, caplog):
    (tmp_path / "token").write_text("s3cret")
    with caplog.at_level(logging.WARNING, "ledgerops"):
        serve(host="0.0.0.0", bearer_token_file=str(tmp_path / "token"))

    assert not caplog.records


def test_a_token_is_read_again_when_its_file_changes(serve, tmp_path, caplog):
    file = tmp_path / "token"
    file.write_text("first")
    served = serve(bearer_token_file=str(file))
    assert served.get("/metrics", Authorization="Bearer first")[0] == 200

    file.write_text("the second")
    assert served.get("/metrics", Authorization="Bearer first")[0] == 401
    assert served.get("/metrics", Authorization="Bearer the second")[0] == 200
    file.unlink()
    assert served.get("/metrics", Authorization="Bearer the second")[0] == 200
    assert len(caplog.records) == 1


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer"])
def test_the_scheme_may_be_written_in_any_case(serve, tmp_path, scheme):
    (tmp_path / "token").write_text("s3cret")
    served = serve(bearer_token_file=str(tmp_path / "token"))

    assert served.get("/metrics", Authorization=f"{scheme} s3cret")[0] == 200
    assert served.get("/metrics", Authorization=f"{scheme} S3CRET")[0] == 401


def test_a_probe_needs_no_credentials(serve, tmp_path):
    (tmp_path / "token").write_text("s3cret")
    served = serve(bearer_token_file=str(tmp_path / "token"))

    assert served.get("/healthz")[0] == 200
    assert served.get("/recording")[0] == 401


@pytest.mark.parametrize(
    "request_text",
    [
        pytest.param(b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", id="huge request line"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000 + b"\r\n", id="huge head"),
        pytest.param(b"\x16\x03\x01\x00\xa5\x01\x00\x00", id="TLS to a plain port"),
        pytest.param(b"nonsense\r\n\r\n", id="no HTTP"),
        pytest.param(b"GET http://[::1 HTTP/1.1\r\n\r\n", id="bad address"),
    ],
)
def test_malformed_requests_are_refused_and_the_next_is_served(serve, request_text):
    served = serve()
    with socket.create_connection(("127.0.0.1", served.exporter.port), timeout=5) as client:
        try:
            client.sendall(request_text)
            client.shutdown(socket.SHUT_WR)
            answer = client.recv(100)
        except OSError:
            answer = b""

    assert b"200 OK" not in answer
    assert served.get("/healthz")[0] == 200


def test_basic_auth_and_bearer_let_in_who_knows_the_secret(serve, tmp_path):
    password, token = tmp_path / "password", tmp_path / "token"
    password.write_text("geheim\n")
    token.write_text("abc\n")
    served = serve(
        basic_auth_user="me", basic_auth_password_file=str(password), bearer_token_file=str(token), start_worker=False
    )

    def status(header=None):
        return served.get("/metrics", **({"Authorization": header} if header else {}))[0]

    assert [status(), status("Basic bWU6Z2VoZWlt"), status("Bearer abc")] == [401, 200, 200]
    assert [status("Bearer abcd"), status("Basic eDp5"), status("\xff")] == [401, 401, 401]


def test_our_own_commands_give_the_secret_that_the_settings_name(serve, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("abc\n")
    served = serve(
        basic_auth_user="me", basic_auth_password_file=str(secret), bearer_token_file=str(secret), start_worker=False
    )
    address = f"http://127.0.0.1:{served.exporter.port}/recording"
    basic = {"LEDGEROPS_BASIC_AUTH_USER": "me", "LEDGEROPS_BASIC_AUTH_PASSWORD_FILE": str(secret)}

    assert ask(address, environ={"LEDGEROPS_BEARER_TOKEN_FILE": str(secret)})[0] is not None
    assert ask(address, environ=basic)[0] is not None
    with pytest.raises(UserError, match="requires credentials; set LEDGEROPS_BEARER_TOKEN_FILE, or"):
        ask(address, environ={})
    with pytest.raises(UserError, match="cannot read nowhere: no such file or directory"):
        ask(address, environ={"LEDGEROPS_BEARER_TOKEN_FILE": "nowhere"})


@pytest.mark.parametrize("command", [["status", "--once"], ["diagnose"]], ids=["status", "diagnose"])
def test_commands_take_address_and_credentials_from_the_settings_file(serve, tmp_path, monkeypatch, capsys, command):
    secret = tmp_path / "secret"
    secret.write_text("abc\n")
    served = serve(bearer_token_file=str(secret), start_worker=False)
    settings = tmp_path / "ledgerops.toml"
    settings.write_text(f'port = {served.exporter.port}\nbearer_token_file = "{secret}"\n')
    for name in [name for name in os.environ if name.startswith("LEDGEROPS_")]:
        monkeypatch.delenv(name)

    served.see()
    monkeypatch.chdir(tmp_path)
    assert main(command) != 2
    capsys.readouterr()
    settings.write_text(f"port = {served.exporter.port}\n")
    assert main(command) == 2
    assert "requires credentials" in capsys.readouterr().err


def test_credentials_are_given_to_no_other_address(tmp_path):
    """A server that sends elsewhere is not followed."""
    secret = tmp_path / "secret"
    secret.write_text("abc")

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(UserError, match="answers 302 found; is it an exporter"):
            ask(f"http://127.0.0.1:{server.server_port}", environ={"LEDGEROPS_BEARER_TOKEN_FILE": str(secret)})
        server.shutdown()


def test_an_answer_that_is_an_error_is_not_left_open():
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, f"http://127.0.0.1:{server.getsockname()[1]}")
        connection, _ = server.accept()
        with connection:
            connection.settimeout(60)
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nhello")
            told = asked.exception()

            assert connection.recv(1) == b""
    assert "answers 503: it gets too many requests at the moment; try again" in str(told)


def test_an_empty_secret_is_refused(tmp_path):
    token = tmp_path / "token"
    token.write_text("\n")

    with pytest.raises(UserError, match="token is empty; put the secret there"):
        Exporter(Config(port=0, bearer_token_file=str(token)), None, SelfStats())


@pytest.fixture
def ca(tmp_path):
    return authority(tmp_path)


def test_tls_serves_and_a_silent_client_does_not_hold_others_up(serve, ca):
    made = certificate_of(ca, "server")
    served = serve(tls_certificate=made.certificate, tls_key=made.key)
    context = ssl.create_default_context(cafile=ca.certificate)
    with socket.create_connection(("127.0.0.1", served.exporter.port)):
        status, _, body = served.get("/healthz", context=context)

    assert (status, body) == (200, b"ok\n")
    assert served.exporter.url.startswith("https://")


def test_where_client_certificates_are_asked_for_only_those_of_the_authority_are_let_in(
    serve, ca, tmp_path, monkeypatch
):
    (tmp_path / "elsewhere").mkdir()
    server, client = certificate_of(ca, "server"), certificate_of(ca, "client")
    foreign = certificate_of(authority(tmp_path / "elsewhere"), "client")
    served = serve(tls_certificate=server.certificate, tls_key=server.key, tls_client_ca=ca.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", ca.certificate)

    def body_for(shown):
        environ = (
            {"LEDGEROPS_CLIENT_CERTIFICATE": shown.certificate, "LEDGEROPS_CLIENT_KEY": shown.key} if shown else {}
        )
        return ask(f"{served.exporter.url}/healthz", environ=environ)[0]

    assert body_for(client) == b"ok\n"
    for stranger in (None, foreign):
        with pytest.raises(OSError):
            body_for(stranger)


def test_a_certificate_that_is_renewed_is_served_without_a_restart(serve, ca):
    first, second = certificate_of(ca, "first"), certificate_of(ca, "second")
    served = serve(tls_certificate=first.certificate, tls_key=first.key)

    def name():
        context = ssl.create_default_context(cafile=ca.certificate)
        with (
            socket.create_connection(("127.0.0.1", served.exporter.port), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
        ):
            return dict(*client.getpeercert()["subject"])["commonName"]

    assert name() == "first"
    shutil.copy(second.key, first.key)
    shutil.copy(second.certificate, first.certificate)
    assert name() == "second"


def test_a_certificate_that_is_none_is_named(tmp_path):
    with pytest.raises(UserError, match="cannot use the certificate"):
        Exporter(Config(port=0, tls_certificate=str(tmp_path / "absent.pem")), None, SelfStats())


def test_every_series_has_the_application_as_a_label(serve):
    served = serve(start_worker=False, app="billing", expected_queries=("never_ran",))
    served.see()
    text = served.get("/metrics")[2].decode()

    samples_of = [(sample.name, sample.labels) for family in parse_text(text) for sample in family.samples]
    assert "ledgerops_batches_total" in {name for name, _ in samples_of}
    assert [name for name, labels in samples_of if labels.get("app") != "billing"] == []
    assert 'ledgerops_query_active{query="never_ran",app="billing"} 0.0' in text
    assert json.loads(served.get("/diagnosis")[2])["app"] == "billing"


def test_an_application_of_unknown_name_has_no_such_label(serve):
    served = serve()

    assert b"app=" not in served.get("/metrics")[2]
    assert "app" not in json.loads(served.get("/diagnosis")[2])


def test_the_answer_of_an_empty_worker_is_well_formed():
    for kind, parse in ((TEXT, parse_text), (OPENMETRICS, parse_openmetrics)):
        worker = Worker(EventQueue(SelfStats()), QueryRegistry(Diagnoser), SelfStats())
        text = render(published(worker.snapshot, SelfStats()), T0, kind)
        assert "ledgerops_build_info" in {name for name, _ in samples(text.decode(), parse)}
