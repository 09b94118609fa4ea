"""What is known of an exception: by its innermost cause, and nothing where the text only sounds like it."""

import pytest

from ledgerops.common.masking import short_exception
from ledgerops.diagnosis.facts.known_failures import CREATED_AGAIN, KNOWN, explain
from tests.tables import cases

STREAM = "org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED] Query [id = a] terminated"
FULL_DISK = """\
org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 4.0 failed 1 times, most recent
failure: Lost task 0.0 in stage 4.0 (TID 7): org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while
writing rows to file:/out. SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(QueryExecutionErrors.scala:774)
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\tat org.apache.hadoop.fs.RawLocalFileSystem$LocalFSFileOutputStream.write(RawLocalFileSystem.java:500)
\t... 17 more
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\t... 23 more"""
LOST_TASK = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 4.0 failed 4 times, most "
    "recent failure: Lost task 0.3 in stage 4.0 (TID 7) (node-3 executor {executor}): "
)
OF_FUNCTION = (
    "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call "
    "last):\n"
)
TOO_LARGE = (
    "org.apache.spark.SparkException: Not enough memory to build and broadcast the table to all worker nodes. As a "
    "workaround, you can either disable broadcast by setting spark.sql.autoBroadcastJoinThreshold to -1 or increase "
    "the spark driver memory by setting spark.driver.memory to a higher value"
)
INVALID = "org.apache.iceberg.exceptions.ValidationException: "
SINK_DIFFERS = "sink-schema-differs"
RETYPED = "PARQUET_COLUMN_DATA_TYPE_MISMATCH"
READING = (
    "org.apache.spark.SparkException: [FAILED_READ_FILE.{}] Encountered error while reading file file:///in/p.parquet. "
    " SQLSTATE: KD001\nCaused by: "
)
# one exception of each entry, as Spark, the connector or the service writes it
EXAMPLES = {
    "checkpoint-shared": "io.delta.exceptions.ConcurrentTransactionException: [DELTA_CONCURRENT_TRANSACTION] "
    "This error occurs when multiple streaming queries are using the same checkpoint to write into this table.",
    "output-shared": "java.lang.IllegalStateException: Race while writing batch 1",
    "concurrent-append": "io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.WITHOUT_HINT] "
    "Transaction conflict detected. a concurrent WRITE added data to table t committed at version 7.",
    "concurrent-delete": "io.delta.exceptions.ConcurrentDeleteReadException: [DELTA_CONCURRENT_DELETE_READ]",
    "metadata-changed": "io.delta.exceptions.MetadataChangedException: [DELTA_METADATA_CHANGED] The metadata changed",
    "commit-retries-exceeded": "[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] The commit failed as it has been tried 9 times",
    "merge-ambiguous": f"{OF_FUNCTION}pyspark.errors.exceptions.captured.UnsupportedOperationException: "
    "[DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE] Cannot perform Merge as multiple source rows matched",
    "iceberg-commit-conflict": "org.apache.iceberg.exceptions.CommitFailedException: Cannot commit t: metadata "
    "location has changed",
    "history-gone": "org.apache.spark.sql.delta.DeltaIllegalStateException: [DELTA_MISSING_FILES_UNEXPECTED_VERSION] "
    "Delta stream cannot resume from version 3; transaction log starts at 9.",
    "version-unavailable": "org.apache.spark.sql.delta.VersionNotFoundException: [DELTA_VERSION_NOT_FOUND] Cannot time "
    "travel Delta table to version 2. Available versions: [9, 13].",
    "change-feed-off": "org.apache.spark.sql.delta.DeltaAnalysisException: [DELTA_MISSING_CHANGE_DATA] Error getting "
    "change data for range [0 , 2] as change data was not\nrecorded for version [0].",
    "snapshot-expired": "java.lang.IllegalStateException: Cannot load current offset at snapshot 5210, the snapshot "
    "was expired or removed",
    "table-rolled-back": 'java.lang.NullPointerException: Cannot invoke "java.lang.Long.longValue()" because the '
    'return value of "org.apache.iceberg.Snapshot.parentId()" is null',
    "file-gone": "org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading "
    "file file:/t/part-0.parquet. File does not exist.",
    "file-schema-differs": f"{READING.format('NO_HINT')}SparkIllegalArgumentException: CSV header does not conform to "
    "the schema.\n Header: id, note, qty\n Schema: id, qty, note",
    "file-incomplete": f"{READING.format('NO_HINT')}java.lang.RuntimeException: file:/in/p.parquet is not a Parquet "
    "file. Expected magic number at tail, but found [25, 28, 21, 0]",
    "topic-created-again": "[KAFKA_DATA_LOSS.PARTITIONS_DELETED] Some data may have been lost because they are not "
    "available in Kafka any more; Reason: Partitions Set(clicks-0, clicks-1) have been deleted.",
    "record-too-large": "org.apache.kafka.common.errors.RecordTooLargeException: The message is 2000088 bytes when "
    "serialized which is larger than 1048576, which is the value of the max.request.size configuration.",
    "sink-not-acknowledged": "org.apache.kafka.common.errors.NotEnoughReplicasException: Messages are rejected since "
    "there are fewer in-sync replicas than required.",
    "kafka-records-gone": "[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have been lost",
    "source-rewritten": "java.lang.IllegalStateException: Cannot process overwrite snapshot: 71, to ignore overwrites,",
    "schema-evolved": "[UNKNOWN_FIELD_EXCEPTION.NEW_FIELDS_IN_FILE] Encountered unknown fields during parsing: [total]",
    "schema-incompatible": "[DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG] Streaming read is not",
    "sink-schema-differs": "AnalysisException: [DELTA_METADATA_MISMATCH] A schema mismatch detected when writing",
    "state-schema-changed": "[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does not match",
    "table-replaced": "[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE] The streaming query was reading from another",
    "table-gone": "[TABLE_OR_VIEW_NOT_FOUND] The table or view orders cannot be found. SQLSTATE: 42P01",
    "throttled": "software.amazon.awssdk.services.kinesis.model.ProvisionedThroughputExceededException: Rate exceeded",
    "disk-full": FULL_DISK,
    "local-file-gone": f"{LOST_TASK.format(executor='3')}java.nio.file.NoSuchFileException: "
    "/tmp/spark-1/executor-2/blockmgr-3/01/shuffle_7_51_0.index",
    "python-worker-out-of-memory": f"{LOST_TASK.format(executor='3')}org.apache.spark.api.python.PythonException: "
    "Traceback (most recent call last):\nMemoryError",
    "driver-python-out-of-memory": f"{OF_FUNCTION}MemoryError: Unable to allocate 30 GiB",
    "state-out-of-memory": f"{LOST_TASK.format(executor='3')}org.apache.spark.SparkException: "
    "[CANNOT_LOAD_STATE_STORE.HDFS_STORE_PROVIDER_OUT_OF_MEMORY] An error occurred during loading state.\n"
    "Caused by: java.lang.OutOfMemoryError: Java heap space",
    "executor-out-of-memory": f"{LOST_TASK.format(executor='3')}java.lang.OutOfMemoryError: Java heap space",
    "broadcast-too-large": f"{OF_FUNCTION}py4j.protocol.Py4JJavaError: An error occurred while calling o9.parquet.\n: "
    f"{TOO_LARGE}",
    "driver-out-of-memory": f"{OF_FUNCTION}py4j.protocol.Py4JJavaError: An error occurred while calling o9.parquet.\n: "
    "java.lang.OutOfMemoryError: Java heap space",
    "out-of-memory": "Pod orders-exec-1 was OOMKilled",
    "python-worker-killed": f"{LOST_TASK.format(executor='driver')}org.apache.spark.SparkException: Python worker "
    "exited unexpectedly (crashed). Consider setting 'x' to 'true'\nCaused by: java.io.EOFException",
    "python-worker-not-started": "org.apache.spark.SparkException: Python worker failed to connect back.\n"
    "Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back",
    "library-missing": "org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from "
    "the Python worker: Traceback (most recent call last):\nModuleNotFoundError: No module named 'orders'",
    "result-too-large": "org.apache.spark.SparkException: Job aborted due to stage failure: Total size of serialized "
    "results of 3 tasks (2.9 MiB) is bigger than spark.driver.maxResultSize (2.0 MiB)",
    "database-deadlock": f"{OF_FUNCTION}psycopg.errors.DeadlockDetected: deadlock detected",
    "database-locked": f"{OF_FUNCTION}sqlite3.OperationalError: database is locked",
    "database-connections-used-up": f"{OF_FUNCTION}psycopg.OperationalError: connection failed: "
    'connection to server at "127.0.0.1", port 5432 failed: FATAL:  sorry, too many clients already',
    "row-repeated": f"{OF_FUNCTION}psycopg.errors.UniqueViolation: duplicate key value violates unique constraint",
    "credential-expired": "com.amazonaws.services.s3.model.AmazonS3Exception: The provided token has expired. "
    "(Service: Amazon S3; Status Code: 400; Error Code: ExpiredToken)",
    "certificate-not-accepted": "org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed\n"
    "Caused by: javax.net.ssl.SSLHandshakeException: PKIX path building failed: "
    "sun.security.provider.certpath.SunCertPathBuilderException: unable to find valid certification path",
    "no-permission": "java.nio.file.AccessDeniedException: s3a://lake/orders: getFileStatus: Access Denied",
    "read-only-file-system": "java.io.FileNotFoundException: /cp/offsets/.10.tmp (Read-only file system)",
    "missing-column": "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `total` cannot be resolved.",
    "bad-value": '[CAST_INVALID_INPUT] The value \'x\' of the type "STRING" cannot be cast to "INT"',
    "checkpoint-log-torn": "java.lang.IllegalStateException: Failed to read log file file:/cp/commits/9. "
    "Incomplete log file in the offset commit log",
    "state-unreadable": "[CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS] An error occurred",
    "state-not-committed": "[STATE_STORE_COMMIT_VALIDATION_FAILED] State store commit validation failed for batch 3. "
    "Expected 4 commits but got 1.",
    "state-store-locked": "[CANNOT_LOAD_STATE_STORE.UNRELEASED_THREAD_ERROR] An error occurred during loading state. "
    "RocksDB instance could not be acquired by [ThreadId: Some(271)] as it was not released by [ThreadId: Some(244)]",
    "too-many-open-files": "org.rocksdb.RocksDBException: While open a file: /tmp/r/000123.sst: Too many open files",
    "checkpoint-newer": "[CANNOT_LOAD_STATE_STORE.INVALID_CHANGE_LOG_READER_VERSION] An error occurred during loading "
    "state. The change log reader version cannot be 3.",
    "real-time-not-supported": "org.apache.spark.SparkIllegalArgumentException: [STREAMING_REAL_TIME_MODE.OPERATOR_OR_"
    "SINK_NOT_IN_ALLOWLIST] Streaming real-time mode has the following limitation: The operator(s): org.apache.spark."
    "sql.execution.python.ArrowEvalPythonExec is not in the operator allowlist for Real-Time Mode.",
    "unreachable": "java.net.ConnectException: Connection refused",
    "interrupted": "java.lang.RuntimeException: java.lang.InterruptedException: sleep interrupted",
    "file-unreadable": f"{READING.format('NO_HINT')}java.io.EOFException: Unexpected end of input stream",
}
LOADING = "org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.{}] An error occurred during loading state.\n"
NO_FILE = "Caused by: java.io.FileNotFoundException: File file:/cp/state/0/0/2.delta does not exist"
TIMED_OUT = "Caused by: java.net.SocketTimeoutException: Read timed out"
MISSED = (
    "Some data may have been missed. Some data may have been lost because they are not available in Kafka any more; "
    'set the source option "failOnDataLoss" to "false".'
)
NUMBERS = "sources in the checkpoint offsets and now there are"
NO_SUCH_TOPIC = (
    f"{LOST_TASK.format(executor='3')}org.apache.kafka.common.errors.TimeoutException: Topic orders_out not present in "
    "metadata after 60000 ms.\nCaused by: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server "
    "does not host this topic-partition."
)
DENIED = f"\nCaused by: {EXAMPLES['no-permission']}\nCaused by: java.lang.Exception: unknown"


