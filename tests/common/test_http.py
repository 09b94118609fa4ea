"""Requests end in time and in bounded memory, and no address with credentials in it is repeated."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ledgerops.common.http import ask
from ledgerops.errors import UserError
from tests.hostile import BODY_WITHOUT_END, HEAD_WITHOUT_END, dripping_server
from tests.refusals import refusal_of
from tests.serving import Background, Quiet


@pytest.mark.parametrize("begin", [HEAD_WITHOUT_END, BODY_WITHOUT_END], ids=["headers", "body"])
def test_an_answer_that_drips_ends_with_the_deadline_of_the_call(begin):
    with dripping_server(begin) as url:
        began = time.monotonic()
        with pytest.raises(TimeoutError, match=r"no answer within 0\.5 s"):
            ask(url, environ={}, seconds=0.5)

    assert time.monotonic() - began < 30


def test_an_answer_without_end_is_cut_by_its_size():
    with (
        dripping_server(BODY_WITHOUT_END, b"x" * 65_536, 0.0) as url,
        pytest.raises(OSError, match="more than 1000000"),
    ):
        ask(url, environ={}, max_bytes=1_000_000)


def test_an_answer_that_ends_early_is_none():
    with dripping_server(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", b"abc") as url:
        assert ask(url, environ={})[0] == b"abc"
    with (
        dripping_server(b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n", b"", 0.0) as url,
        pytest.raises(OSError, match=r"no answer within|timed out"),
    ):
        ask(url, environ={}, seconds=0.3)


@pytest.mark.parametrize("url", ["http://me:geheim@driver.example:9464", "https://geheim@driver.example"])
def test_credentials_in_an_address_are_refused_and_not_repeated(url):
    line = refusal_of(ask, f"{url}/status", environ={})
    assert line.startswith("the address of driver.example holds credentials; leave them out and set ")
    assert "geheim" not in line


def test_a_client_certificate_that_is_none_is_named(tmp_path):
    with pytest.raises(UserError, match=r"cannot use the client certificate .*absent.pem"):
        ask("https://127.0.0.1:1/", environ={"LEDGEROPS_CLIENT_CERTIFICATE": str(tmp_path / "absent.pem")})


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed_and_no_other_address_gets_the_credentials(tmp_path, status):
    (tmp_path / "token").write_text("geheim\n")
    asked = []

    class Elsewhere(Quiet):
        def do_GET(self):
            asked.append(self.headers["Authorization"])
            self.reply(status, headers={"Location": f"http://127.0.0.1:{other.server_port}/"})

    with (
        Background(Elsewhere) as server,
        Background(Elsewhere) as other,
        pytest.raises(UserError, match=f"answers {status} "),
    ):
        ask(f"{server.url}/", environ={"LEDGEROPS_BEARER_TOKEN_FILE": str(tmp_path / "token")})

    assert asked == ["Bearer geheim"]


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
