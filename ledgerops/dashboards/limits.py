"""The limits at which panels change colour: those of the alerts and rules of the same thing; others have a reason."""

from __future__ import annotations

from ledgerops.alerts.freshness import FAST
from ledgerops.alerts.site import Site
from ledgerops.diagnosis.rules.key_skew import HOT
from ledgerops.diagnosis.stateful import GC_MARKED
from ledgerops.view import SATURATED

FAST_BURN = FAST[0].factor  # LedgerFreshnessPage
HOT_KEY = HOT
GC = GC_MARKED
PRESSED, OVERLOADED = (
    0.7,
    1.0,
)  # of the capacity: from 1 on the backlog must grow; below, room for a burst
BUSY = SATURATED  # of the time: from here on the status is `pressured`
CPU = 0.85  # of all cores, from which queries hold each other up (rule noisy-neighbour)
HEALTHY, POOR = 100.0, 50.0  # health: 100 with nothing found; a critical finding at full confidence leaves 40
LATE = 0.05  # seconds of the generator's p99: its budget, beyond which a run is not valid
ANY = 0.001  # a second: of what should not be at all
SENT = 0.99  # of the planned records: below it a run is not valid


def stale(site: Site) -> float:
    """Seconds of age that LedgerFallingBehind and the freshness objective start from."""
    return site.freshness_seconds


def ageing(site: Site) -> float:
    """Half of that."""
    return site.freshness_seconds / 2


def retention(site: Site) -> float:
    """Seconds of LedgerRetentionRisk."""
    return site.retention_seconds


def fast_burn(site: Site) -> float:
    """The bad share of an hour from which LedgerFreshnessPage speaks."""
    return FAST_BURN * (1 - site.freshness_objective)


def slow_burn(site: Site) -> float:
    """The bad share of the time that the objective allows."""
    return 1 - site.freshness_objective
