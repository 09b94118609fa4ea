"""Whether files of a folder or commits of a table wait for longer and longer until the query reads them.

A file source does not report its unread files, only those that it read are known. They wait when each batch reads as
many as `maxFilesPerTrigger` allows, older from batch to batch, while the folder still gets new ones. Only files that
arrived during the run count: those that were there before it may have been copied all at once, so their times say
nothing about the files to come. Of a table, its own history says since when the oldest unread commit waits.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import sqrt
from statistics import mean, stdev
from typing import Literal, NamedTuple

from ledgerops.diagnosis.limits import NOISE_SHARE
from ledgerops.metrics.pressure import FILE_AGE
from ledgerops.model.finding import Evidence
from ledgerops.model.records import FilesRead, Progress
from ledgerops.model.sources import NAMED, caps
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_LAG_SECONDS = 10.0  # of a growing backlog; a burst of 1.5 times the capacity for 20 s stays below it
MIN_PEAK_SHARE = 0.95  # below this share of its peak the backlog is shrinking
SERIES_BATCHES = (8, 16, 32)  # what arrives at random needs more batches as proof than what arrives evenly
MIN_CERTAINTY = 5.0  # standard errors of the mean growth from batch to batch: random files arrive in groups, too

COMMIT_AGE = "commit_wait_seconds", "commit_wait_growth_seconds"


class Wait(NamedTuple):
    """What of one source waits for longer and longer: `first` and `last` are the seconds that it waited in the first
    and the last of `batches`, the age of the newest file that a batch read or of the oldest commit that it left.
    `share` of what arrives in that time is not read. `option` is what caps a batch, "" where nothing does."""

    form: Literal["files", "commits"]
    source: str
    option: str
    cap: int
    since: float
    batches: int
    first: float
    last: float
    share: float


def aged(form: str, first: float, last: float, at: float) -> tuple[Evidence, Evidence]:
    """How long what waits has waited in seconds, and how much longer that is than at first."""
    age, longer = (FILE_AGE.name, "file_age_growth_seconds") if form == "files" else COMMIT_AGE
    oldest = Evidence(age, last, "seconds", f"<= {MIN_LAG_SECONDS:g}", at)
    return oldest, Evidence(longer, last - first, "seconds", "0", at)


@once
def unread(view: QueryView) -> Wait | None:
    """What waits longest: files, else commits. None where the reader keeps up, or where neither is known."""
    for waits in (_files, _commits):
        longest = max(waits(view), key=lambda wait: wait.last, default=None)
        if longest is not None:
            return longest
    return None


def _files(view: QueryView) -> Iterator[Wait]:
    cap = next((cap for cap in caps(view.plan.rate_limits) if cap.limit.unit == "files"), None)
    if cap is None or view.last is None or not view.baseline.steady:
        return
    since = view.baseline.steady[0].started
    for name in view.lag.newest_files:
        known = [(batch, files.sources[name]) for batch, files in view.lag.files if name in files.sources]
        read = [(batch, files) for batch, files in known if batch.started >= since]
        ages = [(batch.started, batch.started - files.newest) for batch, files in read]
        wait = partial(Wait, "files", name, cap.option, cap.value)
        yield from _growing(view, wait, ages, partial(_at_cap, view, read, cap.value))


def _commits(view: QueryView) -> Iterator[Wait]:
    kinds = {source.name: NAMED[source.kind] for source in view.last.sources} if view.last is not None else {}
    for name in view.tables.read:
        own = kinds[name].limits if name in kinds else ()
        limits = [each for each in caps(view.plan.rate_limits) if each.limit in own]
        option, cap = (limits[0].option, limits[0].value) if limits else ("", 0)
        left = list(_left(view, name))
        ages, versions = [(started, age) for started, age, _ in left], [count for *_, count in left]
        wait = partial(Wait, "commits", name, option, cap)
        yield from _growing(view, wait, ages, partial(_more, versions))


def _growing(
    view: QueryView, wait: Callable[..., Wait], ages: Sequence[tuple[float, float]], holds: Callable[[int], bool]
) -> Iterator[Wait]:
    """The wait over the fewest of the newest batches that show it; `ages` are by the start of a batch."""
    for count in SERIES_BATCHES:
        series = ages[-count:]
        if len(series) < count:
            return
        (began, first), (ended, last) = series[0], series[-1]
        if holds(count) and grows([age for _, age in series], ended - began, view.interval):
            share = min(1.0, (last - first) / (ended - began))
            yield wait(since=began, batches=count, first=first, last=last, share=share)
            return


def _more(left: Sequence[int], count: int) -> bool:
    return left[-1] > left[-count]


def _at_cap(view: QueryView, known: Sequence[tuple[Progress, FilesRead]], cap: int, count: int) -> bool:
    """Whether each of so many batches read as many files as it may, all of which arrived during the run, and newer ones
    do, too."""
    series = known[-count:]
    newest, read = series[-1]
    two_batches = 2 * (newest.started - series[0][0].started) / (len(series) - 1)
    if view.last is None or view.last.started - newest.started > max(MIN_LAG_SECONDS, two_batches):
        return False  # the files of the newest batches are not known
    changed = read.folder_changed
    if changed is None or not max(read.newest, newest.started - two_batches) <= changed <= view.now:
        return False
    arrived = min(each.newest for _, each in series) >= (view.history.started_at or 0.0)
    return arrived and all(each.files == cap for _, each in series)


def _left(view: QueryView, name: str) -> Iterator[tuple[float, float, int]]:
    """Of each steady batch when it began, how long the oldest commit that it left had waited (seconds, 0 for none), and
    how many it left, by the first sample after it: a batch without one is left out."""
    samples = view.tables.samples
    times: Sequence[float] = [each.at for each in samples]
    batches = view.baseline.steady
    untils = [*(later.ended for _, later in pairwise(batches)), view.now]
    for batch, until in zip(batches, untils, strict=False):
        place = bisect_left(times, batch.ended)
        read = samples[place].sources.get(name) if place < len(times) and times[place] <= until else None
        if read is not None and (read.versions == 0 or read.since is not None):
            waited = times[place] - read.since if read.since is not None and read.versions else 0.0
            yield batch.started, max(0.0, waited), read.versions


def grows(ages: Sequence[float], seconds: float, interval: float) -> bool:
    """Whether ages, over so many seconds, show a growth that no chance explains, up to the oldest at the end."""
    steps = [later - earlier for earlier, later in pairwise(ages)]
    return (
        ages[-1] >= max(MIN_LAG_SECONDS, 2 * interval, MIN_PEAK_SHARE * max(ages))
        and sum(steps) >= max(interval, NOISE_SHARE * seconds)
        and mean(steps) >= MIN_CERTAINTY * stdev(steps) / sqrt(len(steps))
    )
