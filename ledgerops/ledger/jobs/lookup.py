"""A keyed lookup: rows of a database table, many keys in one question, remembered for a while.

Each Python worker has its own connection and cache, which outlive a batch because Spark reuses its workers. A key is
asked for again once its entry is older than the time to live, found or not, so a change in the table is seen after at
most that time. A database that is away is asked again with growing pauses for MAX_OUTAGE_SECONDS; then the batch fails,
and nothing of it is lost: the next start of the query repeats it.
"""

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from ledgerops.ledger.jobs.databases import Database, LookupFailed, Table, Unreachable, Values, open_database

TTL_SECONDS = 10.0
MAX_ENTRIES = 100_000  # of a worker; some 300 bytes each
MAX_OUTAGE_SECONDS = 120.0  # a database server is back within one minute after a restart
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 5.0  # between two attempts


class Lookup:
    """Rows by key from `database`, remembered for `ttl` seconds; it may be away for `max_outage`. Not thread-safe."""

    def __init__(
        self,
        database: Database,
        *,
        ttl: float = TTL_SECONDS,
        capacity: int = MAX_ENTRIES,
        max_outage: float = MAX_OUTAGE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._database = database
        self._ttl, self._capacity, self._max_outage = ttl, capacity, max_outage
        self._clock, self._wait = clock, wait
        # key -> instant of the question and its answer, oldest first; None: there is no such row
        self._known: dict[str, tuple[float, Values | None]] = {}

    def rows(self, keys: Iterable[str]) -> dict[str, Values | None]:
        """The row of each key, None where there is none. Raises LookupFailed when the database stays away."""
        self._forget()
        found, missing = {}, []
        for key in dict.fromkeys(keys):
            entry = self._known.get(key)
            if entry is None:
                missing.append(key)
            else:
                found[key] = entry[1]
        if missing:
            asked = self._clock()  # before the question: what changes while it is answered is not older than the TTL
            answer = self._fetch(missing)
            for key in missing:
                found[key] = answer.get(key)
                self._known[key] = (asked, found[key])
            while len(self._known) > self._capacity:
                del self._known[next(iter(self._known))]
        return found

    def _forget(self) -> None:
        """Drops what is too old. Entries lie in the order of their questions, so the first fresh one ends it."""
        oldest = self._clock() - self._ttl
        while self._known:
            key = next(iter(self._known))
            if self._known[key][0] > oldest:
                return
            del self._known[key]

    def _fetch(self, keys: Sequence[str]) -> Mapping[str, Values]:
        end = self._clock() + self._max_outage
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return self._database.fetch(keys)
            except Unreachable as problem:
                if self._clock() + pause > end:
                    raise LookupFailed(
                        f"cannot look up {self._database.label}: no answer in {self._max_outage:g} s ({problem}); "
                        "start the query again when the database is back; nothing is lost"
                    ) from None
            self._wait(pause * random.uniform(0.5, 1.0))  # or all workers would come back at the same instant
            pause = min(2 * pause, MAX_PAUSE_SECONDS)


@lru_cache(maxsize=8)
def open_lookup(url: str, table: Table, ttl: float = TTL_SECONDS) -> Lookup:
    """This process's lookup of `table`; nothing is connected before the first question. UserError for another URL."""
    return Lookup(open_database(url, table), ttl=ttl)