def name_of(text: str) -> str | None:
    """The name of what is known of an exception."""
    known = explain(text)
    return known.name if known else None


def test_every_known_failure_has_an_example():
    assert list(EXAMPLES) == [known.name for known in KNOWN]


@pytest.mark.parametrize(("name", "text"), EXAMPLES.items())
@pytest.mark.parametrize("wrapped", ["alone", "caused by it", "masked"])
def test_a_known_exception_is_explained(name, text, wrapped):
    match wrapped:
        case "caused by it":
            text = f"{STREAM}\n\tat org.apache.A.run(A.scala:1)\nCaused by: {text}\n\tat org.apache.B.run(B.scala:2)"
        case "masked":
            text = short_exception(text)

    assert name_of(text) == name


def test_a_merge_of_another_table_format_is_as_ambiguous_as_that_of_delta():
    assert name_of("SparkRuntimeException: [MERGE_CARDINALITY_VIOLATION] The ON search condition") == "merge-ambiguous"


@cases(
    "text",
    ("user", "SparkRuntimeException: [USER_RAISED_EXCEPTION] bad row SQLSTATE: P0001"),
    ("a wrapper alone", "[TASK_WRITE_FAILED] Task failed while writing rows to file:/out."),
    ("words of a sentence", "ValueError: the account has no permission to overdraw"),
    ("other words of a sentence", "ValueError: the disk of this product is full"),
    ("a bug of the query", "ZeroDivisionError: division by zero"),
    ("a frame", "java.lang.RuntimeException: bad row\n\tat com.example.OutOfMemoryErrorHandler.run(A.scala:1)"),
    ("a call that took too long", "java.io.InterruptedIOException: timeout"),
    ("no text", ""),
    ("a number that HTTP has as a status", "ValueError: 429 rows, 403 of them and 401 others, are not accepted"),
    ("a status of its own", "ValueError: 403 accounts have not been Forbidden, and 401 are Unauthorized"),
    ("a lock of the application", "RuntimeError: the ledger found a deadlock between two accounts"),
)
def test_any_other_exception_is_not_explained(text):
    assert explain(text) is None


