import errno
import inspect
import json
import logging
import shutil
import time

import orjson
import pytest

from ledgerops.agent.queue import EventQueue
from ledgerops.agent.worker import MAX_TICK_SECONDS, RETRY_SECONDS, TICK_SECONDS, Worker, tick_seconds
from ledgerops.config import Config
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.report import document
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.finding import Verdict
from ledgerops.model.recording import Recorder, decode, read
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.status import status_document
from tests.build import T0, spark_json

ID, RUN, NAME = (spark_json()[key] for key in ("id", "runId", "name"))


def healthy():
    return lambda view: Verdict(view.query, view.now, "healthy", 100)


class Bench:
    """A worker whose turns the test calls itself, with a clock that it sets."""

    def __init__(self, recorder=None, judge=healthy, size=1000, **settings):
        self.now = T0
        self.set_back = 0.0  # seconds by which the machine's clock was set back
        self.stats = SelfStats()
        self.queue = EventQueue(self.stats, size)
        config = Config(**settings)
        self.worker = Worker(
            self.queue,
            QueryRegistry(judge),
            self.stats,
            config,
            recorder,
            lambda: self.now - self.set_back,
            lambda: self.now,
        )

    def see(self, kind="progress", data=None, query=None):
        self.queue.put(kind, json.dumps(spark_json() if data is None else data), query)
        self.worker.turn()

    @property
    def queries(self):
        return self.worker.snapshot.queries


@pytest.fixture
def make():
    """Makes benches, and closes their recordings in the end."""
    made = []

    def bench(recorder=None, **options):
        made.append(recorder)
        return Bench(recorder, **options)

    yield bench
    for recorder in made:
        if recorder is not None:
            recorder.close()


class FullDisk(Recorder):
    broken = True

    def append(self, line):
        if self.broken:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().append(line)


def test_an_event_becomes_a_recording_line_state_a_verdict_and_a_snapshot(make, tmp_path):
    bench = make(Recorder(tmp_path))
    bench.see()

    [seen] = read(tmp_path)
    assert (seen.kind, seen.query, seen.data) == ("progress", "daily_counts", spark_json())
    assert bench.queries["daily_counts"].families["ledgerops_batches_total"].series == (((), 1.0),)
    assert [verdict.status for verdict in bench.worker.snapshot.verdicts()] == ["healthy"]
    assert bench.stats.recording_bytes == sum(file.stat().st_size for file in tmp_path.iterdir())
    assert set(bench.stats.worker_seconds) == {"parse", "record", "judge", "snapshot"}


def test_spark_json_is_recorded_untouched(make, tmp_path):
    bench = make(Recorder(tmp_path))
    text = json.dumps(spark_json(), indent=1).replace("\n", " ").replace("150.0", "150.00")
    bench.queue.put("progress", text)
    bench.worker.turn()

    [file] = tmp_path.iterdir()
    assert text in file.read_text()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param("progress", "{", id="torn"),
        pytest.param("progress", "[1]", id="not an object"),
        pytest.param("progress", "", id="empty"),
        pytest.param("progress", '{"name": "x"}', id="no run id"),
        pytest.param("idle", "{}", id="idle of nobody"),
        pytest.param("tasks", '{"run_id": "r", "stages": 5}', id="tasks that are none"),
        pytest.param("progress", '{"runId": 5, "batchId": "x", "timestamp": []}', id="wrong types"),
    ],
)
def test_a_malformed_event_is_counted_and_said_once_and_the_next_is_taken(make, tmp_path, caplog, kind, text):
    bench = make(Recorder(tmp_path))
    for _ in range(3):
        bench.queue.put(kind, text)
    with caplog.at_level(logging.WARNING, "ledgerops"):
        bench.see()

    assert bench.stats.collector_errors["parse"] == 3
    assert len(caplog.records) == 1
    assert list(bench.queries) == ["daily_counts"]
    assert len(list(read(tmp_path))) == 1


