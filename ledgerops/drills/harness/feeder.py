"""Sends rows to a folder or a topic, as the control file says at each moment."""

import json
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from ledgerops.drills.harness.fault_control import FaultControl

MAX_KEYS = 50
TICK_SECONDS = 0.1
Send = Callable[[list[dict[str, Any]], float], None]  # rows, and the share of them for the first partition


class Feeder:
    """A thread that sends rows until it is closed.

    The values of `key` in the control file: `rate` (rows a second), `burst` (further rows, once), `every` (seconds
    between two files), `hot` (share of one key), `late` and `late_by` (share of late rows and by how many seconds),
    `pinned` (share of the rows in the first partition), `future` (one row is dated an hour ahead).
    """

    def __init__(self, control: FaultControl, key: str, send: Send) -> None:
        self._control, self._key, self._send = control, key, send
        self._chance = random.Random(key)
        self._rows_made = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"feeder of {key}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the thread and waits for its end."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        due, last, sent_at = 0.0, time.monotonic(), time.monotonic()
        burst_sent = future_sent = False
        while not self._closed.wait(TICK_SECONDS):
            load = self._control(self._key, {})
            moment = time.monotonic()
            due += float(load.get("rate", 0.0)) * (moment - last)
            last = moment
            if load.get("burst") and not burst_sent:  # rows that came while nothing was sent
                due += float(load["burst"])
                burst_sent = True
            if moment - sent_at < float(load.get("every", 0.5)) or due < 1:
                continue
            sent_at = moment
            count = int(due)
            due -= count
            rows = [self._row(load) for _ in range(count)]
            if load.get("future") and not future_sent:
                future_sent = True
                rows[0]["event_time"] = _iso(time.time() + 3600)
            try:
                self._send(rows, float(load.get("pinned", 0.0)))
            except Exception as error:
                print(f"feeder: {error}")

    def _row(self, load: dict[str, Any]) -> dict[str, Any]:
        self._rows_made += 1
        hot = self._chance.random() < float(load.get("hot", 0.0))
        late = self._chance.random() < float(load.get("late", 0.0))
        at = time.time() - (float(load.get("late_by", 60.0)) if late else 0.0)
        return {
            "id": str(self._rows_made),
            "key": "hot" if hot else str(self._rows_made % MAX_KEYS),
            "amount": self._rows_made % 997 / 10,
            "event_time": _iso(at),
        }


def to_folder(folder: Path) -> Send:
    """What sends rows to a folder: each call makes one file, which appears whole."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0

    def send(rows: list[dict[str, Any]], pinned: float) -> None:
        nonlocal count
        count += 1
        part = folder / f".part-{count:06}"
        part.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        part.rename(folder / f"part-{count:06}.json")

    return send


def to_topic(servers: str, topic: str, partitions: int) -> Send:
    """What sends rows to a topic: to its partitions in turn, but the pinned share to the first."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "log_level": 0})
    chance, turn = random.Random(topic), 0

    def send(rows: list[dict[str, Any]], pinned: float) -> None:
        nonlocal turn
        for row in rows:
            turn += 1
            partition = 0 if chance.random() < pinned else turn % partitions
            producer.produce(topic, json.dumps(row), partition=partition)
        producer.poll(0)

    return send


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
