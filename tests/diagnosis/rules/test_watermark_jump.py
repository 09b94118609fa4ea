from dataclasses import replace

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.late_data import RULE as LATE_DATA
from ledgerops.diagnosis.rules.watermark_jump import RULE
from tests.diagnosis.conftest import told_by
from tests.diagnosis.rules.retelling import retold
from tests.tables import cases

DELAY = 10.0
YEAR_58692 = "in the year 58692: milliseconds read as seconds?"
DROPS = {"name": "dedupe", "dropped_rows": 900}


def with_times(history, told, at, count, drops):
    """Batches with the oldest, average and newest event time that is `told` of each, which the watermark follows; those
    after batch `at` drop so many rows."""
    operators = [{**DROPS, "dropped_rows": drops if n > at - 6 else 0} for n in range(count - 6)]
    view = history(seconds=[1.0] * (count - 6), operators=operators, plan={"watermarks": {"event_time": DELAY}})
    tops = [None]

    def fields(n, batch):
        times = told(n, batch)
        mark = None if tops[-1] is None else tops[-1] - DELAY
        tops.append(times[2] if tops[-1] is None else max(tops[-1], times[2]))
        return dict(zip(("event_time_min", "event_time_avg", "event_time_max"), times, strict=True), watermark=mark)

    return retold(view, fields)


def live(history, future=None, at=20, count=26, shift=0.0, width=1.0, drops=0, step=None, behind=0.0, goes_on=False):
    """Batches of live rows; batch `at` has one dated `future` seconds ahead. `shift` dates all later rows back, `width`
    is how far the newest row of each batch is ahead of the average one, `step` seconds of event time pass a batch. All
    rows are `behind` seconds old; `goes_on`: later batches have such a row, too."""

    def told(n, batch):
        base = (batch.started - behind if step is None else 1.4e9 + step * n) - (shift if n > at else 0.0)
        ahead = future if future and (n == at or (goes_on and n > at)) else 0.0
        return base - 2 * width, base - width, base + ahead

    return with_times(history, told, at, count, drops)


def misread(history, factor, at=20, count=26, share=1.0, drops=0):
    """From batch `at` on a `share` of each batch's rows have the number of another unit for their event time."""

    def told(n, batch):
        newest = batch.started * (factor if n >= at else 1.0)
        average = share * newest + (1 - share) * batch.started - 1.0
        return average - 1, average, newest

    return with_times(history, told, at, count, drops)


@cases(
    "case, ahead, forward, behind",
    ("live", {"future": 3600.0}, "1 h", "1 h", "59 min 41 s"),
    ("in a replay", {"future": 9e4, "step": 600.0, "width": 300.0}, "25 h 5 min", "25 h 10 min", "24 h 15 min"),
)
def test_a_row_dated_an_hour_ahead_is_found(history, case, ahead, forward, behind):
    [finding] = RULE.check(live(history, **case))

    assert finding.summary == (
        f"a row of batch 20 dated {ahead} ahead of the rest pushed the watermark {forward} forward; "
        f"rows on time are {behind} behind it"
    )
    assert finding.component.detail == "batch 20, offsets transactions-0 20000 to 21000"
    assert told_by(finding)["jump_batch_id"] == 20.0


def test_rows_that_it_costs_are_told(history):
    [finding] = RULE.check(live(history, future=3600.0, drops=900))
    assert finding.summary.endswith("; 4,500 rows (17.3% of those read) were dropped in the last minute")


