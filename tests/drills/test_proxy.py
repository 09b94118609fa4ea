import socket
import time
from contextlib import contextmanager

import pytest

from ledgerops.drills.harness.proxy import Proxy
from tests.serving import talking

BLOCK = b"x" * 40_000
TRIES = 30


@pytest.fixture
def echo():
    """The port of a server that sends back what it gets."""

    def send_back(connection):
        while piece := connection.recv(65_536):
            connection.sendall(piece)

    with talking(send_back) as port:
        yield port


@pytest.fixture
def proxy(echo):
    with Proxy(echo) as made:
        yield made


@contextmanager
def connected(proxy, timeout=30.0):
    with socket.create_connection(("127.0.0.1", proxy.port), timeout) as connection:
        yield connection


def answered(connection, sent=b"hello"):
    """Seconds until all that was sent has come back."""
    began, got = time.monotonic(), b""
    connection.sendall(sent)
    while len(got) < len(sent):
        got += (piece := connection.recv(65_536))
        assert piece, "the connection was closed"
    assert got == sent
    return time.monotonic() - began


def lasts(work, least, most):
    """Whether it lasts `least` each time and less than `most` once: a busy machine makes it longer, never shorter."""
    for _ in range(TRIES):
        seconds = work()
        assert seconds >= least
        if seconds < most:
            return True
    return False


def test_all_that_is_sent_comes_back_unchanged(proxy):
    with connected(proxy) as one, connected(proxy) as other:
        assert lasts(lambda: answered(one, bytes(range(256)) * 4_000), 0.0, 2.0)
        assert lasts(lambda: answered(other), 0.0, 0.2)


def test_each_answer_takes_longer_by_the_latency(proxy):
    with connected(proxy) as connection:
        proxy.set(latency=0.3)
        assert lasts(lambda: answered(connection), 0.3, 0.5)
        assert lasts(lambda: answered(connection, BLOCK * 10), 0.3, 1.0)  # once, not for each piece
        proxy.heal()
        assert lasts(lambda: answered(connection), 0.0, 0.2)


def test_jitter_makes_some_answers_later_than_others(proxy):
    with connected(proxy) as connection:
        proxy.set(latency=0.1, jitter=0.1)
        times = [answered(connection) for _ in range(12)]
    assert max(times) - min(times) > 0.05


def test_a_quota_holds_back_what_is_sent_and_not_what_comes_back(proxy):
    proxy.set(upload=100_000)
    with connected(proxy) as connection:
        assert lasts(lambda: answered(connection, BLOCK), 0.35, 1.5)
        assert lasts(lambda: answered(connection), 0.0, 0.3)


def test_a_line_that_is_down_cuts_and_refuses_until_it_is_up_on_the_same_port(proxy):
    with connected(proxy) as connection:
        answered(connection)
        proxy.set(down=True)
        with pytest.raises(OSError), connected(proxy):
            pass
        try:
            assert connection.recv(10) == b""
        except ConnectionResetError:
            pass
    proxy.set(down=False)
    with connected(proxy) as connection:
        assert lasts(lambda: answered(connection), 0.0, 0.2)


def test_a_target_that_is_not_there_closes_the_connection():
    with Proxy(1) as proxy, connected(proxy) as connection:
        assert connection.recv(10) == b""


def test_a_client_that_leaves_ends_the_connection_to_the_target(proxy):
    with connected(proxy) as connection:
        connection.sendall(b"bye")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(10) == b"bye"
        assert connection.recv(10) == b""
