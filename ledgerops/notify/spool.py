"""The queue on disk between webhook and senders: what was accepted is sent, whatever dies in between.

SQLite in WAL mode, one row an incident. A row leaves only after every sender has taken it. Bounded: when it is full the
oldest ticket makes room for a page; a page is refused only when all are pages, and Alertmanager then repeats it.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledgerops.errors import UserError

MOST = 1000  # incidents that wait
FORGET = (
    3.5 * 3600.0
)  # seconds for which a delivered incident is remembered: below Alertmanager's repeat_interval (4 h)
STALE = 7 * 86400.0  # seconds after which the beginning of an incident is that of another one
BACKOFF = (5.0, 15.0, 45.0, 120.0, 300.0)  # seconds between attempts; the last one from then on

SCHEMA = """
CREATE TABLE IF NOT EXISTS waiting (
    id INTEGER PRIMARY KEY, identity TEXT UNIQUE, grouped TEXT, severity TEXT, payload TEXT, due REAL,
    attempts INTEGER, delivered TEXT
);
CREATE TABLE IF NOT EXISTS sent (identity TEXT PRIMARY KEY, at REAL);
CREATE TABLE IF NOT EXISTS begun (grouped TEXT PRIMARY KEY, diagnosis TEXT, at REAL);
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    number: int
    payload: Mapping[str, Any]
    attempts: int
    delivered: tuple[str, ...]  # names of the senders that have taken it


class Spool:
    """Safe for threads of one process; two processes on one file exclude each other."""

    def __init__(self, file: Path, most: int = MOST) -> None:
        self._most = most
        self._sending = -1  # the row that is being sent: somebody may hear of it at any moment
        self._lock = threading.Lock()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._held = file.with_name(f"{file.name}.lock").open("w")
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._held.close()
            raise UserError(f"{file} is in use by another ledgerops notify; give another --queue") from None
        except OSError as error:
            raise UserError(f"cannot keep the queue in {file}: {error}; give another --queue") from None
        try:
            self._db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(SCHEMA)
        except sqlite3.Error as error:
            self._held.close()
            raise UserError(f"cannot keep the queue in {file}: {error}; give another --queue") from None

    def __len__(self) -> int:
        with self._lock:
            return int(self._db.execute("SELECT count(*) FROM waiting").fetchone()[0])

    def put(self, identity: str, group: str, severity: str, payload: Mapping[str, Any], now: float) -> bool:
        """Takes an incident; False when it waits already or was sent lately. Raises OverflowError when full.

        It takes the place of an older one of its group that nobody has heard of yet: that is no longer true.
        """
        with self._lock:
            self._db.execute("DELETE FROM sent WHERE at < ?", (now - FORGET,))
            known = self._db.execute(
                "SELECT 1 FROM sent WHERE identity = ? UNION SELECT 1 FROM waiting WHERE identity = ?",
                (identity, identity),
            ).fetchone()
            if known:
                return False
            self._db.execute(
                "DELETE FROM waiting WHERE grouped = ? AND delivered = '[]' AND id != ?", (group, self._sending)
            )
            if self._db.execute("SELECT count(*) FROM waiting").fetchone()[0] >= self._most:
                least = self._db.execute(
                    "SELECT id FROM waiting WHERE severity != 'critical' ORDER BY id LIMIT 1"
                ).fetchone()
                if least is None or severity != "critical":
                    raise OverflowError(f"{self._most} incidents wait already")
                self._db.execute("DELETE FROM waiting WHERE id = ?", least)
            self._db.execute(
                "INSERT INTO waiting (identity, grouped, severity, payload, due, attempts, delivered) "
                "VALUES (?, ?, ?, ?, ?, 0, '[]')",
                (identity, group, severity, json.dumps(payload), now),
            )
            return True

    def due(self, now: float) -> Waiting | None:
        """The next incident to send, pages first, and of a group the oldest first."""
        with self._lock:
            row = self._db.execute(
                "SELECT id, payload, attempts, delivered FROM waiting WHERE due <= ? "
                "AND id IN (SELECT min(id) FROM waiting GROUP BY grouped) ORDER BY severity != 'critical', id LIMIT 1",
                (now,),
            ).fetchone()
            self._sending = row[0] if row else -1
        return Waiting(row[0], json.loads(row[1]), row[2], tuple(json.loads(row[3]))) if row else None

    def done(self, number: int, now: float) -> None:
        """Every sender has taken it."""
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO sent SELECT identity, ? FROM waiting WHERE id = ?", (now, number))
            self._db.execute("DELETE FROM waiting WHERE id = ?", (number,))
            self._sending = -1

    def again(self, number: int, attempts: int, delivered: tuple[str, ...], now: float) -> float:
        """Some sender has not taken it: once more after the seconds that are returned."""
        wait = BACKOFF[min(attempts, len(BACKOFF) - 1)]
        with self._lock:
            self._db.execute(
                "UPDATE waiting SET due = ?, attempts = ?, delivered = ? WHERE id = ?",
                (now + wait, attempts + 1, json.dumps(delivered), number),
            )
            self._sending = -1
        return wait

    def remember(self, group: str, diagnosis: Mapping[str, Any], now: float) -> None:
        """The diagnosis with which a group's incident began, for the message that says what changed."""
        with self._lock:
            self._db.execute("DELETE FROM begun WHERE at < ?", (now - STALE,))
            self._db.execute("INSERT OR IGNORE INTO begun VALUES (?, ?, ?)", (group, json.dumps(diagnosis), now))

    def recall(self, group: str) -> Mapping[str, Any] | None:
        """What was remembered of the group, once: its incident is over."""
        with self._lock:
            row = self._db.execute("SELECT diagnosis FROM begun WHERE grouped = ?", (group,)).fetchone()
            self._db.execute("DELETE FROM begun WHERE grouped = ?", (group,))
        return json.loads(row[0]) if row else None

    def close(self) -> None:
        with self._lock:
            self._db.close()
            self._held.close()
