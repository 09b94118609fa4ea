"""What is queued of the tables of a run: after each batch, and when a table has moved or cannot be read."""

import json
from contextlib import nullcontext

import pytest

from ledgerops.agent.delta_table import SURVEY_SECONDS
from ledgerops.agent.hadoop_files import FileError
from ledgerops.agent.tables import ASK_SECONDS, RETRY_SECONDS, TableCollector
from ledgerops.model import history
from ledgerops.model.observations import build
from ledgerops.model.records import Observation, TableCommit, TablePosition, TableRead, Tables
from ledgerops.runtime.runs import TableInput
from tests.agent.delta_logs import DeltaLog, LocalFiles
from tests.agent.fakes import FakeSession, queue, roster_of, run_of, taken
from tests.agent.iceberg_snapshots import History
from tests.build import T0
from tests.tables import cases


class Case:
    """A run that reads `bronze` (versions 0 to 2, a file of 100 bytes each) and writes `silver`; its collector."""

    def __init__(self, folder, runs=1):
        self.bronze, self.silver = DeltaLog(folder / "bronze"), DeltaLog(folder / "silver")
        for version in range(3):
            self.bronze.commit(version, 100)
        self.silver.commit(0, 50, by=("id-1", 3))
        self.session = FakeSession()
        self.session.classic = True
        self.files, self.box, self.now = LocalFiles(), queue(), 0.0
        self.runs = [run_of(self.session, f"run-{number}") for number in range(1, runs + 1)]
        self.run = self.runs[0]
        self.run.sink_table = str(self.silver.folder)
        for run in self.runs:
            self.move(1, run)
        self.watch(*self.runs)

    def watch(self, *runs, table=None):
        """Begins to collect of these; `table` gives Iceberg's object of a run and a place."""
        self.roster = roster_of(*runs)
        self.collector = TableCollector(self.box, self.roster, lambda session: self.files, lambda: self.now, table)

    def files_of_batches(self, folder, *batches):
        """The log of a folder of files that the run writes, with a file of 50 bytes in each of these batches."""
        log = folder / "out/_spark_metadata"
        log.mkdir(parents=True, exist_ok=True)
        entry = {"path": "file:/out/part", "size": 50, "modificationTime": T0 * 1000, "action": "add"}
        for batch in batches:
            (log / str(batch)).write_text(f"v1\n{json.dumps(entry)}")
        self.run.tables, self.run.sink_table = {}, str(log)
        return log

    def move(self, version, run=None):
        """A batch has ended at another position."""
        tables = {"bronze": TableInput(str(self.bronze.folder), TablePosition(version, -1, False))}
        (run or self.run).tables = tables

    def collect(self, after=0.0, fails=None, asking=None):
        """What is queued `after` so many seconds, though the collector `fails` with this."""
        self.now += after
        with pytest.raises(FileError, match=fails) if fails else nullcontext():
            (asking or self.collector.collect)()
        return [build(Tables, data, at=T0) for kind, data in taken(self.box) if kind == "tables"]


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path)


def test_what_is_left_and_what_was_written_is_told_at_first_sight(case):
    bronze = TableRead(head=2, versions=2, files=2, bytes=200, since=T0 + 10)
    assert case.collect() == [Tables(T0, "run-1", {"bronze": bronze}, (TableCommit(0, T0, 3, 10, 1, 50),), head=0)]


def test_nothing_is_told_twice_and_nothing_is_asked_before_the_table_is_due(case):
    case.collect()
    case.files.questions()
    assert (case.collect(after=1), case.files.questions()) == ([], [])
    assert case.collect(after=ASK_SECONDS) == []
    assert case.files.questions() == [f"{3:020}.json", f"{1:020}.json"]  # one question for each table


def test_after_a_batch_what_is_left_is_told_anew_without_a_question(case):
    case.collect()
    case.files.questions()
    case.move(3)
    [told] = case.collect(after=1)
    assert told.sources == {"bronze": TableRead(head=2, versions=0, files=0, bytes=0)}
    assert case.files.questions() == []