def test_not_a_number_in_an_event_is_taken(make):
    bench = make()
    bench.queue.put("progress", json.dumps(spark_json(inputRowsPerSecond=float("nan"))))
    bench.worker.turn()

    assert list(bench.queries) == ["daily_counts"]


def test_offsets_of_an_unknown_form_are_said_once_for_each_source(make, caplog):
    bench = make()
    text = {"description": "Mine", "endOffset": {"lsn": 71, "commit_ts": 5}, "numInputRows": 7}
    with caplog.at_level(logging.WARNING, "ledgerops"):
        for batch in (1, 2):
            bench.see(data=spark_json(batchId=batch, sources=[text, *spark_json()["sources"]]))

    assert [record.getMessage() for record in caplog.records] == [
        "the offsets of the source Mine of daily_counts have an unknown form: no backlog and no lag are known"
    ]


def test_a_full_disk_is_counted_and_said_once_and_everything_else_goes_on(make, tmp_path, caplog):
    recorder = FullDisk(tmp_path)
    bench = make(recorder)
    with caplog.at_level(logging.WARNING, "ledgerops"):
        for number in range(3):
            bench.now += RETRY_SECONDS
            bench.see(data=spark_json(batchId=number))

    assert bench.stats.recording_errors == 3
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == [
        f"cannot record to {tmp_path}; continuing without a recording"
    ]
    assert bench.queries["daily_counts"].families["ledgerops_batches_total"].series == (((), 3.0),)
    assert len(bench.worker.ring) == 3


@pytest.mark.parametrize("set_back", [0.0, 3600.0], ids=["", "the clock is set back meanwhile"])
def test_the_recording_rests_after_a_failure_and_comes_back_when_the_disk_is_cleared(make, tmp_path, set_back):
    recorder = FullDisk(tmp_path)
    bench = make(recorder)
    bench.see(data=spark_json(batchId=1))
    recorder.broken = False
    bench.set_back = set_back
    bench.see(data=spark_json(batchId=2))
    bench.now += RETRY_SECONDS
    bench.see(data=spark_json(batchId=3))

    assert [seen.data["batchId"] for seen in read(tmp_path)] == [3]
    assert bench.stats.recording_errors == 1


def test_waiting_times_are_measured_with_a_clock_that_nobody_can_set():
    assert inspect.signature(Worker).parameters["steady"].default is time.monotonic


def test_a_clock_that_is_set_back_does_not_stop_the_judging_of_a_silent_query(make):
    judged = []
    bench = make(judge=lambda: lambda view: judged.append(view.now) or Verdict(view.query, view.now, "healthy", 100))
    bench.see()
    bench.set_back = 3600.0
    bench.now += TICK_SECONDS
    bench.worker.turn()

    assert judged == [T0, T0 + TICK_SECONDS - 3600.0]


def at(seconds, batch):
    return spark_json(batchId=batch, timestamp=format_instant(T0 + seconds))


def test_what_happens_after_the_clock_was_set_back_is_seen_and_totals_go_on(make, caplog):
    bench = make()
    bench.see(data=at(0.0, 1))
    bench.now, bench.set_back = T0 + 10.0, 3600.0
    with caplog.at_level(logging.WARNING, "ledgerops"):
        bench.worker.turn()
        bench.see(data=at(-3590.0, 2))

    families = bench.queries["daily_counts"].families
    assert families["ledgerops_batches_total"].series == (((), 2.0),)
    assert families["ledgerops_last_seen_timestamp_seconds"].series[0][1] < T0 - 3000.0
    assert caplog.messages == ["the machine's clock was set back by 3590 s: rates and findings start over"]


