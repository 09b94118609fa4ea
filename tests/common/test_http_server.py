"""Slow, hostile and too many clients: bounded threads, memory and time, and room for others."""

import gzip
import http.server
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from ledgerops.common import http_handler, http_server
from ledgerops.common.http_access import Rules
from ledgerops.common.http_server import (
    LARGE_BYTES,
    MAX_BYTES,
    MAX_BYTES_PER_ADDRESS,
    MAX_REQUESTS,
    MAX_REQUESTS_PER_ADDRESS,
    THREAD_NAME,
    network,
)  # fmt: skip
from tests.certificates import authority, certificate_of
from tests.paths import ROOT
from tests.programs import until
from tests.tables import cases

OTHER_ADDRESS = "127.0.0.2"


@pytest.fixture
def patient(monkeypatch):
    """No time limit, so that what ends a connection is the lack of room."""
    monkeypatch.setattr(http_handler.Handler, "timeout", None)
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 3600.0)
    monkeypatch.setattr(http_server, "ANSWER_SECONDS", 3600.0)
    monkeypatch.setattr(http_server, "SPARED_SECONDS", 0.0)
    monkeypatch.setattr(http_server, "ROOM_SECONDS", 60.0)  # a thread takes long to end on a busy machine


@pytest.fixture
def large(serve, patient):
    """A server with answers of one address's share, of the largest that is small, and of the smallest that is large."""
    served = serve()
    served.pages["/large"] = lambda request: bytes(MAX_BYTES_PER_ADDRESS)
    served.pages["/small"] = lambda request: bytes(LARGE_BYTES)
    served.pages["/larger"] = lambda request: bytes(LARGE_BYTES + 1)
    return served


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_are_refused(serve, method):
    assert serve().get("/", method)[0] == 501


def test_head_has_no_body(serve):
    status, headers, body = serve().get("/", "HEAD")
    assert (status, headers["Content-Length"], body) == (200, "2", b"")


@pytest.mark.parametrize(
    ("size", "accepted", "packed"), [(1023, "gzip", False), (1024, "gzip", True), (1024, "br", False)]
)
def test_what_is_worth_it_is_compressed_for_those_who_understand_it(serve, size, accepted, packed):
    served = serve()
    served.pages["/"] = lambda request: bytes(size)
    _, headers, body = served.get(**{"Accept-Encoding": accepted})

    assert (headers["Content-Encoding"] == "gzip") is packed
    assert len(gzip.decompress(body) if packed else body) == size


def test_a_client_that_says_nothing_is_cut(serve, monkeypatch):
    monkeypatch.setattr(http_handler.Handler, "timeout", 0.2)
    [silent] = serve().opened()
    assert silent.recv(1) == b""


def test_a_client_that_trickles_is_cut_and_counted(serve, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.3)
    served = serve()
    [slow] = served.opened()
    slow.settimeout(0.05)

    def cut():
        try:
            slow.sendall(b"G")
            return slow.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    until(cut, 60, "the end of the connection")
    assert served.refused == {"slow": 1}


def test_an_answer_may_take_longer_than_a_request(serve, monkeypatch):
    served = serve(looks_every=0.01)

    def slow(request):
        monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.0)
        time.sleep(0.5)
        return b"whole"

    served.pages["/slow"] = slow
    assert served.get("/slow")[2] == b"whole"
    assert served.refused == {}


def test_clients_that_do_not_read_their_answers_leave_room_once_they_had_the_time_of_a_request(
    serve, patient, monkeypatch
):
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 1.0)
    served = serve(looks_every=3600.0, max_requests=2, max_per_address=1)
    served.pages["/large"] = lambda request: bytes(MAX_BYTES_PER_ADDRESS)
    assert [served.ask("/large", source)[1] for source in ("127.0.0.1", OTHER_ADDRESS)] == ["HTTP/1.1 200 OK"] * 2
    assert served.get()[0] == 503
    until(lambda: served.get()[0] == 200, 60, "room for a client of another's address")
    assert served.refused["slow"] == 1


