"""A load in locust's own statistics: records as requests, their lateness as response time.

An event for each record would cost more than sending it (13 µs and 6 µs), so counts are added ten times a second.
"""

import time
from typing import Any

import numpy as np
from locust.stats import bucket_response_time

from ledgerops.load.generator.accounting import SentCounts

METHOD = "PRODUCE"
REPORT_SECONDS = 0.1
RECORD_BYTES = 220  # of a transaction's value, on average: locust shows bytes


class Statistics:
    """Adds what is new in the counts of the senders to the statistics of locust."""

    def __init__(self, stats: Any, table: str) -> None:
        self._stats, self._table = stats, table
        self._lateness = np.zeros_like(SentCounts().lateness)
        self._produced = self._refused = 0
        self._counted_at = 0.0

    def count(self, sent: SentCounts, last: bool = False) -> None:
        """Adds what is new since the last time; ten times a second is enough, except for the `last` call."""
        now = time.time()
        if now - self._counted_at < REPORT_SECONDS and not last:
            return
        self._counted_at = now
        late = sent.lateness - self._lateness
        counts = {int(ms): int(late[ms]) for ms in np.flatnonzero(late)}
        more = sent.produced - self._produced
        if more and not counts:  # sent at once: there is no schedule to be late for
            counts = {0: more}
        refused = sent.refused - self._refused
        self._lateness, self._produced, self._refused = sent.lateness.copy(), sent.produced, sent.refused
        for entry in (self._stats.get(self._table, METHOD), self._stats.total):
            if more:
                _add(entry, counts, more, now)
            for _ in range(refused):
                entry.log_error(sent.problem)


def _add(entry: Any, counts: dict[int, int], more: int, now: float) -> None:
    """Does what locust's StatsEntry.log does, for `more` records at once."""
    second = int(now)
    if entry.use_response_times_cache and entry.last_request_timestamp and second > int(entry.last_request_timestamp):
        entry._cache_response_times(second - 1)
    entry.num_requests += more
    entry.num_reqs_per_sec[second] += more
    entry.last_request_timestamp = now
    entry.total_content_length += more * RECORD_BYTES
    for ms, count in counts.items():
        entry.total_response_time += ms * count
        entry.min_response_time = ms if entry.min_response_time is None else min(entry.min_response_time, ms)
        entry.max_response_time = max(entry.max_response_time, ms)
        entry.response_times[bucket_response_time(ms)] += count