@pytest.mark.parametrize("back", [0.0, 4.0, -3600.0], ids=["not at all", "by little", "forward"])
def test_a_clock_that_is_right_or_nearly_so_makes_nothing_forgotten(make, caplog, back):
    bench = make()
    bench.see(data=at(0.0, 1))
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
    for seconds in (1, 2, 3, 4):
        bench.now = T0 + seconds
        bench.see("offsets", heads(bench.now))
    assert bench.queries[NAME].at == first

    bench.now = T0 + TICK_SECONDS
    bench.worker.turn()
    assert bench.queries[NAME].at == bench.now
    assert len(bench.queries[NAME].state.history.heads) == 4

    bench.now += 1
    bench.see("offsets", heads(bench.now))
    bench.see("tasks", {"run_id": RUN, "batch_id": 1, "stages": [], "python_seconds": 0.0})
    assert bench.queries[NAME].at == bench.now


def test_a_broker_that_does_not_answer_is_judged_at_once(make):
    bench = make()
    bench.see()
    bench.now += 1
    bench.see("offsets", {"run_id": RUN, "latest": {}, "earliest": {}, "error": "timed out", "unreachable_since": T0})

    assert bench.queries[NAME].at == bench.now


@pytest.mark.parametrize(("queries", "seconds"), [(1, 5.0), (250, 5.0), (500, 10.0), (10_000, MAX_TICK_SECONDS)])
def test_the_more_queries_the_longer_each_waits_without_news_up_to_a_bound(queries, seconds):
    assert tick_seconds(queries) == seconds


def test_of_many_silent_queries_each_is_judged_within_the_bound(make):
    judged = []
    bench = make(judge=lambda: lambda view: judged.append(view.query) or Verdict(view.query, view.now, "healthy", 100))
    for number in range(300):
        begun = {
            "id": f"id-{number}",
            "runId": f"run-{number}",
            "name": f"q{number}",
            "timestamp": "2027-01-15T08:00:00Z",
        }
        bench.queue.put("started", json.dumps(begun))
    while len(bench.queue):
        bench.worker.turn()
    judged.clear()
    for _ in range(int(2 * tick_seconds(300)) + 1):
        bench.now += 1.0
        bench.worker.turn()

    assert {judged.count(f"q{number}") for number in range(300)} == {2}


def test_a_recording_that_is_deleted_is_counted_said_once_and_begun_again(make, tmp_path, caplog):
    folder = tmp_path / "recording"
    bench = make(Recorder(folder))
    bench.see(data=spark_json(batchId=1))
    shutil.rmtree(folder)
    with caplog.at_level(logging.WARNING, "ledgerops"):
        bench.see(data=spark_json(batchId=2))
        bench.see(data=spark_json(batchId=3))

    assert bench.stats.recording_errors == 1
    assert [line.split(" (")[0] for line in caplog.messages] == [f"recording anew to {folder}"]
    assert [seen.data["batchId"] for seen in read(folder)] == [2, 3]
    assert bench.worker.pause() is None


def test_a_recording_folder_that_is_a_file_does_no_harm(make, tmp_path):
    file = tmp_path / "recording"
    file.write_text("mine")
    bench = make(Recorder(file))
    bench.see()

    assert bench.worker.pause() == f"recording to {file} is paused after an error; see the driver's log"

    assert bench.stats.recording_errors == 1
    assert file.read_text() == "mine"
    assert list(bench.queries) == ["daily_counts"]


def test_a_judge_that_raises_leaves_the_metrics_in_place(make, caplog):
    def judge():
        def broken(view):
            raise ZeroDivisionError

        return broken

    bench = make(judge=judge)
    with caplog.at_level(logging.WARNING, "ledgerops"):
        bench.see()

    assert bench.stats.collector_errors["judge"] == 1
    assert "ledgerops_batches_total" in bench.queries["daily_counts"].families
    assert bench.worker.snapshot.verdicts() == []


class Ruled:
    """A judge that counts the rules that raised, as a diagnoser does."""

    def __init__(self, failing):
        self.failing = failing
        self.errors = {}

    def __call__(self, view):
        for rule in self.failing:
            self.errors[rule] = self.errors.get(rule, 0) + 1
        return Verdict(view.query, view.now, "healthy", 100)