LOCAL = "java.io.FileNotFoundException: /tmp/blockmgr-3/0c/temp_shuffle_5 "
IN_LIBRARY = "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 4.0 failed 4 times: "
CUT = "com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input in field name"
IN_LOG = (
    "\n\tat org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog.$anonfun$getExistingBatch$1"
    "(HDFSMetadataLog.scala:252)"
)


@cases(
    "text, name",
    ("the innermost known cause counts", f"{EXAMPLES['table-gone']}{DENIED}", "no-permission"),
    ("an Iceberg table that was dropped", f"{INVALID}Metadata file for version 2 is missing under /t", "table-gone"),
    ("rows that another writer changed", f"{INVALID}Found conflicting files that can", "iceberg-commit-conflict"),
    ("anything else that Iceberg refuses", f"{INVALID}Cannot parse value 'x' of a setting", None),
    ("a column that a table lacks", "IllegalArgumentException: Field k not found in source schema", SINK_DIFFERS),
    ("a type of another", "IllegalArgumentException: Cannot write incompatible dataset to table with", SINK_DIFFERS),
    ("a topic that a producer waited for in vain", NO_SUCH_TOPIC, "table-gone"),
    ("a password", "org.apache.kafka.common.errors.SaslAuthenticationException: Invalid", "credential-expired"),
    (
        "a topic that is gone, as Spark 3.5 says it",
        f"IllegalStateException: Set(t-1) are gone. {MISSED}",
        CREATED_AGAIN,
    ),
    ("records that are gone", f"IllegalStateException: Cannot find earliest offsets. {MISSED}", "kafka-records-gone"),
    ("rows of a function that are gone", "ValueError: 3 rows are gone. Some are not", None),
    (
        "rows that a broker did not take",
        "TimeoutException: Expiring 3 record(s) for o-0:1200 ms",
        "sink-not-acknowledged",
    ),
    ("a message", "SparkException: [MALFORMED_AVRO_MESSAGE] Malformed Avro messages are detected", "bad-value"),
    ("a full disk, in any case", "OSError: disk quota exceeded", "disk-full"),
    ("a file that is too large", "OSError: File too large", None),
    ("a column of another type", f"{READING.format(RETYPED)}x.y.Exception: column: [qty]", "file-schema-differs"),
    ("a damaged file", f"{READING.format('NO_HINT')}java.io.IOException: could not read page", "file-unreadable"),
    ("as Spark 3.5 says it", "SparkException: Encountered error while reading file a.gz. Details:", "file-unreadable"),
    (
        "a file of the store that cannot be reached",
        f"{READING.format('NO_HINT')}java.net.UnknownHostException: store",
        "unreachable",
    ),
    (
        "a header with another column",
        f"{READING.format('NO_HINT')}x.Exception: Number of column in CSV header is not equal to number of fields",
        "file-schema-differs",
    ),
    (
        "a missing file of the state",
        f"{LOADING.format('CANNOT_READ_DELTA_FILE_NOT_EXISTS')}{NO_FILE}",
        "state-unreadable",
    ),
    ("one that Spark does not name", f"{LOADING.format('UNCATEGORIZED')}{NO_FILE}", "state-unreadable"),
    ("no folder of the state", "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot", "state-unreadable"),
    ("a cut file of offsets", f"{CUT}{IN_LOG}", "checkpoint-log-torn"),
    ("a cut row, which no log has", CUT, None),
    (
        "a log of another form",
        f"IllegalStateException: Log file was malformed: failed to{IN_LOG}",
        "checkpoint-log-torn",
    ),
    ("a folder that a cleaner of /tmp deleted", f"{LOCAL}(No such file or directory)", "local-file-gone"),
    ("one that is there and may not be read", f"{LOCAL}(Permission denied)", "no-permission"),
    ("a file that nobody may change", "FileNotFoundException: /cp/o (Operation not permitted)", "no-permission"),
    ("a damaged row", "[STATE_STORE_ROW_CHECKSUM_VERIFICATION_FAILED] Row checksum", "state-unreadable"),
    ("a store that was not loaded in time", f"{LOADING.format('UNCATEGORIZED')}{TIMED_OUT}", None),
    ("a log that the class does not know", LOADING.format("INVALID_CHANGE_LOG_WRITER_VERSION"), None),
    ("an offset log of a newer Spark", "[INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION] U", "checkpoint-newer"),
    ("a log without its version", "[INVALID_LOG_VERSION.EXACT_MATCH_VERSION] U", None),
    ("a class of a jar", f"{IN_LIBRARY}java.lang.NoClassDefFoundError: org/a/Client", "library-missing"),
    ("a name that a module lacks", f"{IN_LIBRARY}ImportError: cannot import name 'x' from 'orders'", None),
    ("no memory for the state", LOADING.format("HDFS_STORE_PROVIDER_OUT_OF_MEMORY"), "state-out-of-memory"),
    ("another operator", "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] S", "state-schema-changed"),
    ("other sources", f"assertion failed: There are [1] {NUMBERS} [2] sources requested", "state-schema-changed"),
    ("another setting", "[STATE_STORE_INVALID_CONFIG_AFTER_RESTART] Cannot change x", "state-schema-changed"),
)
def test_what_counts_of_a_text(text, name):
    assert name_of(text) == name