def test_a_new_version_is_told_when_the_table_is_due(case):
    case.collect()
    case.bronze.commit(3, 10, 20)
    assert case.collect(after=ASK_SECONDS - 1) == []
    [told] = case.collect(after=1)
    assert told.sources["bronze"] == TableRead(head=3, versions=3, files=4, bytes=230, since=T0 + 10)


def test_more_commits_than_one_round_reads_are_told_in_the_rounds_after_it(case):
    case.collect()
    for version in range(1, 51):  # five a second
        case.silver.commit(version, 50, by=("id-1", version + 3))
    told = [*case.collect(after=ASK_SECONDS), *case.collect(after=1), *case.collect(after=1)]
    assert [len(each.commits) for each in told] == [20, 20, 10]
    case.files.questions()
    assert (case.collect(after=1), case.files.questions()) == ([], [])


def test_only_the_commits_of_the_querys_own_batches_count_and_each_once(case):
    case.collect()
    case.silver.commit(1, 50, 60, by=("id-1", 4))
    case.silver.commit(2, 70, by=("another", 4))
    case.silver.commit(3, 80)

    [told] = case.collect(after=ASK_SECONDS)
    assert told.commits == (TableCommit(1, T0 + 10, 4, 20, 2, 110),)
    assert (told.head, case.collect(after=ASK_SECONDS)) == (3, [])


@cases(
    "first, counted",
    ("not those before the first that was watched", 4, [4]),
    ("those that ended before the collector's first turn", 3, [3, 4]),
)
def test_which_batches_count(case, first, counted):
    case.run.first_batch, case.run.last_batch = first, 4
    case.silver.commit(1, 50, by=("id-1", 4))
    [told] = case.collect()
    assert [commit.batch_id for commit in told.commits] == counted


def end_run(case):
    past = history.History("daily_counts")
    past.end(T0, "run-1", None, None)
    ended = Observation(T0, "terminated", "daily_counts", {"id": "id-1", "runId": "run-1"})
    case.roster.note(ended, past, case.session)


def test_what_a_run_wrote_last_is_told_at_once_after_its_end_and_asked_for_once(case):
    case.collect()
    case.silver.commit(1, 70, by=("id-1", 4))
    end_run(case)

    [told] = case.collect(after=1)
    assert [(each.batch_id, each.bytes) for each in told.commits] == [(4, 70)]
    case.files.questions()
    assert (case.collect(after=1), case.files.questions()) == ([], [])


def test_what_a_run_wrote_last_is_told_when_the_watch_ends(case):
    case.collect()
    case.silver.commit(1, 70, by=("id-1", 4))
    assert case.collect(after=1) == []
    [told] = case.collect(asking=case.collector.close)
    assert [(each.batch_id, each.bytes) for each in told.commits] == [(4, 70)]


def test_of_a_session_that_was_stopped_what_a_run_wrote_last_is_told_when_the_watch_ends_and_each_once(case, tmp_path):
    case.files_of_batches(tmp_path, 3, 4)
    [told] = case.collect()
    assert [each.batch_id for each in told.commits] == [3]

    case.run.last_batch, case.session.up = 4, False
    end_run(case)
    case.files.questions()
    assert (case.collect(after=1), case.files.questions()) == ([], [])
    [told] = case.collect(asking=case.collector.close)
    assert [each.batch_id for each in told.commits] == [4]


def test_what_cannot_be_read_when_the_watch_ends_is_not_told(case):
    case.collect()
    case.files.broken.add("*")
    assert case.collect(fails="silver", asking=case.collector.close) == []


@pytest.mark.parametrize(("handle", "told"), [(object(), 1), (None, 0)], ids=["Spark was asked", "it was not"])
def test_of_a_run_that_is_over_iceberg_is_read_where_its_handle_is_known(case, handle, told):
    case.run.tables, case.run.sink_table = {}, "Iceberg[lake.db.silver]"
    case.run.over, case.run.handle = True, handle
    case.watch(case.run, table=lambda run, place: History())
    assert len(case.collect()) == told


