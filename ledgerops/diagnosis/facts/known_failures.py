"""Known exceptions: what happened, and one safe first step. `explain` finds the one that an exception's text is about.

A pattern names classes, error conditions and texts that their authors keep; never words of a sentence. Wrappers, such
as TASK_WRITE_FAILED, have no entry: they say where an exception passed and not what it was. Only that of a file which
cannot be read has one, for causes that nothing else knows: it names the file.
"""

import re
from dataclasses import dataclass

from ledgerops.diagnosis.facts.exception_text import CAUSE, without_frames
from ledgerops.model.finding import Remedy

SCHEMA_EVOLVED = "schema-evolved"  # Auto Loader and Delta end a query to go on with the new columns
RESUME = "start the query again with the same checkpoint"
GONE = ("history-gone", "change-feed-off", "snapshot-expired", "file-gone")  # what the query was to read next
CREATED_AGAIN = "topic-created-again"
REPEATED = "nothing of the failed batch was committed; it is repeated as a whole"
FAILS_AGAIN = "with the same memory the batch fails again"
MEMORY = (
    r"OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|(AGGREGATE|SPILL|POINTER_ARRAY|STORE_PROVIDER)_OUT_OF_MEMORY"
    r"|[Kk]illed by YARN for exceeding|OOMKilled|ExecutorLostFailure.*\bcode 52\b"
)
STATE_FILE = r"/state/\d+/\d+/"
BETWEEN = r"(?: Client Error)?:? "  # a status of HTTP and its phrase, as servers and Python's clients write them
BROADCAST = "Not enough memory to build and broadcast the table"


@dataclass(frozen=True, slots=True)
class Known:
    """A failure that is recognised. `happened` is a clause for a sentence, without a capital and a full stop; `within`
    is what else the whole exception has, with all that wraps the cause; `again` is the first step where the query was
    started again and failed again, None where it is the same."""

    name: str
    pattern: re.Pattern[str]
    happened: str
    first_step: Remedy
    within: re.Pattern[str]
    again: Remedy | None

    @property
    def start_is_enough(self) -> bool:
        """Whether all that its first step asks for is another start."""
        return self.first_step.action.startswith(RESUME)


def _known(name: str, pattern: str, happened: str, action: str, why: str, within: str = "", again: str = "") -> Known:
    then = Remedy(again, why) if again else None
    why = "; ".join(each for each in (why, again and f"if it happens again, {again}") if each)
    return Known(name, re.compile(pattern), happened, Remedy(action, why, general=action), re.compile(within), then)


