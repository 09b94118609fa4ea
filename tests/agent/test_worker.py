import errno
import inspect
import json
import os
import re
import shutil
import time
from collections import Counter
from contextlib import ExitStack, closing

import orjson
import pytest

from ledgerops.agent.queue import EventQueue
from ledgerops.agent.recording_writer import HANGING_SECONDS, RETRY_SECONDS
from ledgerops.agent.worker import (
    MAX_TICK_SECONDS,
    TICK_SECONDS,
    TOGETHER_SECONDS,
    Worker,
    tick_seconds,
)
from ledgerops.config import Config
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.report import document
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.finding import Component, Evidence, Finding, Verdict
from ledgerops.model.recording import Recorder, decode, read
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.status import status_document
from tests.build import T0, spark_json
from tests.programs import until
from tests.tables import cases

ID, RUN, NAME = (spark_json()[key] for key in ("id", "runId", "name"))


def healthy():
    return Judge()


class Bench:
    """A worker whose turns the test calls itself, with a clock that it sets."""

    def __init__(self, recorder=None, judge=healthy, size=1000, **settings):
        self.now = T0
        self.set_back = 0.0  # seconds by which the machine's clock was set back
        self.stats = SelfStats()
        self.queue = EventQueue(self.stats, size)
        clock, steady = lambda: self.now - self.set_back, lambda: self.now
        self.worker = Worker(self.queue, QueryRegistry(judge), self.stats, Config(**settings), recorder, clock, steady)

    def put(self, kind, data, query=None):
        self.queue.put(kind, data if isinstance(data, str) else json.dumps(data), query)

    def see(self, kind="progress", data=None, **changes):
        self.put(kind, spark_json(**changes) if data is None else data)
        self.worker.turn()

    def end(self, run=RUN, exception=None, error_class=None):
        self.see("terminated", {"id": ID, "runId": run, "exception": exception, "errorClassOnException": error_class})

    @property
    def queries(self):
        return self.worker.snapshot.queries

    @property
    def batches_total(self):
        return self.worker.snapshot.exported[NAME].families["ledgerops_batches_total"].series


@pytest.fixture
def make():
    """Makes benches, and closes their recordings in the end."""
    with ExitStack() as made:
        yield lambda recorder=None, **options: Bench(recorder and made.enter_context(closing(recorder)), **options)


@pytest.fixture
def recorded(make, tmp_path):
    """A bench that records to the folder of the test."""
    return make(Recorder(tmp_path))


class FullDisk(Recorder):
    broken = True

    def write(self, lines):
        if self.broken:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(lines)


def test_an_event_becomes_a_recording_line_state_a_verdict_and_a_snapshot(recorded, tmp_path):
    text = json.dumps(spark_json(), indent=1).replace("\n", " ").replace("150.0", "150.00")
    recorded.see(data=text)

    [seen] = read(tmp_path)
    [file] = tmp_path.iterdir()
    assert (seen.kind, seen.query, seen.data) == ("progress", "daily_counts", spark_json())
    assert text in file.read_text(), "Spark's JSON is recorded untouched"
    assert recorded.batches_total == (((), 1.0),)
    assert [verdict.status for verdict in recorded.worker.snapshot.verdicts()] == ["healthy"]
    assert recorded.stats.recording_bytes == file.stat().st_size
    assert set(recorded.stats.worker_seconds) == {"parse", "record", "judge", "snapshot"}


@cases(
    "kind, text",
    ("torn", "progress", "{"),
    ("not an object", "progress", "[1]"),
    ("empty", "progress", ""),
    ("no run id", "progress", '{"name": "x"}'),
    ("idle of nobody", "idle", "{}"),
    ("tasks that are none", "tasks", '{"run_id": "r", "stages": 5}'),
    ("wrong types", "progress", '{"runId": 5, "batchId": "x", "timestamp": []}'),
)
def test_a_malformed_event_is_counted_and_said_once_and_the_next_is_taken(recorded, tmp_path, warned, kind, text):
    for _ in range(3):
        recorded.put(kind, text)
    recorded.see()

    assert recorded.stats.collector_errors["parse"] == 3
    assert len(warned.records) == 1
    assert list(recorded.queries) == ["daily_counts"]
    assert len(list(read(tmp_path))) == 1