@pytest.mark.parametrize(
    ("failing", "count", "said"),
    [
        pytest.param((), 0, [], id="none"),
        pytest.param(("key-skew",), 3, ["key-skew"], id="one"),
        pytest.param(("key-skew", "slow-sink"), 6, ["key-skew", "slow-sink"], id="two"),
    ],
)
def test_a_rule_that_raises_is_counted_and_said_once(make, caplog, failing, count, said):
    bench = make(judge=lambda: Ruled(failing))
    with caplog.at_level(logging.WARNING, "ledgerops"):
        for number in range(3):
            bench.see(data=spark_json(batchId=number))

    assert bench.stats.collector_errors["rule"] == count
    assert [record.getMessage() for record in caplog.records] == [
        f"the rule {rule} failed on daily_counts; further failures of this rule are only counted" for rule in said
    ]
    assert [verdict.status for verdict in bench.worker.snapshot.verdicts()] == ["healthy"]


def test_of_a_stack_trace_the_frames_are_not_kept(make, tmp_path):
    bench = make(Recorder(tmp_path))
    trace = "org.apache.spark.SparkException: " + "x" * 600 + "\n" + "\tat somewhere\n" * 1000
    bench.see()
    bench.see("terminated", {"id": ID, "runId": RUN, "exception": trace, "errorClassOnException": "BAD"})

    *_, seen = read(tmp_path)
    assert seen.data["exception"] == trace[:500]
    assert bench.queries["daily_counts"].state.history.failures == {"BAD": 1}


def test_half_a_letter_in_a_name_or_an_exception_is_replaced_and_the_pages_of_all_queries_can_be_made(make, tmp_path):
    bench = make(Recorder(tmp_path))
    bench.see(data=spark_json(name="good"))
    bench.see(data=spark_json(name="bad \ud83d", runId="run-2"))
    error = {"exception": "bad \ud83d", "errorClassOnException": "half: \ud83d"}
    bench.see("terminated", {"id": ID, "runId": RUN, **error})

    assert list(bench.queries) == ["good", "bad ?"]
    assert orjson.dumps(document(bench.worker.snapshot.verdicts(), T0, "here"))
    assert orjson.dumps(status_document(bench.worker.snapshot, T0))
    *seen, ended = read(tmp_path)
    assert [each.query for each in (*seen, ended)] == ["good", "bad ?", "good"]
    assert ended.data["exception"] == "bad ?"
    assert bench.stats.collector_errors == {}


SECRET = 'ValueError: card number 4111-1111-1111-1111 of "John Smith" is bad, password=hunter2'


def everywhere(bench, folder):
    """All that is kept or shown of the queries."""
    pages = [document(bench.worker.snapshot.verdicts(), T0, "here"), status_document(bench.worker.snapshot, T0)]
    states = [str(query.state.history.ended) for query in bench.queries.values()]
    ring = b"".join(line for _, _, line in bench.worker.ring).decode()
    return json.dumps(pages) + str(states) + ring + "".join(file.read_text() for file in folder.iterdir())


def test_what_an_exception_quotes_is_masked_before_it_is_kept_anywhere(make, tmp_path):
    bench = make(Recorder(tmp_path), judge=Diagnoser)
    bench.see()
    bench.see("terminated", {"id": ID, "runId": RUN, "exception": SECRET, "errorClassOnException": "BAD"})

    found = everywhere(bench, tmp_path)
    assert "card number <masked> of" in found
    assert not [part for part in ("4111", "John", "hunter2") if part in found]


def test_a_setting_keeps_exceptions_word_for_word(make, tmp_path):
    bench = make(Recorder(tmp_path), judge=Diagnoser, exception_text=True)
    bench.see()
    bench.see("terminated", {"id": ID, "runId": RUN, "exception": SECRET, "errorClassOnException": "BAD"})

    *_, seen = read(tmp_path)
    assert seen.data["exception"] == SECRET


