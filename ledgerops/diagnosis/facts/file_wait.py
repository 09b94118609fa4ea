"""Whether files wait in a folder because of `maxFilesPerTrigger`: a file source does not report its unread files.

Only the files that it read are known. They wait when each batch reads as many as the cap allows, older from batch to
batch, while the folder still gets new ones. Only files that arrived during the run count. Those that were there before
it may have been copied all at once, so their times say nothing about the files to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple

from ledgerops.diagnosis.limits import NOISE_SHARE
from ledgerops.model.records import FilesRead, Progress
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

CAP = "maxfilespertrigger"
MIN_LAG_SECONDS = 10.0  # of a growing backlog; a burst of 1.5 times the capacity for 20 s stays below it
MIN_PEAK_SHARE = 0.95  # below this share of its peak the backlog is shrinking
SERIES_BATCHES = (8, 16, 32)  # files that arrive at random need more batches as proof than files that arrive evenly
MIN_CERTAINTY = 5.0  # standard errors of the mean growth from batch to batch: random files arrive in groups, too


class FileWait(NamedTuple):
    """Files of one source that wait for longer and longer: `first` and `last` are the seconds from the modification of
    the newest file to the start of its batch, in the first and the last of `batches`. `share` of what arrives in that
    time is not read."""

    source: str
    option: str
    cap: int
    since: float
    batches: int
    first: float
    last: float
    share: float


@once
def file_wait(view: QueryView) -> FileWait | None:
    """The source whose files wait longest; None where no cap is known, or files do not wait for longer and longer."""
    option = {name.lower(): name for name in view.plan.rate_limits}.get(CAP, "")
    value = view.plan.rate_limits.get(option, "")
    if not value.isdecimal() or view.last is None or not view.baseline.steady:
        return None
    found = []
    for name in view.lag.newest_files:
        known = [
            (batch, files.sources[name])
            for batch, files in view.lag.files
            if batch.started >= view.baseline.steady[0].started and name in files.sources
        ]
        for count in SERIES_BATCHES:
            series = known[-count:]
            if len(series) == count and _read_at_cap_while_more_arrive(view, series, int(value)):
                ages = [batch.started - read.newest for batch, read in series]
                began, ended = series[0][0].started, series[-1][0].started
                if grows(ages, ended - began, view.trigger.interval or 0.0):
                    share = (ages[-1] - ages[0]) / (ended - began)
                    found.append(FileWait(name, option, int(value), began, count, ages[0], ages[-1], share))
                    break
    return max(found, key=lambda each: each.last, default=None)


def _read_at_cap_while_more_arrive(view: QueryView, series: Sequence[tuple[Progress, FilesRead]], cap: int) -> bool:
    """Whether each batch read as many files as it may, all of which arrived during the run, and newer ones do, too."""
    newest, read = series[-1]
    two_batches = 2 * (newest.started - series[0][0].started) / (len(series) - 1)
    if view.last is None or view.last.started - newest.started > max(MIN_LAG_SECONDS, two_batches):
        return False  # the files of the newest batches are not known
    changed = read.folder_changed
    if changed is None or not max(read.newest, newest.started - two_batches) <= changed <= view.now:
        return False
    arrived = min(each.newest for _, each in series) >= (view.history.started_at or 0.0)
    return arrived and all(each.files == cap for _, each in series)


def grows(ages: Sequence[float], seconds: float, interval: float) -> bool:
    """Whether ages, over so many seconds, show a growth that no chance explains, up to the oldest at the end."""
    steps = [later - earlier for earlier, later in pairwise(ages)]
    return (
        ages[-1] >= max(MIN_LAG_SECONDS, 2 * interval, MIN_PEAK_SHARE * max(ages))
        and sum(steps) >= max(interval, NOISE_SHARE * seconds)
        and mean(steps) >= MIN_CERTAINTY * stdev(steps) / sqrt(len(steps))
    )