GONE = "java.io.FileNotFoundException: File file:{} does not exist"
JOINED = "joined-file-gone"


@cases(
    "text, name",
    ("a file of a table", GONE.format("/t/part-0.snappy.parquet"), JOINED),
    ("a file of any format", f"{READING.format('FILE_NOT_EXIST')}{GONE.format('/t/a.csv')}", JOINED),
    ("a file of a Delta table", "[DELTA_FILE_NOT_FOUND] File path file:/t/a", JOINED),
    ("a change of the state", f"{LOADING.format('CANNOT_READ_DELTA_FILE_NOT_EXISTS')}{NO_FILE}", "state-unreadable"),
    ("a snapshot of RocksDB", GONE.format("/cp/state/0/1/5.zip"), "state-unreadable"),
    ("the log of a file sink", GONE.format("/out/_spark_metadata/5.compact"), None),
)
def test_where_no_source_has_files_a_file_with_rows_is_that_of_a_joined_table(text, name):
    known = explain(text, files=False)
    assert (known.name if known else None) == name


REFUSED = "requests.exceptions.HTTPError: {} for url: https://api/v1"


@cases(
    "text, name",
    ("requests, 429", REFUSED.format("429 Client Error: Too Many Requests"), "throttled"),
    ("urllib, 429", "urllib.error.HTTPError: HTTP Error 429: Too Many Requests", "throttled"),
    ("httpx, 429", "httpx.HTTPStatusError: Client error '429 Too Many Requests' for url 'https://api/v1'", "throttled"),
    ("google, 429", "google.api_core.exceptions.TooManyRequests: 429 POST https://api: Quota exceeded", "throttled"),
    ("requests, 403", REFUSED.format("403 Client Error: Forbidden"), "no-permission"),
    ("urllib, 403", "urllib.error.HTTPError: HTTP Error 403: Forbidden", "no-permission"),
    ("httpx, 403", "httpx.HTTPStatusError: Client error '403 Forbidden' for url 'https://api/v1'", "no-permission"),
    ("requests, 401", REFUSED.format("401 Client Error: Unauthorized"), "credential-expired"),
    ("urllib, 401", "urllib.error.HTTPError: HTTP Error 401: Unauthorized", "credential-expired"),
)
@pytest.mark.parametrize("kept", [str, short_exception], ids=["whole", "masked"])
def test_what_a_server_refuses_is_known_by_its_status_and_phrase(text, name, kept):
    assert name_of(kept(f"{OF_FUNCTION}{text}")) == name


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_the_first_step_keeps_the_checkpoint_and_reads_as_a_sentence(known):
    for text in (known.happened, known.first_step.action, known.first_step.why):
        assert not text.endswith(".") and text[0].islower()
    assert "delete the checkpoint" not in known.first_step.action


