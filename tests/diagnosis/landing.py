"""A query that reads files with a cap, as Spark would: the oldest files that are there, once in each interval."""

from collections.abc import Sequence

from ledgerops.model.history import History
from ledgerops.model.records import BatchFiles, FilesRead, Plan, SourceProgress
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch

NAME = "FileStreamSource"


def every(seconds: float, count: int = 60, start: float = 0.0) -> list[float]:
    """When so many files arrive, from `start` seconds after the start of the run on."""
    return [start + seconds * number for number in range(count)]


def reads(
    arrivals: Sequence[float],
    cap: int = 1,
    option: str | None = "maxFilesPerTrigger",
    batches: int = 20,
    seconds: float = 0.4,
    interval: float = 2.0,
    clock: float = 0.0,
    pace: float = 1.0,
    trigger: str = "processing_time",
    flat: bool = True,
    known: int = 1_000,
    idle: bool = False,
) -> QueryView:
    """After so many batches of `seconds` each. The clock of files is `clock` seconds off and has this `pace`; a folder
    that is not `flat` does not say when it changed; the files of the first so many batches are `known`."""
    past = History("daily_counts")
    past.start(T0, "id-1", "run-1")
    limits = {option: str(cap)} if option else {}
    past.plan = Plan("run-1", trigger, interval, rate_limits=limits)
    left = sorted(arrivals)
    at, number, entry = 0.0, 0, -1
    while number < batches and left and at < 10_000:
        took = [each for each in left if each <= at][: cap if option else None]
        if took:
            left = left[len(took) :]
            here = (NAME, "0")
            begin, end = {here: entry} if number else {}, {here: entry + 1}
            source = SourceProgress(NAME, f"{NAME}[file:/in]", 100, begin, end, {}, {})
            past.add(batch(number, started=T0 + at, duration=seconds, rows=100 * len(took), sources=(source,)))
            if number < known:
                oldest, newest = (T0 + pace * each + clock for each in (took[0], took[-1]))
                changed = T0 + 0.01 + max(each for each in arrivals if each <= at + seconds)
                read = FilesRead(len(took), oldest, newest, changed if flat else None)
                past.files.append(BatchFiles("run-1", number, {NAME: read}))
            number, entry = number + 1, entry + 1
        at += max(interval, seconds)
    now = (past.last_progress or T0) + 0.5
    if idle:
        past.idle(now)
    return QueryView(past, now)