def test_not_a_number_in_an_event_is_taken(make):
    bench = make()
    bench.see(inputRowsPerSecond=float("nan"))
    assert list(bench.queries) == ["daily_counts"]


def test_offsets_of_an_unknown_form_are_said_once_for_each_source(make, warned):
    bench = make()
    text = {"description": "Mine", "endOffset": {"lsn": 71, "commit_ts": 5}, "numInputRows": 7}
    for batch in (1, 2):
        bench.see(batchId=batch, sources=[text, *spark_json()["sources"]])

    assert warned.messages == [
        "the offsets of the source Mine of daily_counts have an unknown form: no backlog and no lag are known"
    ]


@pytest.mark.parametrize("set_back", [0.0, 3600.0], ids=["", "the clock is set back meanwhile"])
def test_a_full_disk_is_said_once_and_what_came_meanwhile_is_recorded_when_it_is_cleared(
    make, tmp_path, warned, set_back
):
    recorder = FullDisk(tmp_path)
    bench = make(recorder)
    for number in range(3):
        bench.now += RETRY_SECONDS
        bench.see(batchId=number)
    assert [line.split(" (")[0] for line in warned.messages] == [
        f"cannot record to {tmp_path}; what comes waits in memory"
    ]
    assert (bench.batches_total, len(bench.worker.ring)) == ((((), 3.0),), 3)

    recorder.broken, bench.set_back = False, set_back
    bench.see(batchId=3)  # it rests after a failure
    bench.now += RETRY_SECONDS
    bench.see(batchId=4)
    assert [seen.data["batchId"] for seen in read(tmp_path)] == [0, 1, 2, 3, 4]
    assert bench.stats.collector_errors["recording"] == 3


class Judge:
    """Finds every query healthy, or the same at each time, and keeps what it was asked to judge."""

    def __init__(self, severity=None):
        self.views, self.errors = [], Counter()
        found = Finding(
            "late", Component("query", "q"), (Evidence("batch", 2.0, "s", "<= 1", T0),), severity=severity or "info"
        )
        self.findings = () if severity is None else (found,)

    def __call__(self, view):
        self.views.append(view)
        return Verdict(view.query, view.now, "healthy", 100, findings=self.findings)


def test_a_clock_that_is_set_back_does_not_stop_the_judging_of_a_silent_query(make):
    judge = Judge()
    bench = make(judge=lambda: judge)
    bench.see()
    bench.set_back = 3600.0
    bench.now += TICK_SECONDS
    bench.worker.turn()
    assert [view.now for view in judge.views] == [T0, T0 + TICK_SECONDS - 3600.0]
    assert inspect.signature(Worker).parameters["steady"].default is time.monotonic


def at(seconds, batch):
    return {"batchId": batch, "timestamp": format_instant(T0 + seconds)}


def test_what_happens_after_the_clock_was_set_back_is_seen_and_totals_go_on(make, warned):
    bench = make()
    bench.see(**at(0.0, 1))
    bench.now, bench.set_back = T0 + 10.0, 3600.0
    bench.worker.turn()
    bench.see(**at(-3590.0, 2))

    assert bench.batches_total == (((), 2.0),)
    last_seen = bench.worker.snapshot.exported[NAME].families["ledgerops_last_seen_timestamp_seconds"]
    assert last_seen.series[0][1] < T0 - 3000.0
    assert warned.messages == ["the machine's clock was set by -3600 s: rates and findings start over"]


def test_a_clock_that_goes_forward_makes_no_query_silent(make, warned):
    bench = make(judge=Diagnoser)
    for number in range(20):
        bench.now = T0 + number
        bench.see(**at(float(number) - 0.5, number))
    bench.set_back = -3600.0
    bench.now += 1.0
    bench.worker.turn()
    assert [each.rule for each in bench.queries[NAME].state.verdict.findings] == []
    assert warned.messages == ["the machine's clock was set by +3600 s: rates and findings start over"]


