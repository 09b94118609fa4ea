"""A TCP proxy that can be made slow, narrow or dead while connections go through it.

It has the faults of Toxiproxy (https://github.com/Shopify/toxiproxy, "Toxics") that a broker's clients can meet, in a
thread of its own. A Kafka broker must advertise the proxy's port: see `Kafka(proxied=...)`.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ledgerops.servers.process import free_port

PIECE_BYTES = 16 * 1024  # read at once: what a narrow line sends in one go must stay well below a second of it
MAX_HELD_PIECES = 64  # on their way in each direction of a connection; then the sender has to wait


@dataclass(frozen=True)
class Toxics:
    """What happens to the traffic of every connection, old and new."""

    latency: float = 0.0  # seconds that each answer takes longer
    jitter: float = 0.0  # seconds by which that goes up and down, evenly
    upload: float | None = None  # bytes a second that each connection may send, as with a quota for producers
    down: bool = False  # connections are cut, and new ones refused


class Proxy:
    """Forwards 127.0.0.1:`port` to 127.0.0.1:`target` from entering the context until leaving it. `answers` is how many
    bytes have come back. May be used from any thread."""

    def __init__(self, target: int = 0, seed: int = 1) -> None:
        self.port = free_port()
        self.target = target
        self.toxics = Toxics()
        self.answers = 0
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._cut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def set(self, **toxics: Any) -> None:
        """Changes some of the `Toxics`; they hold for what is sent from now on."""
        self._run(self._change(replace(self.toxics, **toxics)))

    def heal(self) -> None:
        """Removes all toxics."""
        self._run(self._change(Toxics()))

    @contextmanager
    def with_toxics(self, **toxics: Any) -> Iterator[None]:
        """Sets some toxics for a while."""
        self.set(**toxics)
        yield
        self.heal()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _change(self, toxics: Toxics) -> None:
        was, self.toxics = self.toxics, toxics
        if toxics.down and not was.down:
            await self._cut()
        if was.down and not toxics.down:
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        forth = None
        try:
            server, forth = await asyncio.open_connection("127.0.0.1", self.target)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._forward(client, forth, to_target=True))
                both.create_task(self._forward(server, back, to_target=False))
        except* (OSError, asyncio.CancelledError):
            pass  # the closed connection tells one end about the other
        finally:
            self._connections.discard(task)
            for writer in (back, forth):
                if writer is not None:
                    writer.transport.abort() if self.toxics.down else writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to_target: bool) -> None:
        """Reading does not wait for what is on its way: latency must not make the line narrow."""
        way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(MAX_HELD_PIECES)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._take(reader, way, to_target))
            both.create_task(self._deliver(way, writer, to_target))

    async def _take(
        self, reader: asyncio.StreamReader, way: asyncio.Queue[tuple[float, bytes]], to_target: bool
    ) -> None:
        piece = b"."
        while piece:
            piece = await reader.read(PIECE_BYTES)
            late = 0.0 if to_target else self._late()
            await way.put((self._loop.time() + late, piece))

    async def _deliver(
        self, way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter, to_target: bool
    ) -> None:
        while True:
            due, piece = await way.get()
            await asyncio.sleep(max(0.0, due - self._loop.time()))
            if self.toxics.upload and to_target:
                await asyncio.sleep(len(piece) / self.toxics.upload)
            if not piece:
                writer.write_eof()
                return
            if not to_target:
                self.answers += len(piece)
            writer.write(piece)
            await writer.drain()

    def _late(self) -> float:
        spread = self.toxics.jitter * self._random.uniform(-1.0, 1.0)
        return max(0.0, self.toxics.latency + spread)