def test_a_client_that_does_not_read_is_cut(serve, monkeypatch):
    monkeypatch.setattr(http_server, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(http_handler.Handler, "timeout", None)
    served = serve()
    served.pages["/large"] = lambda request: bytes(MAX_BYTES)
    client, _ = served.ask("/large")
    until(lambda: served.refused["slow"], 60, "the cut")
    assert len(client.makefile("rb").read()) < MAX_BYTES


@pytest.mark.parametrize("source", ["127.0.0.1", OTHER_ADDRESS])
def test_clients_that_never_finish_their_request_leave_room_for_those_that_do(serve, patient, source):
    served = serve()
    threads_before = threading.active_count()
    for client in served.opened(2 * MAX_REQUESTS):
        with suppress(OSError):  # cut already
            client.sendall(b"GET / HTTP/1.1\r\nA: b\r\n")
    cut = 2 * MAX_REQUESTS - MAX_REQUESTS_PER_ADDRESS
    until(lambda: served.refused["slow"] == cut, 60, "the slowest to be cut for others of their address")

    assert [served.ask(source=source)[1] for _ in range(10)] == ["HTTP/1.1 200 OK"] * 10
    assert threading.active_count() - threads_before <= MAX_REQUESTS
    assert set(served.refused) == {"slow"}


def test_a_new_connection_is_not_cut_for_a_newer_one(serve, patient, monkeypatch):
    monkeypatch.setattr(http_server, "SPARED_SECONDS", 3600.0)
    served = serve(max_per_address=2)
    spared, [refused] = served.opened(2), served.opened()

    assert refused.makefile("rb").read().startswith(b"HTTP/1.1 503 ")
    for client in spared:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(15) == b"HTTP/1.1 200 OK"
    assert served.refused == {"address": 1}


def test_without_room_for_any_address_the_next_is_refused(serve, patient):
    served, ready, done = serve(max_requests=2), threading.Semaphore(0), threading.Event()
    served.pages["/slow"] = lambda request: (ready.release(), done.wait(60), b"")[2]
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(served.get, "/slow") for _ in range(2)]
        for _ in waiting:
            assert ready.acquire(timeout=60)
        [refused] = served.opened()
        answer = refused.makefile("rb").read()
        done.set()
        assert {each.result()[0] for each in waiting} == {200}

    assert answer.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1" in answer
    assert served.refused == {"busy": 1}
    assert served.get()[0] == 200


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()], ids=["threads", "memory"])
def test_a_machine_without_a_free_thread_refuses_and_goes_on(serve, monkeypatch, error):
    def fail(thread):
        raise error

    served = serve(max_requests=1)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        [client] = served.opened()
        assert client.makefile("rb").read().startswith(b"HTTP/1.1 503 ")
    assert (served.get()[0], served.refused) == (200, {"threads": 1})


def test_headers_that_are_large_together_are_refused(serve):
    served = serve()
    [client] = served.opened()
    client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 60_000 + b"\r\nB: " + b"b" * 60_000)
    client.sendall(b"\r\nC: " + b"c" * (http_handler.MAX_HEAD_BYTES - 120_000))
    client.sendall(b"\r\n")

    assert client.recv(100).startswith(b"HTTP/1.1 431 ")
    assert served.get(A="a" * 60_000, B="b" * 60_000)[0] == 200


def test_an_address_gets_its_share_of_large_answers_and_others_theirs(large):
    slow, answer = large.ask("/large")
    assert answer == "HTTP/1.1 200 OK"
    assert (large.get("/larger")[0], large.refused) == (503, {"busy": 1})
    assert large.get("/small")[0] == 200
    other, answer = large.ask("/large", OTHER_ADDRESS)
    assert answer == "HTTP/1.1 200 OK"

    slow.close()
    other.close()
    until(lambda: large.get("/large")[0] == 200, 60, "the end of the slow client")


def test_all_addresses_together_get_no_more_than_there_is(large):
    answers = [large.ask("/large", f"127.0.0.{number}")[1] for number in (1, 2, 3)]
    assert answers == ["HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 503 Se"]


def test_a_slow_line_gets_a_large_answer_whole_over_tls(serve, tmp_path, monkeypatch):
    """What is silent for `timeout` is cut, and not what takes longer in all."""
    monkeypatch.setattr(http_handler.Handler, "timeout", 1.5)
    pair = certificate_of(authority(tmp_path), "server")
    served = serve(Rules(host="127.0.0.1", certificate=pair.certificate, key=pair.key))
    served.pages["/large"] = lambda request: bytes(MAX_BYTES_PER_ADDRESS)
    plain, context = socket.socket(), ssl._create_unverified_context()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    plain.connect(("127.0.0.1", served.port))
    with context.wrap_socket(plain) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        began, got = time.monotonic(), 0
        while part := client.recv(65_536):
            got += len(part)
            time.sleep(0.004)
    assert got > MAX_BYTES_PER_ADDRESS
    assert time.monotonic() - began > 1.5


def test_nobody_else_is_cut_for_a_client_that_has_the_share_of_its_address(large, monkeypatch):
    other, _ = large.ask("/large", OTHER_ADDRESS)
    large.ask("/large")
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 1.0)
    until(lambda: large.get("/larger")[0] == 503 and large.refused["slow"], 60, "the cut of its own")
    assert len(other.makefile("rb").read()) > MAX_BYTES_PER_ADDRESS
    assert large.refused["slow"] == 1


def test_large_answers_that_nobody_takes_leave_their_room_once_they_had_the_time_of_a_request(large, monkeypatch):
    for source in ("127.0.0.1", OTHER_ADDRESS):
        large.ask("/large", source)
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 2.0)
    assert large.get("/larger")[0] == 503
    until(lambda: large.get("/larger")[0] == 200, 60, "room for another large answer")


