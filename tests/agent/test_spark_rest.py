"""Spark's REST interface, against a real server on loopback."""

from contextlib import contextmanager
from urllib.error import HTTPError

import pytest

from ledgerops.agent.spark_rest import SparkRest
from tests.serving import Background, Quiet


@contextmanager
def server(answer, *details, **headers):
    """`answer` is a function of the handler. Yields the REST interface and the list of what it was asked."""
    asked = []

    class Handler(Quiet):
        def do_GET(self):
            asked.append(self.path)
            answer(self, *details, **headers)

    with Background(Handler) as running:
        yield SparkRest(running.url, "app-1"), asked


def send(handler, body=b"[1]", status=200, **headers):
    handler.reply(status, body, {name: str(value) for name, value in headers.items()})


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with server(send) as (rest, asked):
        assert rest.executors() == [1]
    assert asked == ["/api/v1/applications/app-1/allexecutors"]


def test_what_is_no_http_is_an_error_of_the_system():
    def noise(handler):
        handler.wfile.write(b"SSH-2.0-OpenSSH\r\n")
        handler.close_connection = True

    with server(noise) as (rest, _), pytest.raises(OSError, match="BadStatusLine"):
        rest.executors()


def test_an_address_where_nothing_listens_is_named():
    with pytest.raises(OSError, match=r"^http://127\.0\.0\.1:9/api/v1/applications/app-1: .*refused"):
        SparkRest("http://127.0.0.1:9", "app-1").executors()


def test_a_stage_that_spark_does_not_keep_is_none_and_any_other_error_has_its_status():
    with server(send, b"no such stage", 404) as (rest, _):
        assert rest.stage(9, with_tasks=True) is rest.job(9) is None
    with server(send, b"busy", 503) as (rest, _), pytest.raises(HTTPError) as found:
        rest.stage(9, with_tasks=True)
    assert found.value.code == 503


def test_where_another_address_answers_it_is_asked():
    def elsewhere(handler):
        if handler.path.startswith("/proxy"):
            send(handler, b"[2]")
        else:
            send(handler, b"", 302, Location=f"/proxy{handler.path}")

    with server(elsewhere) as (rest, _):
        assert rest.executors() == [2]


def test_an_answer_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("ledgerops.agent.spark_rest.MAX_ANSWER_BYTES", 10)
    with server(send, b"[1]" + b" " * 7) as (rest, _):
        assert rest.executors() == [1]
    with server(send, b"[1]" + b" " * 8) as (rest, _), pytest.raises(ValueError, match="more than 10 bytes"):
        rest.executors()


@pytest.mark.parametrize("url", ["driver:4040", "//driver:4040", "ftp://driver:4040", "file:///", ""])
def test_an_address_without_http_is_refused_and_nothing_is_asked(url):
    with pytest.raises(ValueError, match="is no address of a Spark UI"):
        SparkRest(url, "app-1").executors()
