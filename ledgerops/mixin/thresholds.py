"""The limits at which panels change colour: those of the alerts and rules of the same thing; others have a reason."""

from operator import attrgetter

from ledgerops.diagnosis.causes.key_skew import MIN_HOT_SHARE
from ledgerops.diagnosis.facts.contention import MIN_BUSY_SHARE as BUSY_CPU
from ledgerops.diagnosis.facts.state_cost import MIN_GC_SHARE
from ledgerops.mixin.alerts.crash_loop import MIN_RESTARTS
from ledgerops.mixin.alerts.freshness import FAST
from ledgerops.mixin.site import Site
from ledgerops.signals.trigger import SATURATED_RATIO

# of queries
PRESSED = 0.7  # of the capacity: below it there is room for a burst
OVERLOADED = 1.0  # of the capacity: from here on the backlog must grow
BUSY = SATURATED_RATIO  # of the time: from here on the status is `pressured`
LOOP_RESTARTS = MIN_RESTARTS  # within a quarter of an hour: LedgerCrashLoop, if the runs failed
HOT_KEY = MIN_HOT_SHARE  # of the rows: rule key-skew
# the largest over the median; no rule reports it alone, since with room to spare it does no harm
SKEWED, VERY_SKEWED = 3.0, 10.0
FAST_BURN = FAST[0].factor  # LedgerFreshnessPage
BUDGET_LEFT = 0.5  # of the error budget: it must last for the rest of the period
CACHE_HITS = 0.9  # of the reads of blocks: below it RocksDB waits for the disk rather than for memory
LOST_SECONDS = 1.0  # of headroom: the oldest unread rows may be deleted at any moment
ANY = 0.001  # a second, of what should never happen
# of executors and machines
CPU = BUSY_CPU  # of all cores, from which queries hold each other up (rule noisy-neighbour)
GC = MIN_GC_SHARE  # of the task time: rule gc-pressure
FULL = 0.8  # of storage memory or cores
FREE = 0.1  # of memory or disk
# of the observer
CALLBACK_SECONDS, SCRAPE_SECONDS = 0.0015, 0.06  # the budgets of both
WORKER_SHARE = 0.25  # of the time: its budget
WAITING_EVENTS = 5000.0  # half of what the queue holds, as in rule observer-degraded
# of the load generator: beyond these a run is not valid
LATE_SECONDS = 0.05  # p99
SENT_SHARE = 0.99  # of the planned records


def percent(share: float) -> str:
    """A limit as texts say it: 0.7 -> "70 %"."""
    return f"{100 * share:g} %"


def millis(seconds: float) -> str:
    """A limit as texts say it: 0.05 -> "50 ms"."""
    return f"{1000 * seconds:g} ms"


# of a site
stale_seconds = attrgetter("freshness_seconds")  # of results, at which LedgerFallingBehind and the objective begin
retention_seconds = attrgetter("retention_seconds")  # of headroom, below which LedgerRetentionRisk fires
slow_burn = attrgetter("budget")  # the bad share of the time that the objective allows


def ageing_seconds(site: Site) -> float:
    """The age of results at which a panel warns: half of `stale_seconds`."""
    return site.freshness_seconds / 2


def fast_burn(site: Site) -> float:
    """The bad share of an hour from which LedgerFreshnessPage fires."""
    return FAST_BURN * site.budget