def test_a_thread_that_is_held_up_between_two_clocks_sets_none(make, caplog):
    bench = make()
    bench.see(**at(0.0, 1))
    looks = iter([bench.now, bench.now + 60.0])
    bench.worker._steady = lambda: next(looks, bench.now)
    bench.now += 60.0
    bench.worker.turn()
    assert bench.worker._registry.queries["daily_counts"].history.last.batch_id == 1
    assert caplog.messages == []


@pytest.mark.parametrize("back", [0.0, 4.0, -4.0], ids=["not at all", "by little", "by little forward"])
def test_a_clock_that_is_right_or_nearly_so_makes_nothing_forgotten(make, caplog, back):
    bench = make()
    bench.see(**at(0.0, 1))
    bench.now, bench.set_back = T0 + 0.5, back
    bench.worker.turn()
    assert bench.worker._registry.queries["daily_counts"].history.last.batch_id == 1
    assert caplog.messages == []


def heads(at):
    partitions = {"transactions": {"0": int(at)}}
    return {"run_id": RUN, "latest": partitions, "earliest": partitions}


def test_the_answers_of_a_broker_are_judged_with_the_next_news_or_tick(make):
    bench = make()
    bench.see()
    first = bench.queries[NAME].at
    for bench.now in (T0 + 1, T0 + 2, T0 + 3, T0 + 4):
        bench.see("offsets", heads(bench.now))
    assert bench.queries[NAME].at == first

    bench.now = T0 + TICK_SECONDS
    bench.worker.turn()
    assert bench.queries[NAME].at == bench.now
    assert len(bench.queries[NAME].state.history.heads) == 4

    bench.now += 1
    silent = {"run_id": RUN, "latest": {}, "earliest": {}, "error": "timed out", "unreachable_since": T0}
    bench.see("offsets", silent)
    assert bench.queries[NAME].at == bench.now, "a broker that does not answer is judged at once"


@pytest.mark.parametrize(("severity", "at_once"), [(None, False), ("info", False), ("warning", True)])
def test_the_tasks_of_a_batch_are_judged_at_once_where_something_is_wrong(make, severity, at_once):
    bench = make(judge=lambda: Judge(severity))
    bench.see()
    first = bench.queries[NAME].at
    bench.now += 1
    bench.see("tasks", {"run_id": RUN, "batch_id": 1, "stages": [], "python_seconds": 0.0})
    assert bench.queries[NAME].at == (bench.now if at_once else first)

    bench.now = T0 + 1 + TICK_SECONDS
    bench.worker.turn()
    assert bench.queries[NAME].at == bench.now


@pytest.mark.parametrize(("errors", "at_once"), [({}, False), ({"bronze": "Permission denied"}, True)])
def test_what_tables_say_is_judged_at_once_where_they_cannot_be_read(make, errors, at_once):
    bench = make()
    bench.see()
    first = bench.queries[NAME].at
    bench.now += 1
    bench.see("tables", {"run_id": RUN, "commits": [], "sources": {}, "errors": errors, "head": 5, "checkpoint": None})
    assert bench.queries[NAME].at == (bench.now if at_once else first)


def test_a_worker_without_news_sleeps_until_a_query_is_due_and_an_event_wakes_it(make):
    bench = make()
    waits = []
    taken = bench.queue.take
    bench.queue.take = lambda timeout: waits.append(timeout) or taken(0.0)
    assert bench.worker.idle_seconds() == 0.0
    bench.see()
    bench.now += 1
    bench.worker.turn(bench.worker.idle_seconds())
    assert waits[-1] == TICK_SECONDS - 1 + TOGETHER_SECONDS, "others may be due nearly as soon"
    bench.now += waits[-1]
    bench.worker.turn()
    assert (bench.queries[NAME].at, bench.worker.idle_seconds()) == (bench.now, TICK_SECONDS + TOGETHER_SECONDS)


