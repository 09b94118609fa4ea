"""The queue on disk between Alertmanager and the senders: an accepted alert survives a restart.

SQLite in WAL mode, one row per incident and sender. Every sender has a queue for each group of alerts, so a sender that
fails delays no other. Alertmanager repeats what was refused and sends all alerts of a group each time. Therefore a
full queue refuses instead of dropping anything, and a newer state of a group replaces an older one that was not sent.
Every `now` must come from one monotonic clock while the spool is open.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledgerops.common.files import locked, private
from ledgerops.errors import UserError
from ledgerops.notify.updates import REMINDER_SECONDS, Told

MAX_ROWS = 1000  # deliveries that wait, of each sender
INCIDENT_SECONDS = 7 * 86400.0  # how long an incident is kept after its last message
MAX_AGE_SECONDS = 86400.0  # after which a delivery is given up: an alert of yesterday needs no action
BACKOFF_SECONDS = (5.0, 15.0, 45.0, 120.0, 300.0)  # between attempts; the last one from then on

SCHEMA = """
CREATE TABLE IF NOT EXISTS queue (
    id INTEGER PRIMARY KEY, sender TEXT, grouped TEXT, identity TEXT, severity TEXT, payload TEXT, at REAL, due REAL,
    attempts INTEGER, UNIQUE (sender, identity)
);
CREATE TABLE IF NOT EXISTS delivered (sender TEXT, identity TEXT, at REAL, PRIMARY KEY (sender, identity));
CREATE INDEX IF NOT EXISTS queue_of_a_sender ON queue (sender, grouped, id, severity, due, at);
CREATE INDEX IF NOT EXISTS queue_by_identity ON queue (identity, sender);
CREATE INDEX IF NOT EXISTS delivered_by_identity ON delivered (identity, sender);
CREATE INDEX IF NOT EXISTS delivered_by_time ON delivered (at);
CREATE TABLE IF NOT EXISTS incidents (grouped TEXT PRIMARY KEY, began REAL, alerts TEXT, at REAL, diagnosis TEXT);
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One delivery: an incident that one sender has to send."""

    number: int
    identity: str
    payload: Mapping[str, Any]


class Spool:
    """The queues of `senders`, by name. Safe for threads of one process; a second process on the file is refused."""

    def __init__(self, file: Path, senders: Sequence[str], most: int = MAX_ROWS, now: float | None = None) -> None:
        self._senders = tuple(senders)
        self._most = most
        self._sent: set[int] = set()  # rows that were delivered, and that a full disk keeps in the queue
        self._sending: dict[str, int] = {}  # sender -> the row that it is sending: it may arrive at any moment
        self._lock = threading.Lock()
        with ExitStack() as opened:
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                held = locked(file.with_name(f"{file.name}.lock"))
                if held is None:
                    raise UserError(f"{file} is in use by another ledgerops notify; give another --queue")
                self._held = opened.enter_context(held)
                private(file).close()  # SQLite gives its other files the same rights
                self._db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.executescript(SCHEMA)
                self._adopt()
                self._forget_other_clock(time.time() if now is None else now)
            except (OSError, sqlite3.Error) as error:
                raise UserError(f"cannot keep the queue in {file}: {error}; give another --queue") from None
            opened.pop_all()

    def __len__(self) -> int:
        """Incidents that at least one sender has not delivered."""
        with self._lock:
            return int(self._db.execute("SELECT count(DISTINCT identity) FROM queue").fetchone()[0])

    def put(
        self,
        identity: str,
        group: str,
        severity: str,
        payload: Mapping[str, Any],
        now: float,
        told: Told | None = None,
    ) -> bool:
        """Accepts an incident for every sender; False when each has it waiting or has delivered it lately.

        `told` is what is known of its group once that is sent. Raises OverflowError when the queue of a sender is full:
        the others have accepted it, and it must come again.
        """
        with self._lock, self._transaction(now):
            self._db.execute("DELETE FROM delivered WHERE at < ?", (now - REMINDER_SECONDS,))
            known = {
                sender
                for (sender,) in self._db.execute(
                    "SELECT sender FROM delivered WHERE identity = ? UNION SELECT sender FROM queue WHERE identity = ?",
                    (identity, identity),
                )
            }
            owed = [sender for sender in self._senders if sender not in known]
            content = json.dumps(payload)
            full = [sender for sender in owed if not self._replace(sender, group, identity, severity, content, now)]
            if told is not None and not full:
                self._note(group, told)
        if full:
            raise OverflowError(f"the queue is full ({', '.join(full)}); send the alert again later")
        return bool(owed)

    def backlog(self, now: float) -> dict[str, tuple[int, float]]:
        """By sender: how many deliveries wait, and the age of the oldest in seconds, 0 without one."""
        with self._lock:
            rows = self._db.execute("SELECT sender, count(*), min(at) FROM queue GROUP BY sender").fetchall()
        found = {sender: (count, max(0.0, now - at)) for sender, count, at in rows}
        return {sender: found.get(sender, (0, 0.0)) for sender in self._senders}

    def due(self, sender: str, now: float) -> Waiting | None:
        """The next delivery of a sender: pages first, and the oldest of each group first."""
        with self._lock:
            found = self._due(sender, now, 1)
            self._sending[sender] = found[0].number if found else -1
        return found[0] if found else None

    def ahead(self, sender: str, now: float, count: int) -> list[Waiting]:
        """The next deliveries of a sender in their order, at most so many."""
        with self._lock:
            return self._due(sender, now, count)

    def done(self, sender: str, number: int, now: float) -> None:
        """The sender has delivered it. It is not due again, also when this raises because the disk is full."""
        with self._lock:
            self._sent.add(number)
            self._sending[sender] = -1
            with self._transaction(now):
                pass  # beginning one is enough: it takes what was sent out of the queue

    def again(self, sender: str, number: int, now: float) -> float | None:
        """Delivery failed: schedules the next attempt and returns the seconds until then, None when it is given up."""
        with self._lock:
            row = self._db.execute("SELECT attempts, at FROM queue WHERE id = ?", (number,)).fetchone()
            self._sending[sender] = -1
            if row is None or now - row[1] > MAX_AGE_SECONDS:
                self._db.execute("DELETE FROM queue WHERE id = ?", (number,))
                return None
            newer = "SELECT 1 FROM queue o JOIN queue n USING (sender, grouped) WHERE o.id = ? AND n.id > o.id"
            if self._db.execute(newer, (number,)).fetchone():  # which says what is true now
                self._db.execute("DELETE FROM queue WHERE id = ?", (number,))
                return 0.0
            wait = BACKOFF_SECONDS[min(row[0], len(BACKOFF_SECONDS) - 1)]
            self._db.execute("UPDATE queue SET due = ?, attempts = attempts + 1 WHERE id = ?", (now + wait, number))
        return wait

    def told(self, group: str) -> Told | None:
        """What the last message about a group of alerts said."""
        with self._lock:
            row = self._db.execute("SELECT began, alerts, at FROM incidents WHERE grouped = ?", (group,)).fetchone()
        return Told(row[0], json.loads(row[1]), row[2]) if row else None

    def remember(self, group: str, diagnoses: Mapping[str, Any]) -> None:
        """Keeps the first diagnoses of the incident of a group, for the message that says what changed."""
        with self._lock:
            self._db.execute(
                "UPDATE incidents SET diagnosis = coalesce(diagnosis, ?) WHERE grouped = ?",
                (json.dumps(diagnoses), group),
            )

    def recall(self, group: str) -> Mapping[str, Any]:
        """The first diagnoses of the latest incident of a group; empty where none was made."""
        with self._lock:
            row = self._db.execute("SELECT diagnosis FROM incidents WHERE grouped = ?", (group,)).fetchone()
        return json.loads(row[0]) if row and row[0] else {}

    def _note(self, group: str, told: Told) -> None:
        self._db.execute("DELETE FROM incidents WHERE at < ?", (told.at - INCIDENT_SECONDS,))
        self._db.execute(
            "INSERT INTO incidents (grouped, began, alerts, at) VALUES (?, ?, ?, ?) ON CONFLICT (grouped) "
            "DO UPDATE SET diagnosis = CASE WHEN began = excluded.began THEN diagnosis END, "
            "began = excluded.began, alerts = excluded.alerts, at = excluded.at",
            (group, told.began, json.dumps(told.alerts), told.at),
        )

    def close(self) -> None:
        """Closes the database and releases the file for another process."""
        with self._lock:
            self._db.close()
            self._held.close()

    @contextmanager
    def _transaction(self, now: float) -> Iterator[None]:
        """All or nothing, with what was sent: one that a full disk leaves open would stop every later one."""
        self._db.execute("BEGIN")
        try:
            for number in self._sent:  # before anything else: the number of a deleted row may be given again
                self._db.execute(
                    "INSERT OR REPLACE INTO delivered SELECT sender, identity, ? FROM queue WHERE id = ?", (now, number)
                )
                self._db.execute("DELETE FROM queue WHERE id = ?", (number,))
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._sent.clear()

    def _due(self, sender: str, now: float, count: int) -> list[Waiting]:
        sent = ",".join(map(str, self._sent))
        # the index has all that decides; the payload is read of these rows only
        rows = self._db.execute(
            "SELECT id, identity, payload FROM queue WHERE id IN (SELECT id FROM (SELECT min(id) AS id, "
            f"severity, due FROM queue WHERE sender = ? AND id NOT IN ({sent}) GROUP BY grouped) WHERE due <= ? "
            "ORDER BY severity != 'critical', id LIMIT ?) ORDER BY severity != 'critical', id",
            (sender, now, count),
        ).fetchall()
        return [Waiting(number, identity, json.loads(payload)) for number, identity, payload in rows]

    def _replace(self, sender: str, group: str, identity: str, severity: str, payload: str, now: float) -> bool:
        """Takes the place of what waits of the group; False, and nothing is changed, when the queue is full."""
        older = "sender = ? AND grouped = ? AND id != ?"
        which = (sender, group, self._sending.get(sender, -1))
        kept = self._db.execute(f"SELECT count(*) FROM queue WHERE sender = ? AND NOT ({older})", (sender, *which))
        if kept.fetchone()[0] >= self._most:
            return False
        self._db.execute(f"DELETE FROM queue WHERE {older}", which)
        self._db.execute(
            "INSERT OR IGNORE INTO queue (sender, grouped, identity, severity, payload, at, due, attempts) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
            (sender, group, identity, severity, payload, now, now),
        )
        return True

    def _forget_other_clock(self, now: float) -> None:
        """What an earlier process put into the future is due now: the clock may have been set since."""
        self._db.execute("UPDATE queue SET due = min(due, ?), at = min(at, ?)", (now, now))
        self._db.execute("UPDATE delivered SET at = min(at, ?)", (now,))
        self._db.execute("UPDATE incidents SET at = min(at, ?)", (now,))

    def _adopt(self) -> None:
        """What waits for a sender that is no longer configured goes to those that are, unless they have had it."""
        gone = f"sender NOT IN ({', '.join('?' * len(self._senders))})"
        for sender in self._senders:
            self._db.execute(
                "INSERT OR IGNORE INTO queue (sender, grouped, identity, severity, payload, at, due, attempts) "
                f"SELECT ?, grouped, identity, severity, payload, at, at, 0 FROM queue WHERE {gone} "
                "AND identity NOT IN (SELECT identity FROM delivered WHERE sender = ?) ORDER BY id",
                (sender, *self._senders, sender),
            )
        self._db.execute(f"DELETE FROM queue WHERE {gone}", self._senders)
