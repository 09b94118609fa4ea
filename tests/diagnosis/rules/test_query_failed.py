from dataclasses import replace

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.facts.exception_text import exception_class, first_line, place, user_code
from ledgerops.diagnosis.facts.known_failures import SCHEMA_EVOLVED, explain
from ledgerops.diagnosis.rules.query_failed import REPAIR, RULE
from ledgerops.model.records import Host
from ledgerops.signals.query_view import QueryView
from tests.build import batch
from tests.build import history as remembered
from tests.diagnosis.conftest import told_by
from tests.diagnosis.contradictions import contradictions
from tests.tables import cases

RAISED, MALFORMED = "USER_RAISED_EXCEPTION", "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION"
STACK = f"org.apache.spark.SparkRuntimeException: [{RAISED}] bad row\n\tat org.apache.spark.sql.Some.method"
FILE = "org.apache.spark.SparkException: Job aborted due to stage failure.\nCaused by: bad file:///in/p.json."
PYTHON = (
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "jobs/risk.py", line 12, in score\n    raise ValueError(f"poison {row}")\n'
    "ValueError: poison t-17\n\n\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:581)"
)
WRAPPED = (
    "py4j.Py4JException: An exception was raised by the Python Proxy. Traceback (most recent call last):\n"
    '  File "sinks.py", line 91, in write_batch\n    rows.write.save()\n'
    "py4j.protocol.Py4JJavaError: An error occurred while calling o513.save.\n"
    f": org.apache.spark.SparkException: [{MALFORMED}] Malformed records: [null].\n"
    "Caused by: com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input\n"
)
OF_LIBRARY = (
    'Traceback (most recent call last):\n  File "/opt/app/main.py", line 3, in write\n    f(row)\n'
    '  File "/usr/lib/python3.11/site-packages/pandas/core/frame.py", line 4089, in __getitem__\n'
    '  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1250, in process\nKeyError: 1'
)
MAGIC = f"{FILE}\nCaused by: java.lang.RuntimeException: file:/in/p.json is not a Parquet file"
POISON = "(no error class): ValueError: poison t-17; at jobs/risk.py:12 in score"
WRITE = (
    f"({MALFORMED}): SparkException: [{MALFORMED}] Malformed records: [null].; a value of a row cannot be converted to "
    "the type that the query wants; at sinks.py:91 in write_batch"
)


@cases(
    "exception, error_class, known_by, said",
    ("an exception of Spark", STACK, RAISED, RAISED, f"({RAISED}): SparkRuntimeException: [{RAISED}] bad row"),
    ("a file", FILE, "FAILED_READ_FILE", "FAILED_READ_FILE", "(FAILED_READ_FILE): bad file:///in/p.json."),
    (
        "a file that two exceptions write in two ways",
        MAGIC.replace("bad file", "x.y.E: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file"),
        "FAILED_READ_FILE.NO_HINT",
        "FAILED_READ_FILE.NO_HINT",
        "(FAILED_READ_FILE.NO_HINT): RuntimeException: file:/in/p.json is not a Parquet file; a file is damaged, or "
        "was read while it was still being written",
    ),
    (
        "the entry of a log, whose number is that of a batch",
        "x.y.E: no log file for batch 12\nCaused by: x.y.F: file:/cp/offsets/12",
        "E",
        "E",
        "(E): E: no log file for batch 12; at file:/cp/offsets/12",
    ),
    (
        "a folder",
        "x.y.E: cannot list\nCaused by: x.y.F: file:/in/",
        "E",
        "E",
        "(E): E: cannot list; at file:/in/",
    ),
    ("what Python raised, and not that there is a traceback", PYTHON, None, "ValueError", POISON),
    ("a write within foreachBatch", WRAPPED, "FOREACH_BATCH_USER_FUNCTION_ERROR", MALFORMED, WRITE),
)
def test_what_the_query_failed_of_is_told(history, exception, error_class, known_by, said):
    [finding] = RULE.check(history(exception=exception, error_class=error_class))
    assert (finding.summary, finding.component.detail) == (f"the query failed after batch 5 {said}", known_by)


@cases(
    "warm, said, failed", ("after a batch", 6, "after batch 5", 6.0), ("the first", 0, "before its first batch", None)
)
def test_the_batch_that_failed_is_told(history, warm, said, failed):
    [finding] = RULE.check(history(warm=warm, exception=STACK))
    assert finding.summary.startswith(f"the query failed {said} ({RAISED}): ")
    assert told_by(finding) == {"ledgerops_query_failures_total": 1.0} | ({"failed_batch_id": failed} if failed else {})