HEAP = "java.lang.OutOfMemoryError: Java heap space"
IN_TASK, IN_DRIVER = LOST_TASK.format(executor="3"), LOST_TASK.format(executor="driver")
NO_THREAD = "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory or process limits"
FETCH = f"FetchFailed(BlockManagerId(1, h, 7, None), shuffleId=0)\nCaused by: {HEAP}"
KILLED = (
    f"{IN_TASK}ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Container killed by "
    "YARN for exceeding physical memory limits."
)
ANY_TASK = "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 64 bytes"
SPARK_4 = (
    "org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the Python worker: "
    "Traceback (most recent call last):\nMemoryError"
)


LOST = "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Command exited with code {}"


@cases(
    "text, name",
    ("a task in local mode", f"{IN_DRIVER}{HEAP}", "driver-out-of-memory"),
    ("no heap, which a larger one would only make worse", NO_THREAD, "out-of-memory"),
    ("one of two ends of a fetch", FETCH, "out-of-memory"),
    ("a cause", f"{IN_TASK}java.lang.RuntimeException: failed\nCaused by: {HEAP}", "executor-out-of-memory"),
    ("a container that was killed", KILLED, "executor-out-of-memory"),
    ("the exit code of a full heap", f"{IN_TASK}{LOST.format(52)}", "executor-out-of-memory"),
    ("another exit code", f"{IN_TASK}{LOST.format(50)}", None),
    ("a task of which nothing tells where it ran", ANY_TASK, "out-of-memory"),
    ("a worker, as Spark 4 says it", SPARK_4, "python-worker-out-of-memory"),
    ("a broadcast with its cause", f"{TOO_LARGE}\nCaused by: {HEAP}", "broadcast-too-large"),
    ("a broadcast that failed of another", f"{TOO_LARGE}\nCaused by: {EXAMPLES['unreachable']}", "unreachable"),
)
def test_the_text_tells_which_process_ran_out_of_memory(text, name):
    assert name_of(text) == name
