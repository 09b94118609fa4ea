"""Whether the cap on the rows of a batch holds back a query that has time for more of them."""

from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis.facts.unread import MIN_LAG_SECONDS
from ledgerops.diagnosis.profile import Profile, on_rows, profile
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import CAP_BATCHES, ROOM_SHARE, UNKNOWN_OPTION, cap_of, each_source, is_full
from ledgerops.signals.rates import arrival_between

SOON_SECONDS = 600.0  # a backlog that clears sooner needs no restart with another cap


class Held(NamedTuple):
    """A query that its rate limit holds back."""

    option: str
    source: str  # that it holds back; of several the one to which most comes
    read: int  # offsets of it, by the newest batch
    cap: int  # offsets a batch
    seconds: float  # of a batch, the median
    left: int  # offsets
    lag: float  # seconds
    needed: float  # offsets a batch with which it would keep up
    share: float  # of what arrives at that source that the cap does not let in
    profile: Profile  # that `needed` rests on


@once
def held_back(view: QueryView) -> Held | None:
    """Each batch reads from a source what the cap allows and leaves rows in it, and with a higher cap the query would
    keep up. Each source has the cap to itself, and the rows of all take time."""
    cap, latest = cap_of(view), view.baseline.steady[-CAP_BATCHES:]
    if cap is None or len(latest) < CAP_BATCHES:
        return None
    (option, limit), found = cap, profile(view)
    capped = [each for each in each_source(latest) if all(is_full(batch, limit) for batch in each)]
    arrived = arrival_between(view.batches[-RECENT_BATCHES], view.batches[-1], {})  # in offsets
    held = [each[-1] for each in capped if each[-1].left and arrived.get(each[-1].name)]
    if found is None or not held:
        return None
    source = max(held, key=lambda each: arrived[each.name])
    if option == UNKNOWN_OPTION:  # each source shows its own
        limit = source.read
    left, lag, arrival = view.lag.backlog or 0, view.lag.seconds or 0.0, arrived[source.name]
    soon = view.lag.shrinks and 0 < left < SOON_SECONDS * view.lag.falls_by
    if soon or lag < max(MIN_LAG_SECONDS, 2 * view.interval):
        return None
    seconds = median(batch.duration for batch in latest)
    for_rows = on_rows(found) / found.duration * seconds
    read = median(sum(each.read for each in batch.sources if each.name in arrived) for batch in latest)
    room = ROOM_SHARE - sum(arrived.values()) * for_rows / read
    if room <= 0:
        return None  # the work on the rows alone takes too long: no cap helps
    needed = max(arrival * (seconds - for_rows) / room, arrival * view.interval / ROOM_SHARE)
    if needed <= limit:
        return None
    share = max(0.0, 1 - limit / (arrival * max(seconds, view.interval)))
    return Held(option, source.name, source.read, limit, seconds, left, lag, needed, share, found)
