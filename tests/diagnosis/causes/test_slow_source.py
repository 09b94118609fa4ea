from dataclasses import replace

import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.slow_source import CAUSE
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.model.records import Heads
from tests.diagnosis.conftest import TOPIC, stage, told_by
from tests.tables import cases

ASKS = {"latest_offset": 3.0, "get_batch": 0.5, "add_batch": 1.0}
READS = stage("scan", seconds=(0.6, 0.6), shuffle=False)
WAITS = stage("scan", seconds=(3.6, 3.6), shuffle=False, cpu=0.05)
COMPUTES = stage("scan", seconds=(3.6, 3.6), shuffle=False)
WRITES = stage("save", seconds=(0.1, 0.1), began=3.7)
SAVES, COUNTS = replace(WAITS, shuffle_write_bytes=0, slowest_wrote=500), stage("count", shuffle=False, began=3.7)


def asking(history, **more):
    return history(**{"warm": 0, "seconds": [5] * 12, "phases": ASKS} | more)


def waiting(history, past=14, now=(WAITS, WRITES), **more):
    told = {"warm": past, "warm_stages": [READS, stage("save", seconds=(0.1, 0.1), began=0.7)], "seconds": [5] * 8}
    return history(**told | {"stages": list(now)} | more)


def answers(view, now=0.3):
    """The view with answers of the broker to ledgerops itself, of which the newest five took `now` seconds."""
    for left in range(40, 0, -1):
        seconds = now if left <= 5 else 0.01
        view.history.heads.append(Heads(view.now - 2 * left, {(TOPIC, "0"): 0}, {(TOPIC, "0"): 0}, seconds=seconds))
    return view.at(view.now)


def test_asking_the_source_is_told_without_a_past_and_is_the_root(history):
    [root] = Diagnoser()(asking(history, seconds=[5] * 20)).root_causes
    assert (root.rule, root.explains) == ("slow-source", ("trigger-overrun",))
    assert root.summary == "3.5 s of a batch of 5.0 s pass waiting for the source"
    assert (root.component.kind, root.component.name) == ("source", TOPIC)


@cases(
    "tasks, running, explained",
    ("nothing says what it waits for", None, None, True),
    ("its tasks have no slot", 4, 0, False),
)
def test_a_batch_that_hangs_is_explained_unless_it_waits_for_something_else(history, tasks, running, explained):
    view = asking(history, seconds=[5] * 20, running=300, message="Getting offsets")
    now = replace(view.history.running, tasks=tasks, tasks_done=0, tasks_running=running, moved=view.now - 290)
    view.history.running = now
    roots = [each.rule for each in Diagnoser()(view.at(view.now)).root_causes]
    assert roots == (["slow-source"] if explained else ["query-stuck", "slow-source"])


def test_tasks_that_read_and_wait_are_the_source_s_where_that_grew(history):
    """Tasks that always waited may be those of a source that makes its rows slowly by intent."""
    [finding] = check(CAUSE, waiting(history))
    assert finding.saving_seconds == pytest.approx(3.3, abs=0.2)


def test_of_tasks_that_read_and_write_a_second_witness_tells_that_it_is_the_source(history):
    [finding] = check(CAUSE, answers(waiting(history, now=(WAITS,))))
    assert told_by(finding)["broker_answer_seconds"] == 0.3


@cases(
    "source, first",
    ("Kafka", "KafkaV2[Subscribe[a]]", "check the broker's request latency, its quotas"),
    ("files", "FileStreamSource[file:/in]", "count the files and folders of the source"),
    ("a table", "DeltaSource[file:/in]", "count the versions and files that the table has gained"),
    ("one of the user's own", "MySource", "time one request to the source"),
)
def test_the_first_step_fits_the_source(history, source, first):
    [finding] = check(CAUSE, asking(history, source=source))
    assert finding.remedies[0].action.startswith(first)


def test_files_of_a_batch_that_are_looked_up_one_by_one_are_another_matter_than_a_long_listing(history):
    """They are as many with a longer interval, which is not advised."""
    phases = {"latest_offset": 0.5, "get_batch": 3.0, "add_batch": 1.0}
    [finding] = check(CAUSE, asking(history, source="FileStreamSource[file:/in]", phases=phases))
    assert [each.action[:37] for each in finding.remedies] == ["count the files that a batch reads, a"]
    [finding] = check(CAUSE, asking(history, source="DeltaSource[file:/in]", phases=phases))
    assert finding.remedies[0].action.startswith("count the versions and files")


@cases(
    "late, advised",
    ("it was the only one", [60], False),
    ("another one was late", [60, 60], True),
)
def test_a_longer_interval_is_no_step_against_one_late_batch(history, late, advised):
    [finding] = check(CAUSE, asking(history, warm=20, seconds=late, phases={"latest_offset": 55.0, "add_batch": 1.0}))
    assert ("trigger interval" in finding.remedies[-1].action) == advised


@cases(
    "make",
    ("less than a third", lambda history: asking(history, phases={"latest_offset": 0.9, "add_batch": 4.0})),
    ("it is asked quickly", lambda history: asking(history, phases={"add_batch": 4.8})),
    ("one batch so far", lambda history: asking(history, seconds=[5])),
    ("a broker that answers only ledgerops slowly", lambda history: answers(history(seconds=[1.0] * 8))),
    ("tasks that compute", lambda history: waiting(history, now=(COMPUTES, WRITES))),
    ("tasks that always waited", lambda history: waiting(history, past=0)),
    ("tasks that read and write, without a second witness", lambda history: waiting(history, now=(WAITS,))),
    ("they write before others read again", lambda history: waiting(history, now=(SAVES, COUNTS, WRITES))),
)
def test_others_are_not(history, make):
    assert list(check(CAUSE, make(history))) == []
