"""Receivers of OTLP that are in the way: each is a context that gives the endpoint, None for no receiver."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ledgerops.servers.process import free_port
from tests.otlp_receiver import OtlpReceiver

AWAY_SECONDS = 2.0


@contextmanager
def none() -> Iterator[str | None]:
    yield None


@contextmanager
def good() -> Iterator[str]:
    receiver = OtlpReceiver()
    yield receiver.url
    receiver.close()


@contextmanager
def away() -> Iterator[str]:
    """Comes after some seconds."""
    port, made = free_port(), list[OtlpReceiver]()
    timer = threading.Timer(AWAY_SECONDS, lambda: made.append(OtlpReceiver(port=port)))
    timer.start()
    yield f"http://127.0.0.1:{port}"
    timer.join()
    made[0].close()


@contextmanager
def refuses() -> Iterator[str]:
    yield f"http://127.0.0.1:{free_port()}"


def _raw(talk: Callable[[socket.socket], None]) -> Callable[[], object]:
    """A TCP server that does with each connection what `talk` does."""

    @contextmanager
    def receiver() -> Iterator[str]:
        listening = socket.create_server(("127.0.0.1", 0))

        def serve(peer: socket.socket) -> None:
            with peer:
                try:
                    talk(peer)
                except OSError:
                    pass

        def accept() -> None:
            while True:
                try:
                    peer = listening.accept()[0]
                except OSError:
                    return
                threading.Thread(target=serve, args=(peer,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.close()

    return receiver


def _hang(peer: socket.socket) -> None:
    while peer.recv(65536):
        pass


def _trickle(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        peer.sendall(b"x")
        time.sleep(0.1)


def _garbage(peer: socket.socket) -> None:
    peer.recv(65536)
    peer.sendall(bytes(range(256)) * 1000)


RECEIVERS = {
    "none": none,
    "good": good,
    "hangs": _raw(_hang),
    "refuses": refuses,
    "trickles": _raw(_trickle),
    "garbage": _raw(_garbage),
    "away": away,
}
