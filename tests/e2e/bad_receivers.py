"""Receivers of OTLP that are in the way: each is a context that gives the endpoint."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ledgerops.servers.process import free_port
from tests.hostile import dripping_server, silent_server
from tests.otlp_receiver import OtlpReceiver
from tests.serving import talking

AWAY_SECONDS = 2.0


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


@contextmanager
def garbage() -> Iterator[str]:
    def talk(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.sendall(bytes(range(256)) * 1000)

    with talking(talk) as port:
        yield f"http://127.0.0.1:{port}"


RECEIVERS = {each.__name__: each for each in (good, refuses, garbage, away)}
RECEIVERS |= {"hangs": silent_server, "trickles": dripping_server}