@pytest.mark.parametrize(("queries", "seconds"), [(1, 5.0), (250, 5.0), (500, 10.0), (10_000, MAX_TICK_SECONDS)])
def test_the_more_queries_the_longer_each_waits_without_news_up_to_a_bound(queries, seconds):
    assert tick_seconds(queries) == seconds


def test_of_many_silent_queries_each_is_judged_within_the_bound(make):
    judge = Judge()
    bench = make(judge=lambda: judge)
    for number in range(300):
        begun = {"id": f"id-{number}", "runId": f"run-{number}", "name": f"q{number}"}
        bench.put("started", begun | {"timestamp": "2027-01-15T08:00:00Z"})
    while len(bench.queue):
        bench.worker.turn()
    judge.views.clear()
    for _ in range(int(2 * tick_seconds(300)) + 1):
        bench.now += 1.0
        bench.worker.turn()

    assert Counter(view.query for view in judge.views) == {f"q{number}": 2 for number in range(300)}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "recording"


def test_a_recording_that_is_deleted_is_counted_said_once_and_begun_again(make, folder, warned):
    bench = make(Recorder(folder))
    bench.see(batchId=1)
    shutil.rmtree(folder)
    for batch in (2, 3):
        bench.see(batchId=batch)

    assert [line.split(" (")[0] for line in warned.messages] == [f"recording anew to {folder}"]
    assert [seen.data["batchId"] for seen in read(folder)] == [2, 3]
    assert (bench.stats.collector_errors["recording"], bench.worker.pause()) == (1, None)


def test_a_recording_folder_that_is_a_file_does_no_harm(make, folder):
    folder.write_text("mine")
    bench = make(Recorder(folder))
    bench.see()

    assert bench.worker.pause() == f"recording to {folder} is paused after an error; see the driver's log"
    assert (bench.stats.collector_errors["recording"], folder.read_text()) == (1, "mine")
    assert list(bench.queries) == ["daily_counts"]


class Raising(Judge):
    def __call__(self, view):
        raise ValueError(view)


def test_a_judge_that_raises_leaves_the_metrics_in_place(make, warned):
    bench = make(judge=Raising)
    bench.see()
    assert bench.stats.collector_errors["judge"] == 1
    assert bench.batches_total == (((), 1.0),)
    assert bench.worker.snapshot.verdicts() == []


class Ruled(Judge):
    """A judge that counts the rules that raised, as a diagnoser does."""

    def __init__(self, failing):
        super().__init__()
        self.failing = failing

    def __call__(self, view):
        self.errors.update(self.failing)
        return super().__call__(view)


@cases(
    "failing, count",
    ("none", (), 0),
    ("one", ("key-skew",), 3),
    ("two", ("key-skew", "slow-sink"), 6),
)
def test_a_rule_that_raises_is_counted_and_said_once(make, warned, failing, count):
    bench = make(judge=lambda: Ruled(failing))
    for number in range(3):
        bench.see(batchId=number)

    assert bench.stats.collector_errors["rule"] == count
    assert warned.messages == [
        f"the rule {rule} failed on daily_counts; further failures of this rule are only counted" for rule in failing
    ]
    assert [verdict.status for verdict in bench.worker.snapshot.verdicts()] == ["healthy"]


SECRET = 'ValueError: card number 4111-1111-1111-1111 of "John Smith" is bad, password=hunter2'
TRACE = "org.apache.spark.SparkException: " + "x" * 600 + "\n" + "\tat somewhere\n" * 1000


@cases(
    "exception, settings, kept",
    ("a clean stop has none", None, {}, None),
    ("a stack trace without its frames", TRACE, {}, TRACE[:500]),
    ("half a letter is replaced", "bad \ud83d", {}, "bad ?"),
    ("word for word where the settings ask for it", SECRET, {"exception_text": True}, SECRET),
)
def test_what_is_kept_of_an_exception(make, tmp_path, exception, settings, kept):
    bench = make(Recorder(tmp_path), judge=Diagnoser, **settings)
    bench.see()
    bench.end(exception=exception, error_class=exception and "BAD")
    *_, ended = read(tmp_path)
    assert ended.data["exception"] == kept
    assert bench.queries[NAME].state.history.failures == ({} if exception is None else {"BAD": 1})