def test_all_queries_together_stay_within_the_budget_of_the_driver(make):
    bench = make(series_total=100)
    for number in range(4):
        bench.see(data=spark_json(name=f"query_{number}", runId=f"run-{number}"))

    assert sum(query.size for query in bench.queries.values()) <= 100
    assert bench.stats.series_dropped > 0


def test_a_clean_stop_keeps_its_null(make, tmp_path):
    bench = make(Recorder(tmp_path))
    bench.see()
    bench.see("terminated", {"id": ID, "runId": RUN, "exception": None, "errorClassOnException": None})

    *_, seen = read(tmp_path)
    assert seen.data["exception"] is None
    assert bench.queries["daily_counts"].state.history.failures == {}


def test_idle_and_terminated_events_are_recorded_under_the_name_of_their_run(make, tmp_path):
    bench = make(Recorder(tmp_path))
    bench.see("started", {"id": ID, "runId": RUN, "name": "daily_counts"})
    bench.see("idle", {"id": ID, "runId": RUN})

    assert [seen.query for seen in read(tmp_path)] == ["daily_counts", "daily_counts"]


def test_a_burst_is_judged_once(make):
    looks = []

    def judge():
        def look(view):
            looks.append(len(view.batches))
            return Verdict(view.query, view.now, "healthy", 100)

        return look

    bench = make(judge=judge)
    for number in range(20):
        bench.queue.put("progress", json.dumps(spark_json(batchId=number)))
    bench.worker.turn()

    assert looks == [20]


def test_the_ring_is_bounded(make, monkeypatch):
    monkeypatch.setattr("ledgerops.agent.worker.RING_BYTES", 5000)
    bench = make()
    for number in range(50):
        bench.see(data=spark_json(batchId=number))

    kept = [decode(line).data["batchId"] for _, _, line in bench.worker.ring]
    assert kept == list(range(50 - len(kept), 50))
    assert sum(len(line) for _, _, line in bench.worker.ring) <= 5000


def test_a_snapshot_is_swapped_not_changed(make):
    bench = make()
    bench.see()
    before = bench.worker.snapshot
    bench.see(data=spark_json(batchId=8))

    assert before is not bench.worker.snapshot
    assert before.queries["daily_counts"].families["ledgerops_batches_total"].series == (((), 1.0),)


def test_the_series_that_were_cut_are_counted(make):
    bench = make(series_per_query=20)
    bench.see()
    cut = bench.queries["daily_counts"].dropped
    assert bench.stats.series_dropped == cut > 0

    bench.see(data=spark_json(batchId=8))
    assert bench.stats.series_dropped == cut

    bench.see(data=spark_json(name="another", runId="another-run"))
    assert bench.stats.series_dropped == 2 * cut


def test_nothing_is_kept_of_queries_that_were_forgotten_but_the_count_of_their_series(make, monkeypatch):
    monkeypatch.setattr("ledgerops.runtime.registry.MAX_ENDED_QUERIES", 3)
    bench = make(series_per_query=20)
    counts = []
    for number in range(10):
        run = f"run-{number}"
        bench.see(data=spark_json(name=f"query_{number}", runId=run))
        bench.see("terminated", {"id": ID, "runId": run, "exception": None})
        counts.append(bench.stats.series_dropped)

    assert len(bench.queries) == len(bench.worker._judged_at) == len(bench.worker._most_dropped) == 3
    assert counts == sorted(counts) and counts[-1] == 10 * counts[0] > 0


def test_the_thread_works_off_the_queue_before_it_ends(make, tmp_path):
    bench = make(Recorder(tmp_path))
    bench.worker.start()
    assert bench.worker.trouble() is None
    for number in range(500):
        bench.queue.put("progress", json.dumps(spark_json(batchId=number)))
    bench.worker.stop(timeout=60)
    bench.worker.stop()

    assert len(list(read(tmp_path))) == 500
    assert bench.worker.trouble() == "the worker has ended"