@cases(
    "make, case",
    ("a minute", live, {"future": 50.0}),
    ("with the first batch after it", live, {"future": 3600.0, "count": 22}),
    ("batches that are a ninth as wide", live, {"future": 900.0, "width": 100.0}),
    ("a producer whose clock is ahead", live, {"future": 3600.0, "goes_on": True}),
    ("that was ahead from the first batch on", live, {"future": 3600.0, "goes_on": True, "at": 0, "drops": 900}),
    ("batches half as wide, ahead of the clock", live, {"future": 250.0, "width": 100.0, "drops": 900}),
    ("misread from the first batch on", misread, {"factor": 1e3, "at": 0}),
    ("misread with too few batches before it", misread, {"factor": 1e3, "at": 2}),
    ("misread, with the first batch after it", misread, {"factor": 1e3, "count": 22}),
)
def test_smaller_jumps_and_those_without_a_past_are_found_too(history, make, case):
    assert len(list(RULE.check(make(history, **case)))) == 1


@cases(
    "make, case",
    ("all are on time", live, {}),
    ("a row ahead by less than the allowed lateness", live, {"future": 8.0}),
    ("clocks that differ", live, {"future": 25.0}),
    ("batches of a replay as wide as that", live, {"future": 250.0, "width": 100.0, "step": 2.0}),
    ("a partition of a replay that is ahead", live, {"future": 3600.0, "step": 2.0, "goes_on": True}),
    ("a partition that is up to date", live, {"future": 600.0, "behind": 600.0, "goes_on": True}),
    ("a replay of hours in each batch", live, {"step": 3600.0, "width": 1800.0}),
    ("the row has just been read", live, {"future": 3600.0, "at": 25}),
    ("time has caught up", live, {"future": 60.0, "count": 70}),
    ("a replay with nothing to compare with", live, {"future": 3600.0, "at": 2, "step": 2.0}),
    ("all are dated ahead, and none is behind", live, {"behind": -3600.0, "width": 5.0, "drops": 900}),
    ("bookings: some are ahead, and none is dropped", live, {"future": 3600.0, "goes_on": True, "at": 0}),
    ("milliseconds, just read", misread, {"factor": 1e3, "at": 25}),
    ("seconds read as milliseconds are behind, not ahead", misread, {"factor": 1e-3, "at": 0}),
    ("event times of another year, always", misread, {"factor": 1.02, "at": 0}),
)
def test_others_are_not(history, make, case):
    assert list(RULE.check(make(history, **case))) == []


OFFSETS = "offsets transactions-0 20000 to 21000"


def without_one_average(n, batch):
    return {"event_time_avg": None if n == 15 else batch.event_time_avg}


def without_offsets(n, batch):
    return {"sources": tuple(replace(source, start={}, end={}) for source in batch.sources)}


def of_files(n, batch, names=("FileStreamSource",)):
    """Each batch reads the next list of files."""
    [source] = batch.sources
    files = [(name, {(name, "0"): n - 1}, {(name, "0"): n}) for name in names]
    return {
        "sources": tuple(
            replace(source, name=name, kind="files", start=start if n else {}, end=end) for name, start, end in files
        )
    }


def of_every_tenth_list(n, batch):
    return of_files(n - 1, batch)


def of_two_folders(n, batch):
    return of_files(n, batch, ("FileStreamSource", "FileStreamSource-2"))


def of_files_and_a_topic(n, batch):
    return {"sources": (*batch.sources, *of_files(n, batch)["sources"])}


LISTS = "sources/0/20, sources/1/20"


@cases(
    "case, fields, details",
    ("files", {"future": 3600.0}, of_files, ["batch 20, files listed in sources/0/20 of the checkpoint"]),
    (
        "files whose list repeats those before it",
        {"future": 3600.0},
        of_every_tenth_list,
        ["batch 20, files listed in sources/0/19 or 19.compact of the checkpoint"],
    ),
    (
        "files and a topic",
        {"future": 3600.0},
        of_files_and_a_topic,
        [f"batch 20, {OFFSETS}, files listed in sources/1/20 of the checkpoint"],
    ),
    (
        "files of two folders",
        {"future": 3600.0},
        of_two_folders,
        [f"batch 20, files listed in {LISTS} of the checkpoint"],
    ),
    ("a row of a batch without offsets", {"future": 3600.0}, without_offsets, ["batch 20"]),
    ("of a forgotten batch", {"drops": 900}, lambda n, batch: {"watermark": batch.started + 600.0}, []),
    ("no average time is known", {"future": 3600.0}, lambda n, batch: {"event_time_avg": None}, []),
    ("that of a batch before it is not", {"future": 3600.0}, without_one_average, [f"batch 20, {OFFSETS}"]),
)
def test_what_is_not_known_of_a_batch_is_not_told(history, case, fields, details):
    assert [finding.component.detail for finding in RULE.check(retold(live(history, **case), fields))] == details