def test_the_next_run_of_a_query_has_a_table_object_of_its_own(case):
    tables = {"run-1": History(), "run-2": History()}
    runs = [run_of(case.session, run_id, sink_table="Iceberg[lake.db.silver]") for run_id in tables]
    case.watch(*runs, table=lambda run, place: tables[run.run_id])
    tables["run-2"].commit(50, by=("id-1", 4))
    assert [[each.batch_id for each in told.commits] for told in case.collect()] == [[], [4]]


def test_two_queries_that_read_one_table_ask_it_once(tmp_path):
    case = Case(tmp_path, runs=2)
    assert [told.run_id for told in case.collect()] == ["run-1", "run-2"]
    case.files.questions()
    case.bronze.commit(3, 10)
    case.move(3, case.runs[1])

    told = case.collect(after=ASK_SECONDS)
    assert [(each.run_id, each.sources["bronze"].files) for each in told] == [("run-1", 3), ("run-2", 1)]
    assert case.files.questions().count(f"{4:020}.json") == 1


def test_a_table_that_cannot_be_read_is_told_once_and_asked_again_later(case):
    case.collect()
    case.files.broken.add(f"{3:020}.json")
    [told] = case.collect(after=ASK_SECONDS, fails=r"bronze: AccessControlException: Permission denied$")
    assert told.errors == {"bronze": "AccessControlException: Permission denied"}
    assert told.sources["bronze"].versions == 2  # what was known before stays

    case.files.broken.clear()
    assert case.collect(after=ASK_SECONDS) == []
    [told] = case.collect(after=RETRY_SECONDS - ASK_SECONDS)
    assert told.errors == {}


def test_a_table_that_is_gone_is_told_once_and_leaves_what_was_known_and_the_sink(case):
    case.collect()
    case.bronze.folder.rename(case.bronze.folder.parent / "moved")
    case.silver.commit(1, 50, by=("id-1", 4))
    [told] = case.collect(after=SURVEY_SECONDS, fails=r"bronze: there is no Delta table$")
    assert told.errors == {"bronze": "there is no Delta table"}
    assert (told.sources["bronze"].versions, [commit.version for commit in told.commits]) == (2, [1])

    assert case.collect(after=ASK_SECONDS) == []  # a minute goes by until it is asked again
    assert case.collect(after=RETRY_SECONDS, fails=r"bronze: there is no Delta table$") == []


@cases(
    "missing, known",
    ("the next one: where the log ends is not known", 1, {}),
    ("a later one: no files", 2, {"bronze": TableRead(head=3, versions=3, since=T0 + 10)}),
)
def test_a_version_that_is_missing_is_told_and_nothing_wrong_is_said_of_what_is_left(case, missing, known):
    case.bronze.commit(3, 100)
    (case.bronze.log / f"{missing:020}.json").unlink()
    [told] = case.collect(fails=rf"bronze: version {missing} of the table is gone$")
    assert told.errors == {"bronze": f"version {missing} of the table is gone"}
    assert told.sources == known
    assert len(told.commits) == 1  # of the sink


def test_a_version_that_goes_missing_later_is_told_within_a_minute(case):
    case.collect()
    case.bronze.commit(4, 100)
    assert case.collect(after=ASK_SECONDS) == []  # as while nothing is new: there is no listing
    [told] = case.collect(after=SURVEY_SECONDS, fails=r"bronze: version 3 of the table is gone$")
    assert told.sources["bronze"].versions == 2  # what was known before stays


def test_an_entry_that_is_no_json_counts_as_a_version_without_files(case):
    (case.bronze.log / f"{2:020}.json").write_bytes(b"\xff\x00{broken")
    [told] = case.collect()
    assert (told.errors, told.sources["bronze"].versions, told.sources["bronze"].files) == ({}, 2, 1)


def test_a_sink_that_cannot_be_read_leaves_the_sources_alone(case):
    case.files.broken.add("silver")
    case.silver.log.rename(case.silver.folder / "gone")
    [told] = case.collect(fails=r"silver: there is no Delta table$")
    assert (told.errors, told.sources["bronze"].files) == ({"sink": "there is no Delta table"}, 2)