def test_a_run_that_fails_in_its_first_batch_goes_on_from_the_runs_before(history):
    view = history(exception=STACK)
    batches = view.history.batches
    batches.extend([replace(each, run_id="run-0") for each in [batches.popleft() for _ in range(len(batches))]])
    [finding] = RULE.check(QueryView(view.history, view.now))
    assert finding.summary.startswith("the query failed after batch 5 ")


def test_the_batch_of_a_new_checkpoint_counts_from_its_own_first(history):
    view = history(exception=STACK)
    old = [replace(batch, batch_id=batch.batch_id + 50, run_id="run-0") for batch in view.history.batches]
    view.history.batches.extendleft(reversed(old))
    [finding] = RULE.check(QueryView(view.history, view.now))
    assert told_by(finding)["failed_batch_id"] == 6.0


@pytest.mark.parametrize(
    ("read", "exception", "expected"),
    [
        (
            place,
            "Cannot fetch record for offset 4711 in topic partition: transactions-3",
            (None, "transactions-3", 4711),
        ),
        (place, "KafkaException: transactions-3 at offset 12", (None, "transactions-3", 12)),
        (place, "while reading file s3a://bucket/a%20b.json, it broke", ("s3a://bucket/a%20b.json", None, None)),
        (place, "boom\n\tat Some.method(offset:12)", (None, None, None)),
        (place, "no offset at all", (None, None, None)),
        (exception_class, STACK, "SparkRuntimeException"),
        (exception_class, PYTHON, "ValueError"),
        (exception_class, "boom", None),
        (exception_class, "Something: was bad", None),
        (user_code, PYTHON, "jobs/risk.py:12 in score"),
        (user_code, OF_LIBRARY, "/opt/app/main.py:3 in write"),
        (user_code, '  File "/srv/main.py", line 7, in <module>', "/srv/main.py:7"),
        (user_code, '  File "<stdin>", line 7, in <module>', None),
        (user_code, STACK, None),
    ],
)
def test_place_class_and_line_of_the_application_are_read_from_the_text_where_it_has_them(read, exception, expected):
    assert read(exception) == expected