def test_half_a_letter_in_a_name_is_replaced_and_the_pages_of_all_queries_can_be_made(recorded, tmp_path):
    recorded.see(name="good")
    recorded.see(name="bad \ud83d", runId="run-2")
    recorded.end(error_class="half: \ud83d")

    assert list(recorded.queries) == ["good", "bad ?"]
    assert orjson.dumps(document(recorded.worker.snapshot.verdicts(), T0, "here"))
    assert orjson.dumps(status_document(recorded.worker.snapshot, T0))
    assert [each.query for each in read(tmp_path)] == ["good", "bad ?", "good"]
    assert recorded.stats.collector_errors == {}


def everywhere(bench, folder):
    """All that is kept or shown of the queries."""
    pages = [document(bench.worker.snapshot.verdicts(), T0, "here"), status_document(bench.worker.snapshot, T0)]
    states = [str(query.state.history.ended) for query in bench.queries.values()]
    ring = b"".join(line for _, _, line in bench.worker.ring).decode()
    return json.dumps(pages) + str(states) + ring + "".join(file.read_text() for file in folder.iterdir())


def test_what_an_exception_quotes_is_masked_before_it_is_kept_anywhere(make, tmp_path):
    bench = make(Recorder(tmp_path), judge=Diagnoser)
    bench.see()
    bench.end(exception=SECRET, error_class="BAD")
    found = everywhere(bench, tmp_path)
    assert "card number <masked> of" in found
    assert not [part for part in ("4111", "John", "hunter2") if part in found]


STOPPED = 'Cannot invoke "a.B.c()" because the return value of "org.apache.spark.SparkContext.dagScheduler()" is null'


def test_the_end_of_an_application_is_known_although_masking_hides_what_tells_it(recorded, tmp_path):
    recorded.see()
    recorded.end(exception=STOPPED)
    [query] = recorded.queries.values()
    assert (query.state.history.ended.exception, query.state.history.failures) == (None, {})

    again = QueryRegistry(healthy)
    for seen in read(tmp_path):
        again.ingest(seen)
    [state] = again.queries.values()
    assert (state.history.ended.with_application, state.history.failures) == (True, {})


def test_all_queries_together_stay_within_the_budget_of_the_driver(make):
    bench = make(series_total=100)
    for number in range(4):
        bench.see(name=f"query_{number}", runId=f"run-{number}")
    exported = bench.worker.snapshot.exported.values()
    assert sum(each.size for each in exported) <= 100
    assert sum(each.dropped for each in exported) > 0


def test_idle_and_terminated_events_are_recorded_under_the_name_of_their_run(recorded, tmp_path):
    recorded.see("started", {"id": ID, "runId": RUN, "name": "daily_counts"})
    recorded.see("idle", {"id": ID, "runId": RUN})
    recorded.end()
    assert [seen.query for seen in read(tmp_path)] == ["daily_counts"] * 3


def test_a_burst_is_judged_once(make):
    judge = Judge()
    bench = make(judge=lambda: judge)
    for number in range(20):
        bench.put("progress", spark_json(batchId=number))
    bench.worker.turn()
    assert [len(view.batches) for view in judge.views] == [20]


def test_the_ring_is_bounded(make, monkeypatch):
    monkeypatch.setattr("ledgerops.agent.worker.RING_BYTES", 5000)
    bench = make()
    for number in range(50):
        bench.see(batchId=number)

    kept = [decode(line).data["batchId"] for _, _, line in bench.worker.ring]
    assert kept == list(range(50 - len(kept), 50))
    assert sum(len(line) for _, _, line in bench.worker.ring) <= 5000