def test_a_large_answer_that_is_the_only_one_is_sent(large):
    large.pages["/huge"] = lambda request: bytes(2 * MAX_BYTES)
    assert len(large.get("/huge")[2]) == 2 * MAX_BYTES


OUT_OF_DESCRIPTORS = """
import json, os, resource, socket, time
from tests.common.served import Served

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
client.connect(("127.0.0.1", served.port))
client.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
clock = time.pthread_getcpuclockid(served.thread.ident)
used = []
for _ in range(4):
    began = time.clock_gettime(clock)
    time.sleep(0.5)
    used.append(time.clock_gettime(clock) - began)
for each in held:
    os.close(each)
client.settimeout(60)
answer = client.recv(15).decode()
served.close()
print(json.dumps([min(used), answer]))
"""


def test_a_process_without_free_descriptors_loses_no_core_and_the_client_is_answered_later():
    command = [sys.executable, "-c", OUT_OF_DESCRIPTORS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=True)
    used, answer = json.loads(done.stdout)

    assert used < 0.1, "CPU seconds of the quietest half second, of which a loop would take nearly all"
    assert answer == "HTTP/1.1 200 OK"


def test_a_lack_of_memory_ends_one_request_and_not_the_server(serve, monkeypatch):
    served, failed = serve(), threading.Event()
    usual = http.server.HTTPServer.get_request

    def fail(server):
        if not failed.is_set():
            failed.set()
            raise MemoryError
        return usual(server)

    monkeypatch.setattr(http.server.HTTPServer, "get_request", fail)

    assert served.get()[0] == 200
    assert failed.is_set()


@cases(
    "request_text",
    ("huge request line", b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n"),
    ("huge head", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000 + b"\r\n"),
    ("TLS to a plain port", b"\x16\x03\x01\x00\xa5\x01\x00\x00"),
    ("no HTTP", b"nonsense\r\n\r\n"),
)
def test_malformed_requests_are_refused_and_the_next_is_served(serve, request_text):
    served = serve()
    [client] = served.opened()
    answer = b""
    with suppress(OSError):
        client.sendall(request_text)
        client.shutdown(socket.SHUT_WR)
        answer = client.recv(100)

    assert b"200 OK" not in answer
    assert served.get()[0] == 200


@cases(
    "content, options, status",
    ("as long as allowed", b"12345", {}, 200),
    ("longer", b"123456", {}, 413),
    ("far longer", b"1" * 10_000, {}, 413),
    ("from a web page", b"1", {"Origin": "http://evil.example"}, 403),
    ("without a length", b"1", {"Content-Length": "x"}, 411),
    ("a digit that is none", b"1", {"Content-Length": "²"}, 411),
    ("a length below nothing", b"1", {"Content-Length": "-1"}, 411),
)
def test_a_body_is_taken_up_to_its_limit(serve, content, options, status):
    served = serve(max_body_bytes=5)
    served.pages["/"] = lambda request: request.body
    found = served.get("/", "POST", body=content, **options)

    assert found[0] == status
    assert (found[2] == content) is (status == 200)


def served_threads():
    return [thread for thread in threading.enumerate() if thread.name == THREAD_NAME]


def test_threads_are_kept_and_end_with_the_server(serve):
    until(lambda: not served_threads(), 60, "the end of those of other tests")
    served = serve(max_requests=2)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: served.ask()[0].close(), range(100)))
    until(lambda: served.get()[0] == 200, 60, "a free place")
    assert 1 <= len(served_threads()) <= 2
    served.close()

    until(lambda: not served_threads(), 60, "the end of the threads")


def test_a_server_that_waits_for_a_client_ends_at_once(serve):
    served = serve(looks_every=3600.0)
    assert served.get()[0] == 200
    ending = threading.Thread(target=served.server.shutdown, daemon=True)
    ending.start()
    ending.join(60)
    assert not ending.is_alive() and not served.thread.is_alive()


@pytest.mark.parametrize("path", ["/", "/slow"])
def test_closing_ends_the_listening_whatever_clients_do(serve, path):
    served, done = serve(), threading.Event()
    served.pages["/slow"] = lambda request: (done.wait(60), b"")[1]
    clients = served.opened(5)
    clients[0].sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    served.server.shutdown()
    served.server.server_close()
    try:
        served.thread.join(60)
        assert not served.thread.is_alive()
        with pytest.raises(ConnectionRefusedError):
            served.opened()
    finally:
        done.set()


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:DB8:1:3::1", "2001:db8:1:3::"),
        ("fe80::1%eth0", "fe80::"),
        pytest.param("::ffff:192.0.2.7", "::ffff:192.0.2.7", id="IPv4 at a socket of both kinds"),
        pytest.param("not:an:address", "not:an:address", id="none"),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address_and_one_of_ipv4_as_itself(host, counted):
    assert network(host) == counted