@cases(
    "case",
    ("stopped with its application", {"exception": "java.lang.IllegalStateException: Shutdown in progress"}),
    ("an available-now run that is done", {"stopped": True, "plan": {"trigger": "available_now"}}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


ABORTED = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most "
    "recent failure: Lost task 0.0 in stage 3.0 (TID 3) (host executor driver): "
)
UNWRITTEN = "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows"
FULL = "java.io.IOException: No space left on device"
WRITING = f"{ABORTED}{UNWRITTEN} to file:/out. SQLSTATE: 58030\nCaused by: {FULL}\n\nDriver stacktrace:"
NO_CONSUMER = "org.apache.kafka.common.KafkaException: Failed to construct kafka consumer"
NO_URLS = "org.apache.kafka.common.config.ConfigException: No resolvable urls"
REFUSED = "org.postgresql.util.PSQLException: Connection to db refused."
CHANGED = "DeltaIllegalStateException: [DELTA_X] Schema change in version 8"
NO_FEED = "DeltaAnalysisException: [DELTA_MISSING_CHANGE_DATA] as change data was not\n  recorded for version [0]"
UNREAD = "SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///p.parquet. SQLSTATE"
RETYPED = "SchemaColumnConvertNotSupportedException: column: [qty], physicalType: BINARY, logicalType: int"
NUMBER = "SparkNumberFormatException: [CAST_INVALID_INPUT] The value '{}' of the type STRING cannot be cast to DOUBLE"
FLOAT = "ValueError: could not convert string to float: '{}'"
PROXY = (
    "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call "
    'last):\n  File "sinks.py", line 16, in write\n    df.foreachPartition(part)\n    ^^^^^\n'
)
WORKER = "pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:\n"
DEADLOCK = (
    "psycopg.errors.DeadlockDetected: deadlock detected\nDETAIL:  Process 7 waits for ShareLock.\nHINT:  See log."
)
DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"


@pytest.mark.parametrize(
    ("exception", "line"),
    [
        (f"{FULL}\n\tat x", "IOException: No space left on device"),
        (f"{ABORTED}java.lang.RuntimeException: bad row\n\tat x", "RuntimeException: bad row"),
        (f"{WRITING}\nCaused by: {UNWRITTEN}\nCaused by: {FULL}", "IOException: No space left on device"),
        (
            f"java.util.concurrent.ExecutionException: x\nCaused by: {NO_CONSUMER}\nCaused by: {NO_URLS}",
            "ConfigException: No resolvable urls",
        ),
        (f"{REFUSED}\nCaused by: java.net.ConnectException: x", "PSQLException: Connection to db refused."),
        ("org.apache.spark.SparkException: Writing job aborted", "SparkException: Writing job aborted"),
        (f"o.a.{CHANGED}:\nstreaming source schema: root", CHANGED),
        (f"x.y.{NO_FEED}.\nOtherwise,", f"{' '.join(NO_FEED.split())}."),
        (f"x.y.{UNREAD}: KD001\nCaused by: x.y.{RETYPED}", RETYPED),
        (f"x.y.{UNREAD}: KD001", f"{UNREAD}: KD001"),
        (f"{STACK}\nCaused by: java.lang.Exception: x", f"SparkRuntimeException: [{RAISED}] bad row"),
        (f"x.y.E: [{RAISED}] bad row SQLSTATE: P0001\n== SQL ==", f"E: [{RAISED}] bad row SQLSTATE: P0001"),
        (f"x.y.E: [{RAISED}] bad row\n\nJVM stacktrace:", f"E: [{RAISED}] bad row"),
        ("ValueError: [ETL] bad record\nname=Alice Smith", "ValueError: [ETL] bad record"),
        ("boom", "boom"),
        (f"org.apache.spark.{NUMBER.format('DE89370400440532013000')}", NUMBER.format("...")),
        (FLOAT.format("DE8937"), FLOAT.format("...")),
        ("KeyError: 'account_id'", "KeyError: 'account_id'"),
        (f"{PROXY}{DEADLOCK}", "DeadlockDetected: deadlock detected"),
        (f"{PROXY}queue.Empty", "queue.Empty"),
        (f"{PROXY}RuntimeError: 2 writes failed\nTimeoutError: of them", "RuntimeError: 2 writes failed"),
        (
            f"{PROXY}KeyError: 1\n{DIRECT}{OF_LIBRARY.replace('KeyError: 1', 'app.Rejected: no key')}",
            "Rejected: no key",
        ),
        (f"{PROXY}{WORKER}{OF_LIBRARY.replace('KeyError: 1', 'app.Rejected: no key')}", "Rejected: no key"),
        (f"{PROXY}{WORKER}Traceback (most recent call last):\n  File", WORKER.rpartition(".")[2].rstrip(":\n")),
        ("x" * 500, "x" * 157 + "..."),
        ("[A_CONDITION] " + "x" * 500, "[A_CONDITION] " + "x" * 156 + "..."),
        ("Something went wrong: it was bad", "Something went wrong: it was bad"),
    ],
)
def test_the_first_line_says_what_happened(exception, line):
    assert first_line(exception) == line


@cases("warm, since", ("after a batch", 6, "its last batch"), ("before the first one", 0, "its start"))
def test_a_run_that_vanished_has_a_finding_that_says_so(history, warm, since):
    view = history(warm=warm)
    view.history.end(view.now + 25, "run-1", None, None, lost=True)
    verdict = Diagnoser()(QueryView(view.history, view.now + 25, view.hosts))

    assert (verdict.status, [root.rule for root in verdict.root_causes]) == ("lost", ["query-failed"])
    assert verdict.root_causes[0].summary == f"the query vanished without a report of its end, 25 s after {since}"
    assert contradictions(verdict) == []


@cases("warm, after", ("after a batch", 6, "after batch 5"), ("before the first one", 0, "before its first batch"))
def test_an_application_that_ended_with_an_error_has_failed_and_its_query_with_it(history, warm, after):
    view = history(warm=warm)
    view.history.end(view.now, "run-1", None, None, with_application=True, application_error="RuntimeError: no config")
    verdict = Diagnoser()(QueryView(view.history, view.now, view.hosts))

    assert (verdict.status, [root.rule for root in verdict.root_causes]) == ("failed", ["query-failed"])
    assert (
        verdict.root_causes[0].summary
        == f"the query stopped {after}: its application ended with RuntimeError: no config"
    )
    assert view.history.failures == {}
    assert contradictions(verdict) == []


NO_ROOM = "[CANNOT_LOAD_STATE_STORE.HDFS_STORE_PROVIDER_OUT_OF_MEMORY] An error occurred during loading state."


@cases(
    "error, step",
    ("of a query that fails", f"StreamingQueryException: [STREAM_FAILED] Query x terminated with exception: {NO_ROOM}",
        "see how many rows the state holds"),
    ("of its own", f"RuntimeError: {NO_ROOM}", "repair what ended the application"),
    ("of its JVM, without memory", "exit code 52 of its JVM", "find what it keeps from batch to batch"),
    ("of its JVM, another", "exit code 1 of its JVM", "see how the driver ended"),
)  # fmt: skip
def test_what_an_application_ended_with_is_looked_up_where_it_is_the_failure_of_a_query(history, error, step):
    """A JVM out of memory ends a query without a report, and the caller that waits for it gets the exception."""
    view = history()
    view.history.end(view.now, "run-1", None, None, with_application=True, application_error=error)
    [finding] = RULE.check(QueryView(view.history, view.now, view.hosts))

    assert finding.remedies[0].action.startswith(step)
    assert finding.summary.endswith(error) == step.startswith(("repair", "see how the driver"))


def test_of_an_application_that_lost_its_jvm_the_memory_that_was_left_is_told(history):
    view = history()
    view.history.end(view.now, "run-1", None, None, with_application=True, application_error="SIGKILL of its JVM")
    room = [Host(view.now - 8.0, 2, 0.3, 1500 << 20, 123 << 20, None, None)]
    [finding] = RULE.check(QueryView(view.history, view.now, room))
    assert finding.summary.endswith(": its application ended with SIGKILL of its JVM")
    assert told_by(finding) == {"application_errors": 1.0, "available_bytes": float(123 << 20)}
    assert finding.remedies[0].action.startswith("see how the driver ended: SIGKILL or OOMKilled")


@cases("what", ("stopped with it", {"with_application": True}), ("with an error that another query's failure was", {
    "with_application": True, "application_error": "StreamingQueryException: [STREAM_FAILED]"}))  # fmt: skip
def test_an_application_that_just_ended_or_whose_other_query_failed_is_no_failure_of_the_query(history, what):
    view, other = history(), history(exception=STACK).history
    view.history.end(other.ended.at, "run-1", None, None, **what)
    verdict = Diagnoser()(QueryView(view.history, view.now, view.hosts, [other]))
    assert (verdict.status, verdict.root_causes) == ("stopped", ())


@cases(
    "seconds, exception, named",
    ("stopped with it", 2.0, "Job 1 cancelled because SparkContext was shut down", True),
    ("stopped much later", 600.0, "Job 1 cancelled because SparkContext was shut down", False),
    ("failed, too", 2.0, "bad row", False),
    ("stopped on purpose", 2.0, None, False),
)
def test_queries_that_a_failure_stopped_are_named_as_its_consequence(history, seconds, exception, named):
    failed, other = history(exception=STACK), remembered([batch(0)], "b")
    other.query_id = "another checkpoint's"
    other.end(failed.history.ended.at + seconds, other.run_id, exception, None)
    view = QueryView(failed.history, failed.now, others=[other])
    [finding] = RULE.check(view)

    assert finding.summary.endswith("bad row; the application stopped, and with it b" if named else "bad row")


def test_a_failure_after_which_the_application_started_more_queries_stopped_none(history):
    failed, other = history(exception=STACK), remembered([batch(0)], "b")
    at = failed.history.ended.at
    other.start(at + 15, "id", "run-2")
    other.end(at + 30, "run-2", "Job 1 cancelled because SparkContext was shut down", None)
    [finding] = RULE.check(QueryView(failed.history, failed.now, others=[other]))

    assert finding.summary.endswith("bad row")


@cases(
    "query_id, said",
    ("of another query", "q", "; its checkpoint is also that of totals"),
    ("its own", "other", ""),
    ("an id that is not known", None, ""),
)
def test_another_query_that_has_the_same_checkpoint_is_named(history, query_id, said):
    failed, other = history(exception=STACK), remembered([batch(0)], "totals")
    other.started_at = failed.history.started_at
    failed.history.query_id, other.query_id = query_id, query_id and "q"
    [finding] = RULE.check(QueryView(failed.history, failed.now, others=[other]))

    assert finding.summary.endswith(f"bad row{said}")


@cases(
    "began, seconds, named",
    ("at the same time", 0.0, 600.0, True),
    ("before it, as a query that was renamed", -60.0, 60.0, False),
    ("after it, as a query that was renamed", 600.0, 60.0, False),
)
def test_only_a_query_that_ran_at_the_same_time_shares_its_checkpoint(history, began, seconds, named):
    failed, other = history(exception=STACK), remembered([batch(0)], "totals")
    failed.history.query_id = other.query_id = "q"
    other.started_at = failed.history.started_at + began
    other.end(other.started_at + seconds, other.run_id, None, None)
    [finding] = RULE.check(QueryView(failed.history, failed.now, others=[other]))

    assert ("; its checkpoint is also that of totals" in finding.summary) is named


@cases(
    "began, exception, query_id, found",
    ("while it ran", -1.0, None, "q", True),
    ("after it had ended, as a query that was renamed", 1.0, None, "q", False),
    ("before it", -900.0, None, "q", False),
    ("its exception says more", -1.0, "bad row", "q", True),
    ("with a checkpoint of its own", -1.0, None, "other", False),
)
def test_a_query_that_spark_stops_as_another_begins_with_its_checkpoint_is_found(
    history, began, exception, query_id, found
):
    view, other = history(), remembered([batch(0)], "totals")
    view.history.query_id, other.query_id = "q", query_id
    view.history.end(view.now, view.history.run_id, exception, None)
    other.started_at = view.now + began
    told = list(RULE.check(QueryView(view.history, view.now, others=[other])))

    assert bool(told) is found
    for finding in told:
        assert finding.summary.endswith(": totals began with its checkpoint") is (exception is None)
        assert finding.at_most == ("warning" if exception is None else "critical")


RESTART, AGAIN = "start the query with the same checkpoint", "start the query again with the same checkpoint"
MERGE = "a table that it writes takes new columns only with mergeSchema"
VACUUM = "VACUUM, snapshot expiry and lifecycle rules on the source, and keep the checkpoint"
FEED = "find in DESCRIBE HISTORY the version in which delta.enableChangeDataFeed was set"
BACK = "bring back what is gone from a copy or an older version"
FREE = "free space on the disk that the exception names: the sink's, the checkpoint's, or spark.local.dir"


@cases(
    "exception, actions",
    ("something to repair", STACK, [REPAIR.action, RESTART]),
    ("nothing to repair", "[DELTA_CONCURRENT_APPEND] Transaction conflict detected.", [AGAIN]),
    ("new columns", "[DELTA_SCHEMA_CHANGED] Detected schema change:", [f"{AGAIN}; {MERGE}"]),
    ("the start is a part", "SaslAuthenticationException: x", [f"renew the credential, then {AGAIN}"]),
    ("files that are gone", "[FAILED_READ_FILE.FILE_NOT_EXIST] x", [f"stop {VACUUM}", f"{BACK}, then {RESTART}"]),
    ("changes that were never recorded", f"{NO_FEED}.", [FEED, f"{BACK}, then {RESTART}"]),
    ("a known failure", f"org.apache.spark.SparkException: Job aborted.\nCaused by: {FULL}", [FREE, RESTART]),
)
def test_to_start_the_query_is_told_once(history, exception, actions):
    [finding] = RULE.check(history(exception=exception))
    assert [each.action for each in finding.remedies] == actions


@cases(
    "sink, twice",
    ("a function", "ForeachBatchSink", True),
    ("a table", "DeltaSink[/out]", False),
)
def test_what_a_function_wrote_of_the_batch_is_written_again(history, sink, twice):
    [finding] = RULE.check(history(exception=STACK, plan={"sink": sink}))
    assert ("what the sink's function had written of it is there twice" in finding.remedies[1].why) is twice


FILE_GONE = "[FAILED_READ_FILE.FILE_NOT_EXIST] x"


@cases(
    "source, read",
    ("a topic", "KafkaV2[Subscribe[orders]]", False),
    ("files", "FileStreamSource[file:/in]", True),
    ("a connector that is not known", "Other[orders]", True),
)
def test_a_file_that_is_gone_is_that_of_a_joined_table_where_the_source_has_none(history, source, read):
    [finding] = RULE.check(history(exception=FILE_GONE, source=source))
    joined = "a file of a table that the query joins is gone: the table was overwritten or compacted"
    again = [f"{AGAIN}: it lists the files of that table anew"]
    assert (joined in finding.summary) is not read
    assert ([each.action for each in finding.remedies] == again) is not read


def test_a_schema_that_changed_is_no_crash_loop():
    known = explain("org.apache.spark.sql.catalyst.util.UnknownFieldException: [UNKNOWN_FIELD_EXCEPTION.NEW_FIELDS] x")
    assert known is not None and known.name == SCHEMA_EVOLVED