def test_each_segment_begins_with_the_plans_of_the_queries_that_run(make, tmp_path):
    bench = make(Recorder(tmp_path, segment_bytes=8000, total_bytes=32_000))
    bench.put("plan", {"run_id": RUN, "trigger": "processing_time", "trigger_interval": 2.0}, NAME)
    bench.see("started", {"id": "id-2", "runId": "run-2", "name": "over", "timestamp": "2027-01-15T08:00:00Z"})
    bench.put("plan", {"run_id": "run-2", "trigger": "once"}, "over")
    bench.see("terminated", {"id": "id-2", "runId": "run-2", "exception": None})
    for number in range(40):
        bench.see(batchId=number)

    segments = sorted(tmp_path.glob("recording-*.jsonl"))
    firsts = [decode(segment.read_bytes().splitlines()[0]) for segment in segments]
    assert len(segments) >= 3 and segments[0].name != "recording-000001.jsonl"
    assert [(each.kind, each.query, each.data["trigger"]) for each in firsts] == [
        ("plan", NAME, "processing_time")
    ] * len(segments)


def test_nothing_is_kept_of_queries_that_were_forgotten(make, monkeypatch):
    monkeypatch.setattr("ledgerops.runtime.registry.MAX_ENDED_QUERIES", 3)
    bench = make()
    for number in range(10):
        bench.see(name=f"query_{number}", runId=f"run-{number}")
        bench.end(f"run-{number}")

    assert len(bench.queries) == len(bench.worker._judged_at) == 3


def test_the_thread_works_off_the_queue_before_it_ends(recorded, tmp_path):
    recorded.worker.start()
    assert recorded.worker.trouble() is None
    for number in range(500):
        recorded.put("progress", spark_json(batchId=number))
    recorded.worker.stop(timeout=60)
    recorded.worker.stop()

    assert len(list(read(tmp_path))) == 500
    assert recorded.worker.trouble() == "the worker has ended"


def test_a_file_system_that_hangs_holds_up_neither_judgements_nor_the_end_and_loses_nothing(make, tmp_path):
    segment = tmp_path / "recording-000001.jsonl"
    os.mkfifo(segment)  # opening it waits for a reader
    bench = make(Recorder(tmp_path))
    bench.worker.start()
    for number in range(3):
        bench.put("progress", spark_json(batchId=number))
        until(lambda done=number + 1: bench.queries and bench.batches_total == (((), float(done)),))
    bench.now += HANGING_SECONDS + 1
    assert re.fullmatch(f"recording to {tmp_path} has waited for the file system for 1[67] s", bench.worker.pause())

    bench.worker.stop(timeout=0.1)
    assert bench.worker.trouble() == "the worker has ended"
    reader = os.open(segment.rename(tmp_path / "elsewhere"), os.O_RDONLY | os.O_NONBLOCK)
    bench.worker._writer._thread.join(60)
    os.close(reader)
    assert [seen.data["batchId"] for seen in read(tmp_path)] == [0, 1, 2]


def test_lines_wait_for_a_disk_up_to_a_bound(make, tmp_path, monkeypatch):
    monkeypatch.setattr("ledgerops.agent.recording_writer.WAITING_BYTES", 5000)
    recorder = FullDisk(tmp_path)
    bench = make(recorder)
    for number in range(50):
        bench.see(batchId=number)
        bench.now += RETRY_SECONDS if number % 3 == 0 else 0.0
    recorder.broken = False
    bench.now += RETRY_SECONDS
    bench.see(batchId=50)

    kept = [seen.data["batchId"] for seen in read(tmp_path)]
    assert kept == list(range(51 - len(kept), 51))
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 5000


def test_plans_at_the_head_of_a_segment_are_of_its_first_line_however_long_that_waited(make, tmp_path):
    recorder = FullDisk(tmp_path)
    bench = make(recorder)
    bench.put("plan", {"run_id": RUN, "trigger": "processing_time"}, NAME)
    bench.see(batchId=1)
    bench.now += RETRY_SECONDS
    recorder.broken = False
    bench.see(batchId=2)

    seen = list(read(tmp_path))
    assert [each.kind for each in seen] == ["plan", "plan", "progress", "progress"]
    assert seen[0].at == seen[1].at <= seen[2].at < bench.now
