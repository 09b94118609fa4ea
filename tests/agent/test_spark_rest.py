"""Spark's REST interface over a connection that is kept, against a real server on loopback."""

import threading
from contextlib import contextmanager
from urllib.error import HTTPError

import pytest

from ledgerops.agent.spark_rest import SparkRest
from tests.serving import Quiet, serving


@contextmanager
def server(answer, protocol="HTTP/1.1"):
    """`answer` is a function of the handler. Yields the REST interface and the list of its connections' ports."""
    ports = []

    class Handler(Quiet):
        protocol_version = protocol

        def do_GET(self):
            ports.append(self.client_address[1])
            answer(self)

    with serving(Handler) as running:
        rest = SparkRest(running.url, "app-1")
        yield rest, ports
        rest.close()


def send(handler, body=b"[1]", status=200, **headers):
    handler.send_response(status)
    for name, value in {"Content-Length": len(body), **headers}.items():
        handler.send_header(name, str(value))
    handler.end_headers()
    handler.wfile.write(body)


def test_one_connection_serves_all_requests():
    with server(send) as (rest, ports):
        assert [rest.get("/jobs/1"), rest.get("/jobs/2")] == [[1], [1]]

    assert len(set(ports)) == 1


def test_two_threads_have_a_connection_each():
    both = threading.Barrier(2)

    def waits(handler):
        both.wait(30)
        send(handler)

    with server(waits) as (rest, ports):
        other = threading.Thread(target=rest.get, args=("/jobs/1",))
        other.start()
        rest.get("/jobs/2")
        other.join()

    assert len(set(ports)) == 2


def test_once_it_is_closed_no_connection_is_kept():
    with server(send) as (rest, ports):
        rest.get("/jobs/1")
        rest.close()
        assert [rest.get("/jobs/1"), rest.get("/jobs/1")] == [[1], [1]]

    assert len(set(ports)) == 3


def test_a_connection_that_comes_back_just_when_it_is_closed_does_not_stay_open():
    class ClosedMeanwhile(list):
        def append(self, connection):
            rest.close()
            super().append(connection)

    with server(send) as (rest, _):
        rest._idle = ClosedMeanwhile()
        assert rest.get("/jobs/1") == [1]

        assert rest._idle == []


def test_a_connection_that_the_server_closed_meanwhile_is_opened_anew():
    def closes(handler):
        send(handler)
        handler.close_connection = True  # without saying so

    with server(closes) as (rest, ports):
        assert [rest.get("/jobs/1"), rest.get("/jobs/2")] == [[1], [1]]

    assert len(set(ports)) == 2


def test_a_server_that_never_answers_properly_is_asked_once():
    def nothing(handler):
        handler.close_connection = True

    with server(nothing) as (rest, ports), pytest.raises(OSError, match="without response"):
        rest.get("/jobs/1")

    assert len(ports) == 1


def test_what_is_no_http_is_an_error_of_the_system():
    def noise(handler):
        handler.wfile.write(b"SSH-2.0-OpenSSH\r\n")
        handler.close_connection = True

    with server(noise) as (rest, _), pytest.raises(OSError, match="BadStatusLine"):
        rest.get("/jobs/1")


def test_an_error_has_its_status_and_the_connection_goes_on():
    def missing(handler):
        send(handler, b"no such stage", 404) if "stages" in handler.path else send(handler)

    with server(missing) as (rest, ports):
        with pytest.raises(HTTPError) as found:
            rest.get("/stages/9")
        assert rest.get("/jobs/1") == [1]

    assert found.value.code == 404
    assert len(set(ports)) == 1


def test_where_another_address_answers_it_is_asked_from_then_on():
    def elsewhere(handler):
        if handler.path.startswith("/proxy"):
            send(handler, b"[2]")
        else:
            send(handler, b"", 302, Location=f"/proxy{handler.path}")

    with server(elsewhere) as (rest, _):
        assert [rest.get("/jobs/1"), rest.get("/jobs/2")] == [[2], [2]]


def test_an_answer_that_is_too_long_leaves_nothing_for_the_next(monkeypatch):
    monkeypatch.setattr("ledgerops.agent.spark_rest.MAX_ANSWER_BYTES", 10)

    def long(handler):
        send(
            handler, b"[" + b" " * 1000 + b"3]" if "stages" in handler.path else b"[1]" + b" " * 7
        )  # as long as it may be

    with server(long) as (rest, _):
        with pytest.raises(ValueError, match="more than 10 bytes"):
            rest.get("/stages/9")
        assert rest.get("/jobs/1") == [1]


@pytest.mark.parametrize("url", ["driver:4040", "//driver:4040", "ftp://driver:4040", ""])
def test_an_address_without_http_is_refused_and_nothing_is_asked(url):
    with pytest.raises(ValueError, match="is no address of a Spark UI"):
        SparkRest(url, "app-1").get("/jobs/1")
