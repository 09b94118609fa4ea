from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.slow_sink import CAUSE as SLOW_SINK
from ledgerops.diagnosis.facts.context import small_files
from ledgerops.diagnosis.rules.many_small_files import RULE
from ledgerops.model.records import TableCommit, Tables
from tests.diagnosis.conftest import stage, told_by
from tests.tables import cases

BOUND = "; each batch adds 350 files of 4.1 kB: files bound the write, not rows"
DELTA = {"sink": "DeltaSink[/out]"}
LATE = {"seconds": [5] * 8, "phases": {"add_batch": 4.8}, "plan": DELTA}
WAITS = [[stage("save", seconds=[0.4, 0.4], began=0.5)]] * 8
READS_AND_WRITES = [[stage("save", seconds=[4, 4], wall=4.1, cpu=0.05, shuffle=False)]] * 8


def committed(view, commits, head=None):
    view.history.add_tables(Tables(view.now, "run-1", {}, tuple(commits), head))
    return view.at(view.now)


def writes(view, commits=10, files=350, size=4_100, head=None):
    """The view after so many commits of so many files of `size` bytes each."""
    written = [TableCommit(n, view.now - 30 + n, n, 700, files, files * size) for n in range(commits)]
    return committed(view, written, head)


def adds(view, *files):
    """The view after a commit of each of its newest batches, of so many files of 1 kB."""
    newest = zip(list(view.history.batches)[-len(files) :], files, strict=True)
    return committed(view, [TableCommit(b.batch_id, b.ended, b.batch_id, 700, n, n * 1_000) for b, n in newest])


@cases(
    "sink, head, log, first",
    ("a table is compacted", "DeltaSink[/out]", 9, {"uncheckpointed_versions": 10}, "compact the table that it writes"),
    ("a folder of plain files is not", "FileSink[file:/out]", None, {}, "compare the files of a batch"),
)
def test_many_small_files_are_told_with_what_to_do_about_them(history, sink, head, log, first):
    [finding] = RULE.check(writes(history(plan={"sink": sink}), head=head))

    assert finding.summary == "each batch adds 350 files of 4.1 kB, by the last 3 commits"
    assert told_by(finding) == {"files_per_commit": 350, "bytes_per_file": 4100} | log
    assert finding.remedies[0].action.startswith(first)
    assert any("compact" in step.action for step in finding.remedies) is ("Delta" in sink)
    assert (RULE.severity, finding.remedies[0].safe) == ("info", True)


def test_one_commit_of_very_many_small_files_says_what_binds_the_write_and_nothing_of_each_batch(history):
    view = writes(history(plan=DELTA), commits=1, files=1_200, size=700)

    assert small_files(view).summary == "1,200 files of 700 B"
    assert list(RULE.check(view)) == []


@cases(
    "commits",
    ("few files: little data needs no more", {"files": 8}),
    ("many files of a fair size: much data", {"size": 2_000_000}),
    ("two commits say nothing yet", {"commits": 2, "files": 50}),
    ("commits without a file", {"files": 0}),
    ("the commits are not known", {"commits": 0}),
)
def test_others_are_not(history, commits):
    assert list(RULE.check(writes(history(plan=DELTA), **commits))) == []


@cases(
    "files, ending, first",
    ("many", 350, BOUND, "compare the files of a batch"),
    ("few", 2, "pass in the sink while no task computes", "time one commit to the table"),
)
def test_a_slow_sink_says_that_files_bound_its_write(history, files, ending, first):
    [finding] = check(SLOW_SINK, writes(history(**LATE, stages=WAITS), files=files))
    assert finding.summary.endswith(ending)
    assert finding.remedies[0].action.startswith(first)


@cases("files, found", ("many", 350, True), ("few", 2, False))
def test_tasks_that_read_and_write_wait_for_the_sink_where_they_write_many_small_files(history, files, found):
    case = LATE | {"source": "DeltaSource[/in]"}
    view = writes(history(**case, stages=READS_AND_WRITES), files=files)
    assert bool(list(check(SLOW_SINK, view))) is found


FEW_ONCE = [10] * 6


@cases(
    "late, files, said",
    ("of late batches", 2, [*FEW_ONCE, 1498, 1500], "1,500 files of 1.0 kB"),
    ("and not of those in time before", 4, [*FEW_ONCE, 409, 1498, 1500, 1500], "1,500 files of 1.0 kB"),
    ("nor of a commit without any", 4, [*FEW_ONCE, 350, 350, 350, 0], "350 files of 1.0 kB"),
    ("where none is late, of the newest", 0, [*FEW_ONCE, 409, 1498, 1500], "1,500 files of 1.0 kB"),
    ("one late commit is no usual one", 0, [*FEW_ONCE, 409], None),
)
def test_the_files_are_those_of_the_batches_that_are_judged(history, late, files, said):
    found = small_files(adds(history(plan=DELTA, seconds=[1.0] * (8 - late) + [9.0] * late, warm=12), *files))
    assert (found and found.summary) == said


def test_findings_of_one_answer_say_the_same_number_of_files(history):
    view = adds(history(**LATE | {"seconds": [1.0] * 8 + [5.0] * 8}, stages=WAITS * 2), 10, 10, 409, 1498, 1500, 1500)
    for found in (RULE.check(view), check(SLOW_SINK, view)):
        assert "each batch adds 1,500 files of 1.0 kB" in next(iter(found)).summary
