"""Whether the cap on the rows of a batch holds back a query that has time for more of them."""

from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis.facts import growth
from ledgerops.diagnosis.facts.unread import MIN_LAG_SECONDS
from ledgerops.diagnosis.profile import Profile, on_rows, profile
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import CAP_BATCHES, ROOM_SHARE, cap_of, offsets_read

MIN_CAP_SHARE = 0.9  # of the cap: Spark divides it among the partitions, and rounds
SOON_SECONDS = 600.0  # a backlog that clears sooner needs no restart with another cap


class Held(NamedTuple):
    """A query that its rate limit holds back."""

    option: str
    cap: int  # offsets a batch
    seconds: float  # of a batch, the median
    left: int  # offsets
    lag: float  # seconds
    needed: float  # offsets a batch with which it would keep up
    share: float  # of what arrives that the cap does not let in
    profile: Profile  # that `needed` rests on


@once
def held_back(view: QueryView) -> Held | None:
    """Each batch reads what the cap allows and leaves rows behind, and with a higher cap the query would keep up."""
    cap, latest = cap_of(view), view.baseline.steady[-CAP_BATCHES:]
    if cap is None or len(latest) < CAP_BATCHES:
        return None
    found, load = profile(view), growth.load(view)
    if found is None or load is None or load.arrival <= 0:
        return None
    option, limit = cap
    left, lag = view.lag.backlog, view.lag.seconds or 0.0
    if left is None or min(offsets_read(view)) < MIN_CAP_SHARE * limit:
        return None
    soon = view.lag.shrinks and 0 < left < SOON_SECONDS * view.lag.falls_by
    if soon or lag < max(MIN_LAG_SECONDS, 2 * view.interval):
        return None
    arrival, seconds = load.arrival / view.capacity.rows_per_offset, median(batch.duration for batch in latest)
    for_rows = on_rows(found) / found.duration * seconds
    room = ROOM_SHARE - arrival * for_rows / limit
    if room <= 0:
        return None  # the work on the rows alone takes too long: no cap helps
    needed = max(arrival * (seconds - for_rows) / room, arrival * view.interval / ROOM_SHARE)
    if needed <= limit:
        return None
    share = max(0.0, 1 - load.processed / load.arrival)
    return Held(option, limit, seconds, left, lag, needed, share, found)