def test_rows_that_are_all_late_are_not_blamed_on_it(history):
    view = live(history, shift=600.0, drops=900)
    assert list(RULE.check(view)) == []
    assert LATE_DATA.ruled_out(view) is None and len(list(LATE_DATA.check(view))) == 1


def test_a_clock_that_gains_little_by_little_is_found(history):
    view = live(history, drops=900)
    told = {"event_time_max": lambda n: 6.0 * n, "watermark": lambda n: 6.0 * (n - 1) - DELAY}
    drifts = retold(view, lambda n, batch: {name: batch.started + ahead(n) for name, ahead in told.items()})
    [root] = Diagnoser()(drifts).root_causes

    assert root.rule == "watermark-jump"
    assert root.summary.startswith("rows dated up to 2 min 29 s ahead of the clock hold the watermark 2 min 13 s ahead")


@pytest.mark.parametrize("count", [26, 60])
def test_the_batch_to_run_again_from_is_the_first_of_those_with_such_rows(history, count):
    """What was dropped since it is lost otherwise."""
    [finding] = RULE.check(live(history, future=3600.0, goes_on=True, drops=900, count=count))

    assert (finding.component.detail, told_by(finding)["jump_batch_id"]) == (f"batch 20, {OFFSETS}", 20.0)
    assert "run again from before batch 20 " in finding.remedies[-1].action
    assert " ahead of it since batch 20; " in finding.summary


@cases(
    "factor, words",
    ("milliseconds", 1e3, YEAR_58692),
    ("microseconds", 1e6, "in the year 56724813: microseconds read as seconds?"),
    ("nanoseconds", 1e9, "in the year 56722845167: nanoseconds read as seconds?"),
)
def test_a_number_of_another_unit_is_named(history, factor, words):
    [finding] = RULE.check(misread(history, factor, share=0.02))

    assert finding.summary == (
        f"the newest event time is {words} It is that of a row of batch 20, and the watermark follows it"
    )
    assert finding.remedies[0].action == "check the unit of the number that becomes the event time"
    assert finding.component.detail == "batch 20, offsets transactions-0 20000 to 21000"


def test_it_goes_on_when_the_batch_is_forgotten(history):
    view = misread(history, 1e3, at=0)
    view = retold(view, lambda n, batch: {"event_time_max": batch.started, "event_time_avg": batch.started})
    [finding] = RULE.check(view)

    assert finding.summary.endswith("It is that of a row, and the watermark follows it")
    assert (finding.component.detail, finding.began) == (None, None)


@cases(
    "make, ahead",
    (
        "an hour ahead",
        lambda history: live(history, future=3600.0, drops=900),
        "is 59 min 39 s ahead of the clock: the",
    ),
    ("of old rows", lambda history: live(history, future=3600.0, drops=900, behind=7200.0), "jumped 1 h forward: the"),
    ("misread", lambda history: misread(history, 1e3, share=0.02, drops=900), f"is {YEAR_58692} The"),
)
def test_it_explains_the_rows_that_are_dropped_and_late_producers_are_ruled_out(history, make, ahead):
    [root] = Diagnoser()(make(history)).root_causes

    assert (root.rule, root.explains) == ("watermark-jump", ("rows-dropped",))
    [because] = [each.because for each in root.ruled_out if each.rule == "late-data"]
    assert because == f"the watermark {ahead} dropped rows arrived on time"