KNOWN = (
    _known(
        "checkpoint-shared",
        r"DELTA_CONCURRENT_TRANSACTION|ConcurrentTransactionException|CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY"
        r"|[Mm]ultiple streaming queries are concurrently using",
        "another query writes with the same checkpoint",
        "find the other run that uses this checkpoint and stop it before you start the query again",
        "two runs with one checkpoint commit the same batches and stop each other",
    ),
    _known(
        "output-shared",
        r"Race while writing batch \d",
        "another query, or a second run of this one, writes to the same output folder",
        "find what else writes to this folder, stop a second run, and give another query a folder of its own",
        "a file sink skips a batch whose number its log already has: rows of two queries are lost",
    ),
    _known(
        "concurrent-append",
        r"DELTA_CONCURRENT_(APPEND|WRITE)|Concurrent(Append|Write)Exception",
        "another writer added rows to the table while the batch was being committed",
        RESUME,
        REPEATED,
        again="let one writer of the table commit at a time, or give each partitions of its own (DESCRIBE HISTORY)",
    ),
    _known(
        "concurrent-delete",
        r"DELTA_CONCURRENT_DELETE_(READ|DELETE)|ConcurrentDelete(Read|Delete)Exception",
        "another writer deleted or rewrote files that the batch had read",
        RESUME,
        REPEATED,
        again="run DELETE, MERGE and OPTIMIZE on other partitions or at another time",
    ),
    _known(
        "metadata-changed",
        r"DELTA_(METADATA|PROTOCOL)_CHANGED|(Metadata|Protocol)ChangedException",
        "the schema or the properties of the table changed while the batch was being committed",
        RESUME,
        f"{REPEATED}, with the table as it is now",
    ),
    _known(
        "commit-retries-exceeded",
        r"DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
        "others commit to the table so often that the commit of the batch did not get through",
        RESUME,
        REPEATED,
        again="let the other writers commit less often",
    ),
    _known(
        "merge-ambiguous",
        r"DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE|MERGE_CARDINALITY_VIOLATION",
        "several rows of the batch match one row of the table that MERGE writes to",
        "find the keys that the batch has more than once, and let the function keep one row of each before MERGE",
        "the same batch fails again; which row counts, such as the newest, is for the query to say",
    ),
    _known(
        "iceberg-commit-conflict",
        r"iceberg\.exceptions\.(CommitFailed|CommitStateUnknown)Exception"
        r"|iceberg\.exceptions\.ValidationException: (Found (new )?con|Cannot (commit|determine)|Missing required)",
        "another writer committed to the Iceberg table first, or the outcome of the commit is unknown",
        RESUME,
        "the sink skips a batch that its table already has",
        again="raise commit.retry.num-retries of the table, or let the other writers commit less often",
    ),
    _known(
        "history-gone",
        r"DELTA_(TRUNCATED_TRANSACTION_LOG|MISSING_FILES_UNEXPECTED_VERSION|STREAMING_TRAILING_COMMIT_MISSING"
        r"|LOG_FILE_NOT_FOUND)",
        "the table no longer has the versions that the query wants to read next",
        "raise delta.logRetentionDuration of the source table and keep the checkpoint",
        "no more versions expire; compare the table with the output to find the rows that were not read",
    ),
    _known(
        "version-unavailable",
        r"DELTA_VERSION_NOT_FOUND",
        "the table does not have the version that the query names, as in startingVersion",
        "compare startingVersion or versionAsOf of the query with the versions that the exception lists as available",
        "older ones do not come back; without startingVersion the query reads the whole table first",
    ),
    _known(
        "change-feed-off",
        r"DELTA_MISSING_CHANGE_DATA",
        "the table recorded no change data for a version that the query wants to read",
        "find in DESCRIBE HISTORY the version in which delta.enableChangeDataFeed was set",
        "changes before it were never recorded; a start from there takes a new checkpoint: with this one Delta ignores "
        "startingVersion",
    ),
    _known(
        "snapshot-expired",
        r"the snapshot was expired or removed|Cannot find (the )?(next )?snapshot",
        "the Iceberg table no longer has the snapshot that the query wants to read next",
        "raise history.expire.max-snapshot-age-ms of the source table and keep the checkpoint",
        "no more snapshots expire; compare the table with the output to find the rows that were not read",
    ),
    _known(
        "table-rolled-back",
        r'return value of "org\.apache\.iceberg\.Snapshot\.parentId\(\)" is null',
        "the Iceberg table was rolled back or replaced: its history lacks the snapshot that was read last",
        "find out who rolled the source table back, and whether its former snapshot can be made current again",
        "with it in the history the query continues; rows that were rolled back stay in what the query wrote",
    ),
    _known(
        "file-gone",
        r"FAILED_READ_FILE\.(DBR_)?FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND|FileNotFoundException: .*\.(parquet|orc|avro)\b"
        rf"|FileNotFoundException: File (?!.*_delta_log does|.*{STATE_FILE}).* does not exist",
        "a file that the source lists is gone, most often because of VACUUM or a rule of the object store",
        "stop VACUUM, snapshot expiry and lifecycle rules on the source, and keep the checkpoint",
        "each run of them can remove more files that the query has not read",
    ),
    _known(
        "file-schema-differs",
        r"PARQUET_COLUMN_DATA_TYPE_MISMATCH|SchemaColumnConvertNotSupportedException"
        r"|CSV header (does not conform|is not equal)",
        "a whole file has other columns or types than the query's schema",
        "compare the schema of the file that the exception names with that of the query",
        "each start reads the file again: its producer has to write it with the old schema, or the query takes both",
    ),
    _known(
        "file-incomplete",
        r"is not a Parquet file|CANNOT_READ_FILE_FOOTER",
        "a file is damaged, or was read while it was still being written",
        "see whether the file is complete now, and let its producer write elsewhere and move it in when it is done",
        "if it is complete, the next start reads all of it",
    ),
    _known(
        CREATED_AGAIN,
        r"KAFKA_DATA_LOSS\.(PARTITIONS_DELETED|PARTITION_OFFSET_CHANGED)|offset was changed from \d+ to \d"
        r"|\) are gone\.",
        "the topic was deleted, or deleted and created again; the checkpoint has offsets of the old one",
        "find out who created the topic again, and whether it has all rows from its beginning; keep the checkpoint",
        "offsets of the old topic mean nothing in the new one; with failOnDataLoss = false a query goes on at its end",
    ),
    _known(
        "record-too-large",
        r"RecordTooLargeException|MESSAGE_TOO_LARGE",
        "a row is larger than the producer or the topic of the sink allows",
        "raise kafka.max.request.size of the sink and max.message.bytes of its topic above the size of that row",
        "the row comes again with each start",
    ),
    _known(
        "sink-not-acknowledged",
        r"NotEnoughReplicas(AfterAppend)?Exception|Expiring \S+ record",
        "the broker of the sink did not take the rows",
        "check the brokers of the sink: the in-sync replicas of its topic against min.insync.replicas, disks, load",
        "the batch is repeated at the next start",
    ),
    _known(
        "kafka-records-gone",
        r"KAFKA_DATA_LOSS|OffsetOutOfRangeException|failOnDataLoss",
        "the topic no longer has the records that the query wants to read next",
        "raise the retention of the topic",
        "no more records are deleted before they are read",
    ),
    _known(
        "source-rewritten",
        r"DELTA_SOURCE_(IGNORE_DELETE|TABLE_IGNORE_CHANGES)|Cannot process (delete|overwrite) snapshot",
        "rows of the source table were deleted or updated, and the query reads appended rows only",
        "find out what changed the rows, and whether the output must change with them",
        "only then skip such commits (skipChangeCommits; Iceberg: streaming-skip-overwrite-snapshots), "
        "or read the change feed",
    ),
    _known(
        SCHEMA_EVOLVED,
        r"DELTA_SCHEMA_CHANGED|DELTA_STREAMING_METADATA_EVOLUTION|UnknownFieldException|UNKNOWN_FIELD_EXCEPTION"
        r"|NEW_FIELDS_IN_(FILE|RECORD)",
        "the schema of the source changed, and the query stopped to continue with the new one",
        f"{RESUME}; a table that it writes takes new columns only with mergeSchema",
        "it reads the new schema at its start; let the scheduler restart it",
    ),
    _known(
        "schema-incompatible",
        r"DELTA_STREAMING_(SCHEMA_MISMATCH_ON_RESTART|INCOMPATIBLE_SCHEMA_CHANGE|CHECK_COLUMN_MAPPING_NO_SNAPSHOT"
        r"|CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION)",
        "a column of the source table was renamed, dropped or changed its type",
        "find out which column changed, and change the query to fit",
        "a restart alone fails again; Delta's option schemaTrackingLocation lets a query read across such changes",
    ),
    _known(
        "sink-schema-differs",
        r"DELTA_(METADATA_MISMATCH|FAILED_TO_MERGE_FIELDS)|[Ss]chema mismatch detected when writing"
        r"|INCOMPATIBLE_DATA_FOR_TABLE|Cannot write incompatible data(set)? to table|not found in source schema",
        "the rows have columns or types that the table of the sink does not have",
        "compare the columns of the query with those of the table",
        "if the new columns are wanted, the option mergeSchema of the sink adds them",
    ),
    _known(
        "state-schema-changed",
        r"STATE_STORE_((KEY|VALUE)_SCHEMA_NOT_COMPATIBLE|COLUMN_FAMILY_SCHEMA_INCOMPATIBLE|INVALID_VALUE_SCHEMA_EVOLUTION"
        r"|INVALID_VARIABLE_TYPE_CHANGE|INVALID_CONFIG_AFTER_RESTART)|StateSchemaNotCompatible"
        r"|OPERATOR_NOT_MATCH_IN_STATE_METADATA|sources in the checkpoint offsets and now there are",
        "the query does not fit its checkpoint: that of an earlier version, or of another query",
        "start the version of the query that wrote this checkpoint",
        "its positions and state fit that version only; any other needs a checkpoint of its own",
    ),
    _known(
        "table-replaced",
        r"DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        "the source table was dropped and created again; the checkpoint belongs to the old one",
        "find out who replaced the table and whether the old one can be restored, and keep the checkpoint",
        "positions of the old table mean nothing in the new one: a new checkpoint repeats or skips rows",
    ),
    _known(
        "table-gone",
        r"TABLE_OR_VIEW_NOT_FOUND|DELTA_(TABLE|PATH)_(NOT_FOUND|DOES_NOT_EXIST)|\bPATH_NOT_FOUND|NoSuch(Iceberg)?TableException"
        r"|UnknownTopicOrPartitionException|_delta_log does not exist|Metadata file for version \S+ is missing",
        "a table, path or topic that the query uses does not exist",
        "check whether it was renamed, dropped or never created, and keep the checkpoint",
        "the query continues where it stopped once the name leads to the same data again",
    ),
    _known(
        "throttled",
        r"ProvisionedThroughputExceededException|LimitExceededException|SlowDownException|Slow Down|ServerBusyException"
        r"|Too ?Many ?Requests|ThrottlingException",
        "the service refuses requests because there are too many of them",
        "count the consumers of this stream, store or service, and compare their requests with its limit",
        "each batch asks once for each shard or folder, a function often for each row; fewer consumers ask less often",
    ),
    _known(
        "disk-full",
        r"(?i:No space left on device|disk quota exceeded)|DSQuotaExceededException",
        "a disk is full",
        "free space on the disk that the exception names: the sink's, the checkpoint's, or spark.local.dir",
        "the batch that failed is repeated at the next start; nothing that was committed is lost",
    ),
    _known(
        "local-file-gone",
        r"NoSuchFileException: \S*/(blockmgr-|(temp_)?shuffle_)"
        r"|FileNotFoundException: \S*/(blockmgr-|(temp_)?shuffle_)\S* \(No such file",
        "a file that Spark keeps on a local disk is gone",
        "find out whether spark.local.dir of its machine is full, or what deletes old files there (a cleaner of /tmp)",
        "these files are needed for as long as the application runs; the batch is repeated at the next start",
    ),
    _known(
        "python-worker-out-of-memory",
        r"\bMemoryError\b",
        "a Python worker ran out of memory",
        "give Python workers more memory (spark.executor.pyspark.memory, memoryOverhead), or each batch fewer rows",
        FAILS_AGAIN,
        within=r"Lost task|thrown from the Python worker",
    ),
    _known(
        "driver-python-out-of-memory",
        r"\bMemoryError\b",
        "the driver's Python process ran out of memory",
        "find what the function reads into Python at once (toPandas, collect) or keeps from batch to batch",
        FAILS_AGAIN,
    ),
    _known(
        "state-out-of-memory",
        MEMORY,
        "the state does not fit into the memory of the process that keeps it",
        "see how many rows the state holds, and whether a watermark or a time to live removes any",
        f"{FAILS_AGAIN}; without RocksDB all of the state is kept on the heap",
        within="STORE_PROVIDER_OUT_OF_MEMORY",
    ),
    _known(
        "executor-out-of-memory",
        MEMORY,
        "an executor ran out of memory",
        "give executors more memory (spark.executor.memory, memoryOverhead), or each batch fewer rows",
        FAILS_AGAIN,
        within=r"Lost task (?!.* executor driver\))",
    ),
    _known(
        "broadcast-too-large",
        f"{BROADCAST}|OutOfMemoryError",
        "the driver's memory is too small for a table that is broadcast",
        "find out whether that table has grown; else raise spark.driver.memory, or join without broadcast()",
        "spark.sql.autoBroadcastJoinThreshold=-1 ends what Spark broadcasts by itself, but no broadcast() of the code",
        within=BROADCAST,
    ),
    _known(
        "driver-out-of-memory",
        r"\bOutOfMemoryError: (Java heap space|GC overhead limit)|\Aexit code 52 of its JVM",  # SparkExitCode.OOM
        "the driver's JVM ran out of memory",
        "find what it keeps from batch to batch (cached rows, a plan that grows), or raise spark.driver.memory",
        FAILS_AGAIN,
        within=r"\A(?![\s\S]*(FetchFailed|ExecutorLostFailure))",
    ),
    _known(
        "out-of-memory",
        MEMORY,
        "a process ran out of memory",
        "find out which process it was: driver, executor or Python worker",
        f"{FAILS_AGAIN}; give that process more, or each batch fewer rows",
    ),
    _known(
        "python-worker-killed",
        r"Python worker exited unexpectedly",
        "a Python worker was killed, most often for the memory that it used, or crashed in native code",
        "look for an out-of-memory kill in the kernel's log of its machine, or in the status of its pod",
        "if there is one, give Python workers more memory (spark.executor.pyspark.memory, memoryOverhead)",
    ),
    _known(
        "python-worker-not-started",
        r"Python worker failed to connect back",
        "a Python worker did not start in time",
        "see whether its machine had free cores and memory then, and start its Python there by hand (PYSPARK_PYTHON)",
        f"{REPEATED} at the next start; a Python that is not there, or is slow to start, fails again",
    ),
    _known(
        "library-missing",
        r"\bModuleNotFoundError\b|\bNoClassDefFoundError\b|\bClassNotFoundException\b",
        "a library is missing where the code runs",
        "install what the exception names on all machines, or send it with the application (--py-files, --jars)",
        "executors import from their own machine, not from the driver's; the batch is repeated at the next start",
    ),
    _known(
        "result-too-large",
        r"\bspark\.driver\.maxResultSize\b",
        "its tasks return more rows to the driver than spark.driver.maxResultSize allows",
        "find what reads a whole result in the driver (collect, toPandas, broadcast), and let tasks write it instead",
        "the same batch returns as much at the next start; a higher limit takes as much more memory of the driver",
    ),
    _known(
        "database-deadlock",
        r"\b[Dd]eadlock(Detected| detected| found| victim)",
        "the database ended one of two transactions that waited for each other",
        RESUME,
        "the transaction was rolled back",
        again="write rows in the order of their keys: no two transactions wait for each other then",
    ),
    _known(
        "database-locked",
        r"LockNotAvailable|due to lock timeout|Lock wait timeout exceeded|database is locked",
        "another transaction held what the query wanted to write for too long",
        "find the session of the database that holds the lock, and let it commit or end it",
        "the batch waits for it again at the next start",
    ),
    _known(
        "database-connections-used-up",
        r"too many clients already|remaining connection slots are reserved|\bToo many connections",
        "the database accepts no more connections",
        "count the open connections of the database by application, and close those that nobody uses",
        "each task, and each batch that leaves one open, adds to them; partitions and cores limit the tasks",
    ),
    _known(
        "row-repeated",
        r"UniqueViolation|violates unique constraint|UNIQUE constraint failed|Duplicate entry .* for key",
        "the target already has a row with the key of one that is written",
        "compare that row with the table: an earlier try of the batch may have written it",
        "a batch that is repeated writes its rows again; an upsert (ON CONFLICT, MERGE) accepts them",
    ),
    _known(
        "credential-expired",
        r"ExpiredToken|ExpiredCredentials|[Tt]oken (has|is) expired|token included in the request is expired"
        r"|SaslAuthenticationException|AADSTS|InvalidClientTokenId|InvalidAccessKeyId"
        rf"|\b401{BETWEEN}Unauthorized",
        "a credential expired or is not accepted",
        "renew the credential, then start the query again with the same checkpoint",
        "the query resumes where it stopped",
    ),
    _known(
        "certificate-not-accepted",
        r"SslAuthenticationException|PKIX path",
        "the TLS handshake with a server failed: one side does not accept the other's certificate or protocol",
        "compare the certificates of both sides with the truststores, their dates and the host name",
        "the query resumes where it stopped",
    ),
    _known(
        "no-permission",
        r"AccessDenied(Exception)?\b|AccessControlException|(Topic|Group|Cluster)AuthorizationException"
        r"|Permission denied|Operation not permitted|INSUFFICIENT_PERMISSIONS|ForbiddenException|NotAuthorizedException"
        rf"|not authorized to perform|\b403{BETWEEN}Forbidden",
        "the query's user has no permission for what the exception names",
        "compare the permissions of that user with those of yesterday, and grant what is missing",
        "the query resumes where it stopped",
    ),
    _known(
        "read-only-file-system",
        r"Read-only file system",
        "the file system of the file that the exception names is mounted read-only",
        "see in the log of that machine (dmesg) whether its disk had an error, and mount the file system anew",
        "after such an error a system mounts it so; the query resumes where it stopped",
    ),
    _known(
        "missing-column",
        r"UNRESOLVED_COLUMN|FIELD_NOT_FOUND|UNRESOLVED_FIELD",
        "the query uses a column that its input does not have",
        "compare the columns that the query names with those of its input",
        "a renamed or dropped column has to be changed in the query too",
    ),
    _known(
        "bad-value",
        r"CAST_INVALID_INPUT|CAST_OVERFLOW|CANNOT_PARSE_TIMESTAMP|NUMERIC_VALUE_OUT_OF_RANGE|ARITHMETIC_OVERFLOW"
        r"|MALFORMED_(RECORD_IN_PARSING|AVRO_MESSAGE|PROTOBUF_MESSAGE)",
        "a value of a row cannot be converted to the type that the query wants",
        "read the rows of the failed batch and find the value",
        "the row comes again with each start; try_cast, or the mode PERMISSIVE, lets the others pass",
    ),
    _known(
        "checkpoint-log-torn",
        r"Incomplete log file|Log file was malformed|Json(EOF|Parse)Exception|MappingException",
        "a file of the checkpoint's log is empty or cut: its writer was killed, or its disk was full",
        "keep a copy of the checkpoint, and find which newest file of its folders offsets and commits is cut",
        "without it, and without a commit of its number, the query repeats that batch: a sink that appends may get its "
        "rows twice",
        within=r"HDFSMetadataLog|[Ll]og file",
    ),
    _known(
        "state-unreadable",
        r"CANNOT_LOAD_STATE_STORE\.(CANNOT_(READ|FIND)_|UNEXPECTED_FILE_SIZE|AUTO_SNAPSHOT_REPAIR_FAILED)"
        r"|MISSING_(METADATA_FILE|STATE_DIRECTORY)|CHECKSUM_VERIFICATION_FAILED|FileNotFoundException: .*" + STATE_FILE,
        "files of the checkpoint that the query needs are missing or damaged",
        "stop what deletes files of the checkpoint and restore them; if the query has a new operator, start it without",
        "the checkpoint has no files for a new operator; a new one would lose the state and repeat or lose rows",
    ),
    _known(
        "state-not-committed",
        r"STATE_STORE_COMMIT_VALIDATION_FAILED",
        "the function of foreachBatch did not compute all rows of the batch, so a part of its state was not saved",
        "let the function compute all rows: write them, or persist() and count() them before show() or limit()",
        "the batch fails again as long as the function computes only some of its partitions, or hides a failed write",
    ),
    _known(
        "state-store-locked",
        r"UNRELEASED_THREAD_ERROR|RocksDB instance could not be acquired",
        "another task still holds its state store: a second action of foreachBatch, a task that hangs, or its copy",
        "find the task that the exception names as the holder: of a second action at the same time, or one that hangs",
        "each action on a batch opens its state: persist() and count() the rows before two run at a time; turn "
        "spark.speculation off; a longer rocksdb.lockAcquireTimeoutMs only hides a task that hangs",
    ),
    _known(
        "too-many-open-files",
        r"Too many open files",
        "a process has as many files open as it is allowed to",
        "raise the limit of open files (ulimit -n) for the user that runs driver and executors",
        "if RocksDB has them open, spark.sql.streaming.stateStore.rocksdb.maxOpenFiles limits each store",
    ),
    _known(
        "checkpoint-newer",
        r"INVALID_CHANGE_LOG_READER_VERSION|INVALID_LOG_VERSION\.MAX_SUPPORTED_VERSION|UnsupportedLogVersion: maximum",
        "a newer version of Spark wrote the checkpoint",
        "start the query with the version of Spark that wrote the checkpoint",
        "an older version cannot read the files of a newer one",
    ),
    _known(
        "real-time-not-supported",
        r"\[STREAMING_REAL_TIME_MODE\.",
        "real-time mode does not run a part of the query",
        "take out of the query what the exception names, or start it with a trigger of processing time",
        "it is checked before the first batch, so each start fails again",
    ),
    _known(
        "unreachable",
        r"ConnectException|Connection refused|UnknownHostException|NoRouteToHostException",
        "a server that the query needs cannot be reached",
        "try to connect from the machine of the driver to the address that the exception names",
        "once it answers, the query resumes with the same checkpoint",
    ),
    _known(
        "interrupted",
        r"\bjava\.lang\.InterruptedException",
        "a thread of the query was interrupted: most often somebody stopped it while it waited for its storage or sink",
        f"{RESUME}, unless it was stopped on purpose",
        "where another exception wraps that of the interrupt, Spark takes the stop for a failure",
    ),
    _known(
        "file-unreadable",
        r"\[FAILED_READ_FILE\.|Encountered error while reading file",
        "a file cannot be read: most often it is damaged, incomplete, or not of the format that the query reads",
        "read the file that the exception names alone, with the query's schema and options",
        "if that fails, its producer has to write it again; if not, it was incomplete, or its store did not answer",
    ),
)
# file-gone of a query whose sources have no files, where the file has rows: logs of sinks and checkpoints may go, too
JOINED_FILE_GONE = _known(
    "joined-file-gone",
    r"FAILED_READ_FILE|DELTA_FILE_NOT_FOUND|\.(parquet|orc|avro)\b",
    "a file of a table that the query joins is gone: the table was overwritten or compacted",
    f"{RESUME}: it lists the files of that table anew",
    REPEATED,
    again="add files to that table instead of overwriting it, or read it in the function of foreachBatch",
)


def explain(text: str, files: bool = True) -> Known | None:
    """The known failure that an exception is about, by its innermost cause that is known; None for any other.

    `text` is the whole exception: with its causes, with or without the frames of its stack. `files`: whether a source
    of the query may be files or a table.
    """
    for cause in reversed(without_frames(text).split(CAUSE)):
        for known in KNOWN:
            if known.pattern.search(cause) and known.within.search(text):
                if files or known.name != "file-gone":
                    return known
                return JOINED_FILE_GONE if JOINED_FILE_GONE.pattern.search(text) else None
    return None