def test_a_run_without_tables_or_on_spark_connect_costs_nothing(case):
    case.session.classic = False
    assert (case.collect(), case.files.questions()) == ([], [])
    case.session.classic, case.run.tables, case.run.sink_table = True, {}, None
    assert (case.collect(after=ASK_SECONDS), case.files.questions()) == ([], [])


def test_an_iceberg_table_is_told_as_a_delta_table_is(case):
    source, sink = History(), History()
    first = source.commit(100, 200)
    source.commit(300)
    sink.commit(50, by=("id-1", 3))
    place = "org.apache.iceberg.spark.source.SparkMicroBatchStream@1f"
    case.run.tables = {"iceberg": TableInput(place, TablePosition(first, 1, False))}
    case.run.sink_table = "Iceberg[lake.db.silver]"
    case.watch(case.run, table=lambda run, table: {place: source, None: sink}[table])

    [told] = case.collect()
    assert told.sources == {"iceberg": TableRead(source.head, 2, 2, None, since=T0)}
    assert told.commits == (TableCommit(sink.head, T0, 3, None, 1, 50),)
    assert (told.head, told.checkpoint, case.files.questions()) == (None, None, [])

    assert (case.collect(after=1), source.looked) == ([], 1)
    # what a batch reads before the table is asked again is no other history
    case.run.tables = {"iceberg": TableInput(place, TablePosition(source.commit(10), 1, False))}
    case.collect(after=1)
    case.run.tables = {"iceberg": TableInput(place, TablePosition(first, 1, False))}
    case.collect(after=1)
    source.broken = "s3: 403"
    [told] = case.collect(after=ASK_SECONDS, fails="iceberg: OSError: s3: 403")
    assert told.errors == {"iceberg": "OSError: s3: 403"}
    assert told.sources["iceberg"].versions == 2  # what was known before stays


def test_what_a_batch_adds_to_a_folder_of_files_is_told_as_a_commit_is(case, tmp_path):
    case.files_of_batches(tmp_path, 2, 3, 4, 5)
    [told] = case.collect()
    assert told.commits == (TableCommit(3, T0, 3, None, 1, 50),)  # 2 was before the first batch that was seen
    assert (told.head, told.checkpoint, told.errors) == (None, None, {})
    case.run.last_batch = 5
    assert case.collect(after=1) == []
    [told] = case.collect(after=ASK_SECONDS)
    assert [each.batch_id for each in told.commits] == [4, 5]


def test_no_batch_of_a_file_sink_is_lost_whichever_is_the_first_that_is_looked_at(case, tmp_path):
    # every tenth repeats all before it
    case.files_of_batches(tmp_path, *(f"{batch}.compact" if batch % 10 == 9 else batch for batch in range(17, 31)))
    case.run.first_batch = 18

    counted = []
    for case.run.last_batch in (19, 25, 30):
        counted += [commit.batch_id for told in case.collect(after=ASK_SECONDS) for commit in told.commits]
    assert counted == [18, *range(20, 29), 30]


def test_a_new_query_in_the_folder_of_one_that_has_just_ended_is_counted(case, tmp_path):
    log = case.files_of_batches(tmp_path, 3)
    [told] = case.collect()
    assert [(each.run_id, commit.batch_id) for each in [told] for commit in each.commits] == [("run-1", 3)]

    # output and checkpoint are deleted, and the query starts anew
    (log / "3").unlink()
    case.files_of_batches(tmp_path, 0)
    again = run_of(case.session, "run-2", query_id="id-2", sink_table=str(log), first_batch=0, last_batch=0)
    case.collector._runs = roster_of(case.run, again)
    told = case.collect(after=1)
    assert [(each.run_id, commit.batch_id) for each in told for commit in each.commits] == [("run-2", 0)]


def test_the_table_of_a_run_that_has_ended_is_let_go(case):
    case.collect()
    case.run.tables, case.run.sink_table = {}, None
    case.collect(after=1)
    assert case.collector._tables == {}
