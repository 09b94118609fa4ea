"""How much of a batch is work on its rows, and whether there are more of them, or each is more work."""

from typing import NamedTuple

from ledgerops.diagnosis.limits import MOSTLY
from ledgerops.diagnosis.profile import Profile
from ledgerops.signals.baseline import MORE_RATIO
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rates import read_over

WORK = ("python", "state_update", "shuffle", "spill", "cpu")  # tasks that do something for their rows


class Work(NamedTuple):
    """`share` is of a typical batch, 0 to 1; `dearer`: more rows do not explain it, so each is more work than before.

    Where more rows a second than usual explain the work, it counts whole; else what it takes beyond the usual.
    """

    share: float
    dearer: bool


def work_on_rows(view: QueryView, found: Profile) -> Work:
    """Of the batches of a profile."""
    excess = sum(found.parts[name].excess for name in WORK if name in found.parts) / found.duration
    dearer = found.has_past and excess >= MOSTLY
    return Work(excess if dearer or not _more_rows(view) else found.now(*WORK) / found.duration, dearer)


def _more_rows(view: QueryView) -> bool:
    """Whether clearly more rows come a second than usual; a batch that got longer has more of them all the same."""
    now, usual = read_over(view.baseline.recent), read_over(view.baseline.usual)
    return now is not None and usual is not None and now > MORE_RATIO * usual
