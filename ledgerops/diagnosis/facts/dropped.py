"""Rows that state operators dropped as late in the last minute, or the last batches where these take longer."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from ledgerops.common.format import counted, duration
from ledgerops.diagnosis.limits import FAR_TIMES, NEARLY_ALL
from ledgerops.model.finding import Evidence
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

MIN_ROWS = 50  # in the last minute; fewer are stragglers after a rebalance or a restart
MIN_DROPPED_SHARE = 0.001  # of the rows read in that time; as in the alert on dropped rows
CLEARED_SECONDS = 20.0  # without another dropped row, and three trigger intervals: then it is over
AGGREGATING = ("stateStoreSave", "sessionWindowStateStoreSaveExec")  # they see groups, after partial aggregation


class Dropped(NamedTuple):
    """What was dropped in the last minute, or in three trigger intervals where these take longer."""

    operator: str  # that dropped most
    rows: int  # by that operator: rows, or groups of rows
    total: int  # by all operators
    read: int  # rows read in the same time
    batches: Sequence[Progress]  # that dropped some in that time, oldest first
    at: float  # end of the newest batch
    seconds: float  # over which it is counted
    behind: float  # rows of these batches whose windows had all ended, at least; 0 where that is not known
    limit: float  # of the share, from which it is told

    @property
    def since(self) -> float:
        """When the first of these batches began."""
        return self.batches[0].started

    @property
    def share(self) -> float | None:
        """Of the rows that were read; None where Spark counts groups."""
        return None if self.of_groups else min(1.0, self.rows / self.read)

    @property
    def known_share(self) -> float | None:
        """The same; of groups that of the rows of which it is known. None where it is of none."""
        return self.share if self.share is not None else self.behind / self.read or None

    @property
    def of_groups(self) -> bool:
        """Whether Spark counted groups of rows: each may stand for any number of them."""
        return self.operator.split("-")[0] in AGGREGATING

    @property
    def words(self) -> str:
        """Such as `1,000 rows (9.1% of those read)`."""
        if self.share is None:
            return f"at least {counted(self.rows, 'row')}"
        return f"{counted(self.rows, 'row')} ({self.share:.1%} of those read)"

    @property
    def lately(self) -> str:
        """Over which time it is counted, such as `in the last minute`."""
        return f"in the last {duration(self.seconds) if self.seconds > WINDOW_SECONDS else 'minute'}"

    @property
    def note(self) -> str:
        """What the end of a sentence with `words` must say."""
        if not self.of_groups:
            return ""
        if self.behind:
            late = f"at least {self.behind / self.read:.1%} of the rows"
            return f"; Spark counts groups of rows, and {late} came after their windows had ended"
        return "; Spark counts groups after partial aggregation, so the share is unknown"

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The number of rows or groups, and its share where that is known; of groups, what is known of their rows."""
        number = Evidence("rows_dropped_last_minute", float(self.rows), "rows", f"< {MIN_ROWS}", self.at)
        if self.known_share is None:
            return (number,)
        name = "after_windows_share" if self.of_groups else "dropped_share"
        return number, Evidence(name, self.known_share, "ratio", f"< {self.limit:g}", self.at)


@once
def dropped(view: QueryView) -> Dropped | None:
    """None where too few rows were dropped to matter, or none lately."""
    if view.last is None or not view.operators:
        return None
    over = max(CLEARED_SECONDS, FAR_TIMES * view.interval)
    window = max(WINDOW_SECONDS, over)
    newest = _newest_first(view, over)
    if not any(operator.dropped_rows for batch in newest for operator in batch.operators):
        return None
    fresh = list(_newest_first(view, window))
    with_drops = [batch for batch in fresh if any(operator.dropped_rows for operator in batch.operators)]
    read = sum(batch.rows for batch in fresh)
    if read <= 0:
        return None
    counts: dict[str, int] = {}
    for batch in with_drops:
        for operator in batch.operators:
            counts[operator.name] = counts.get(operator.name, 0) + operator.dropped_rows
    worst = max(counts, key=lambda name: counts[name])
    length, one = view.plan.window_seconds, len(view.plan.watermarks) == len(view.last.sources) == 1
    behind = 0.0
    # Spark tells the event times of one input; a single old row may stand for many that a filter leaves out
    if length is not None and one and len(with_drops) >= RECENT_BATCHES:
        behind = sum(_behind(*pair, length) for pair in pairwise(view.batches[-len(fresh) - 1 :]))
    total = sum(counts.values())
    # as usual just at the limit, it would come and go with noise
    limit = MIN_DROPPED_SHARE * (NEARLY_ALL if "rows-dropped" in view.named else 1.0)
    found = Dropped(worst, counts[worst], total, read, with_drops[::-1], view.last.ended, window, behind, limit)
    many = max(found.rows, behind if found.of_groups else 0.0)
    return found if many >= max(MIN_ROWS, limit * read) else None


def _behind(earlier: Progress, batch: Progress, length: float) -> float:
    """How many rows of a batch that dropped some were a window's length behind the watermark that Spark drops them by,
    that of the batch before, at least: so few if each of them is the oldest row, and all others are just in time."""
    mark, oldest, mean = earlier.watermark, batch.event_time_min, batch.event_time_avg
    if mark is None or oldest is None or mean is None or not any(each.dropped_rows for each in batch.operators):
        return 0.0
    in_time = mark - length
    if mean >= in_time:
        return 0.0
    if batch.event_time_max is not None and batch.event_time_max < in_time:
        return float(batch.rows)
    return batch.rows * min(1.0, (in_time - mean) / (in_time - oldest))


def _newest_first(view: QueryView, seconds: float) -> Iterator[Progress]:
    """The batches that ended in the last `seconds`."""
    return takewhile(lambda batch: batch.ended >= view.now - seconds, reversed(view.batches))
