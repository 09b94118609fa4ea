"""The first thing to do about each cause, defined once, by context.

Terminal, live page, HTML report, page message, alert, metric, `ledgerops rules` and runbook all say the step that is
written here. A first step is safe: it can be undone, and loses and repeats no row. What is riskier comes after it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ledgerops.model.finding import SHUFFLE, Remedy, Setting

GENERAL = ""  # the context of a step that fits wherever no other does
MAX_LISTED = 6  # cases before the general step: of more, nobody reads to the last one


class FirstStep(NamedTuple):
    """A step, with names and numbers of a query in braces; `words` stand for these where no query is known. `where`
    says in the runbook which queries it is for."""

    text: str
    where: str = ""
    words: Mapping[str, str] = {}

    @property
    def general(self) -> str:
        """The step without names and numbers of a query: one of a fixed vocabulary."""
        return self.text.format_map(self.words)


_WAITING_SINK = "time one write at the target of the sink"
_FILES_WRITTEN = FirstStep("compare the files of a batch with the tasks that write and with the values of partitionBy",
    "a folder of files")  # fmt: skip
_HEAP = "see in the Spark UI, page Executors, which one collects, and what fills it: `jcmd PID GC.class_histogram`"
_FAILED_TASKS = "see what the exception blames, and whether tasks fail on one executor only (Spark UI, failed tasks)"
_FAILED_STATEMENTS = "see what the exception blames: foreachBatch does the whole statement again"
_PERSISTED = "see on page Storage of the Spark UI what is persisted, and unpersist what nothing reads any more"
_STATE_ROWS = "see how many rows the state holds, and whether a watermark or a time to live removes any"
_LARGER_ROWS = (
    "find the list or map that a key only adds to (collect_list, a function's own state), and cap or window it"
)
_HOW_ENDED = "see how the driver ended: SIGKILL or OOMKilled is most often its memory; else read the end of its log"
_SLOTS = "see in the Spark UI, page Stages, whose tasks run while a stage of this query waits"
_TOPIC = {"topic": "the topic"}
_SETTING = {"setting": SHUFFLE, "number": "two or three for each core"}

FIRST_STEPS: Mapping[str, Mapping[str, FirstStep]] = {
    # symptoms; which part of a batch takes longest decides where it is known: BY_LARGEST_PART
    "falling-behind": {GENERAL: FirstStep("find out which part of a batch takes longest")},
    "freshness-breach": {
        GENERAL: FirstStep("compare the lag of the partitions, and the watermark with the clock"),
        "event time": FirstStep("compare the watermark with the event time of each input", "its batches are in time"),
        "rows": FirstStep("compare the time in the rows with the time of their arrival",
            "its batches are in time, no watermark"),
        "transaction": FirstStep("find the open transaction on the topic's brokers: kafka-transactions.sh find-hanging",
            "Spark finds no new rows, and the topic has some"),
    },
    "trigger-overrun": {GENERAL: FirstStep("find out which part of a batch takes longest")},
    "long-batches": {GENERAL: FirstStep("find out which part of a batch takes longest")},
    "query-stuck": {
        GENERAL: FirstStep("see in the Spark UI whether a task of the batch runs: dump its Python worker or "
            "executor, else the driver"),
        "driver": FirstStep("take a thread dump of the driver (Spark UI, page Executors)", "no task runs"),
        "jvm": FirstStep("see whether the driver's JVM does nothing but collect garbage: `jstat -gcutil PID`",
            "its JVM computes and does not answer"),
        "tasks": FirstStep("take a thread dump of the task's executor (Spark UI, page Executors), and if it waits "
            "for Python, of that worker",
            "a task runs"),
        "python": FirstStep("see at which line the function is: `py-spy dump` on the Python worker of the running task",
            "a task waits for Python"),
        "sink function": FirstStep("see what the function of foreachBatch does in the driver's Python process",
            "`foreachBatch`, no task"),
        "nobody": FirstStep("see in the Spark UI, page Jobs, which job runs, and which rows keep its tasks computing",
            "its tasks compute"),
        "slot": FirstStep(_SLOTS, "none of its tasks runs"),
        "executor": FirstStep("see on the page of the cluster manager why the application gets no executor: free "
            "cores, memory, quota", "it has no executor"),
        "broker": FirstStep("check the broker, and the network to it", "it waits for a broker"),
        "sink broker": FirstStep("check the broker of the sink, and the network to it", "it waits to send to a broker"),
        "database": FirstStep("look in the database for locks and for what its sessions wait for",
            "it waits for a database"),
        "storage": FirstStep("check whether the file system or object store answers", "it waits for files"),
        "going on": FirstStep(
            "let the batch end, and see in the Spark UI, page Jobs, which of its jobs others do not have", "tasks end"),
    },
    "query-failed": {
        GENERAL: FirstStep("repair what the exception names; all of it is in the driver's log"),
        "application": FirstStep("repair what ended the application, then start it again with the same checkpoint",
            "only its application failed"),
        "jvm": FirstStep(_HOW_ENDED, "the JVM of its driver ended by itself, or was killed"),
        "checkpoint": FirstStep("give each of the two a checkpointLocation of its own, and find out what was not read",
            "another query began with its checkpoint"),
        "vanished": FirstStep("check whether the Spark server of the query still runs, and read the end of its log",
            "it vanished"),
    },
    "crash-loop": {
        GENERAL: FirstStep(
            "stop what restarts the query, then repair what the exception names; all of it is in the driver's log"),
        "killed": FirstStep(_HOW_ENDED, "no exception was recorded"),
    },
    "rows-dropped": {GENERAL: FirstStep("find out which producer sends late or future-dated rows")},
    "retention-risk": {
        GENERAL: FirstStep("raise retention.ms of {topic} now, and retention.bytes if it is set", "Kafka", _TOPIC),
        "table": FirstStep("raise delta.logRetentionDuration of {table} now; for Iceberg stop expire_snapshots",
            "a table", {"table": "the table"}),
    },
    "data-loss": {
        GENERAL: FirstStep(
            "raise the retention of {topic} so that no more is lost, then look for another copy of the rows",
            words=_TOPIC),
        "output folder": FirstStep(
            "stop the query, and compare `_spark_metadata` in its output folder with its checkpoint",
            "its sink skips batches"),
        "skipped once": FirstStep("read what the skipped batches read again, with a query that has its own folder",
            "its sink skipped batches, and writes again"),
        "failure hidden": FirstStep("stop the query before it skips more rows, and repair what the exception blames",
            "its function hides that a write fails"),
        "too soon": FirstStep(
            "find out whether {topic} was created again, or who deleted its records or cut its retention",
            "records of a topic are gone before its retention is over", _TOPIC),
        "created again": FirstStep("find out who created {topic} again, and whether it has all rows from its beginning",
            "the offsets of the topic went back, or its id is another", _TOPIC),
    },
    # input
    "input-overload": {
        GENERAL: FirstStep("ask the producer whether the load is intended; spread or reduce it"),
        "unproven": FirstStep("see in the Spark UI, page Jobs, what takes the time of a batch, and whether it is rows",
            "too slow from its start, and not known where the time goes"),
        "expand": FirstStep("compare the length of the window with its slide: the plan makes {number} rows of each row",
            "windows that slide, or grouping sets", {"number": "many"}),
        "dearer": FirstStep(
            "compare the newest rows with earlier ones: longer texts or lists, or more matches in a join",
            "each row is more work than it used to be"),
        "state": FirstStep(_LARGER_ROWS, "the rows of its state get larger"),
        "driver": FirstStep(
            "see what the function of foreachBatch does for each row in the driver, and let tasks do it",
            "too slow from its start, `foreachBatch`, most of a batch without a task"),
        "few tasks": FirstStep(
            "see why cores have no task: few partitions of source or state, coalesce, a window without partitionBy",
            "too slow from its start, fewer tasks than cores"),
    },
    "slow-creep": {GENERAL: FirstStep("ask the producer how far the load will rise")},
    "rate-limited": {
        GENERAL: FirstStep("raise {option}{limit} and start the query again",
            words={"option": "the limit of the source", "limit": ""}),
    },
    "source-partition-skew": {
        GENERAL: FirstStep("repair how the producer chooses the partition"),
        "files": FirstStep(
            "compare the sizes of the files that a batch reads: a single task reads all of one that gzip compressed",
            "files or a table"),
    },
    "slow-source": {
        GENERAL: FirstStep("time one request to the source"),
        "source kafka": FirstStep(
            "check the broker's request latency, its quotas for this client, and the network to it", "Kafka"),
        "source files": FirstStep("count the files and folders of the source, and time one listing of them", "files"),
        "files of a batch": FirstStep(
            "count the files that a batch reads, and let their producer write fewer and larger ones",
            "files, and most of it is asking for those of the batch"),
        "source table": FirstStep(
            "count the versions and files that the table has gained since the position of the query", "a table"),
    },
    "source-unreachable": {GENERAL: FirstStep("bring back the broker, or the network to it")},
    "input-stopped": {
        GENERAL: FirstStep("check the producer of {topic}", words=_TOPIC),
        "folder": FirstStep("see whether the folder of {topic} still exists, and check what writes into it", "files",
            {"topic": "the source"}),
    },
    "input-recomputed": {
        GENERAL: FirstStep("look for several scans of one source in the plan, and read it once"),
        "sink foreach_batch": FirstStep("count the actions on the batch in the function of foreachBatch",
            "`foreachBatch`"),
        "saves": FirstStep(
            "persist() the batch at the beginning of the foreachBatch function and unpersist() it at the end",
            "`foreachBatch`, and one reading would save much of a batch"),
    },
    "catching-up": {GENERAL: FirstStep("wait until the backlog is processed")},
    # work
    "slow-sink": {
        GENERAL: FirstStep(_WAITING_SINK),
        "sink function": FirstStep("see where the function of foreachBatch spends its time: `py-spy dump --pid PID` "
            "on the driver's Python process",
            "`foreachBatch`, it does not wait as far as is known"),
        "line": FirstStep("look at {line}: the function of foreachBatch spends most of its time there",
            "`foreachBatch`, the line is known", {"line": "the line that the finding names"}),
        "sink kafka": FirstStep("check the request latency of the broker that is written to", "Kafka"),
        "sink table": FirstStep("time one commit to the table, and look for other writers of it", "a table"),
        "small files": _FILES_WRITTEN._replace(where="many small files"),
    },
    "intermittent-sink": {
        GENERAL: FirstStep("check the target of the sink at the times of the slow writes: slow log, locks, throttling"),
        "log": FirstStep("count the lines of the newest `.compact` file in `_spark_metadata` of the output folder",
            "a folder of files, each tenth batch"),
    },
    "python-bound": {
        GENERAL: FirstStep("see at which line the function is: `py-spy dump --pid PID` on one of the Python workers"),
        "waits": FirstStep("find out what the function waits for: `py-spy dump --pid PID` on one of the Python workers",
            "they use little CPU"),
        "state": FirstStep(_LARGER_ROWS, "the rows of its state get larger"),
    },
    "table-scan": {
        GENERAL: FirstStep(
            "see in the Spark UI, page SQL, which scan of a batch reads most rows, and by what condition"),
        "sink foreach_batch": FirstStep(
            "look for reads of a table in the function of foreachBatch, also by MERGE, and at their conditions",
            "`foreachBatch`"),
    },
    "key-skew": {
        GENERAL: FirstStep(
            "count the rows of each key: one may be hot, as a default value is, or few keys share the busy task"),
        "hot": FirstStep("find the hot key, and see whether it is a default value",
            "`ledgerops.instrument` counts the keys, and one is hot"),
    },
    "straggler": {
        GENERAL: FirstStep("find out on which executor and for which partition it happens"),
        "makes rows": FirstStep("find the record that the slow task makes so many rows of", "it writes far more"),
        "one executor": FirstStep(
            "see what the slow task does: `py-spy dump --pid PID` on its Python worker, or a thread dump (Spark UI)",
            "there is one executor"),
        "no Python": FirstStep(
            "see what the slow task computes or waits for: thread dump of its executor (Spark UI, page Executors)",
            "there is one executor, the plan has no Python"),
        "executor": FirstStep("check the machine of {executor}", "one executor is slow",
            {"executor": "the slow executor"}),
    },
    "task-retries": {GENERAL: FirstStep(_FAILED_TASKS)},
    "statement-retries": {
        GENERAL: FirstStep(_FAILED_STATEMENTS),
        "conflict": FirstStep(
            "see who else commits to the table (`DESCRIBE HISTORY`), and let one of them write at a time",
            "commits conflict"),
    },
    "scheduler-skew": {GENERAL: FirstStep("compare the tasks and cores of the executors in the Spark UI")},
    "small-batch-overhead": {
        GENERAL: FirstStep("set the trigger interval to {seconds} or more{limits}, if results may be that old",
            words={"seconds": "twice a batch", "limits": ""}),
        "planning": FirstStep("take a thread dump of the driver (Spark UI, page Executors) while it plans a batch",
            "planning alone takes seconds"),
    },
    "too-many-tasks": {
        GENERAL: FirstStep("set {setting} to {number} and start the query again", "no state", words=_SETTING),
        "stateful": FirstStep(
            "find out whether the state may be built again from the source: the checkpoint fixes how many tasks use it",
            "with state"),
        "kept": FirstStep(
            "coalesce({number}) right after the join; in foreachBatch set {setting} on the batch's session",
            "no state, Spark before 4.1", {**_SETTING, "number": "N"}),
        "source": FirstStep("coalesce({number}) right after load(): fewer tasks then read the same partitions",
            "they read the source", {"number": "as many as cores"}),
        "split": FirstStep(
            "lower minPartitions of the source to {number}, or raise its maxRecordsPerPartition, and start again",
            "they are more than the partitions of the topic", {"number": "as many as cores"}),
        "again": FirstStep(
            "look for what each batch reads again: a DataFrame that grows by `union`, or a table of many small files",
            "they read what is not the batch's"),
        "repartition": FirstStep("lower repartition({tasks}) in the code of the query to {number}, and start it again",
            "spark.sql.shuffle.partitions is another number", {"tasks": "N", "number": "two or three for each core"}),
    },
    # event time
    "late-data": {
        GENERAL: FirstStep("find the producer that sends late"),
        "misread": FirstStep(
            "check the column of withWatermark: how a missing time and the unit of the number are read",
            "the times are misread"),
    },
    "watermark-stalled": {
        GENERAL: FirstStep("find out why {input} sends nothing new; have its producer send a heartbeat row",
            words={"input": "one input of the query"}),
        "branch": FirstStep(
            "compare the newest event time of each input with the clock: one stands, or a filter drops its rows",
            "every source sends rows"),
        "clock": FirstStep(
            "compare the event time of new rows with the clock: check the producers' clock and the column",
            "event time stands"),
        "newest": FirstStep(
            "find the producer that sent the newest rows, and compare its clock with those of the others",
            "only older rows arrive"),
    },
    "watermark-jump": {
        GENERAL: FirstStep("find the producer whose clock is ahead, or that sends local time, and correct it"),
        "misread": FirstStep("check the unit of the number that becomes the event time", "the times are misread"),
    },
    "partition-time-spread": {
        GENERAL: FirstStep(
            "bring the partitions to the same time: let the slow partition catch up, or balance the load"),
    },
    # state
    "unbounded-state": {
        GENERAL: FirstStep("find out how long results need a row of the state, and when memory or disk will be full"),
        "no timeout": FirstStep("find out in the function which keys are finished, and call state.remove() for them",
            "a function without a timeout"),
    },
    "state-growth": {
        GENERAL: FirstStep("find the input that stops the watermark, and get the watermark moving"),
        "lateness": FirstStep(
            "find out how late rows really come: the state keeps each for the allowed lateness at least",
            "it will be full before the allowed lateness is over"),
        "steady": FirstStep("give the state more memory until it is bounded", "the watermark advances"),
        "larger rows": FirstStep(
            _LARGER_ROWS, "its rows get larger, not more"),
    },
    "state-commit-slow": {GENERAL: FirstStep("time the writing of a small file to the checkpoint folder")},
    "rocksdb-stall": {
        GENERAL: FirstStep("see with `iostat -x` whether the disk of spark.local.dir is busy: if not, the write "
            "buffers are too small"),
        "buffers": FirstStep(
            "raise spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB from {now} to {number} at the next start",
            "a batch writes more than the buffers hold", {"now": "X", "number": "more"}),
    },
    "eviction-storm": {GENERAL: FirstStep("wait until the batch has removed its rows, and see when it comes again")},
    "state-snapshot-lag": {
        GENERAL: FirstStep(
            "search the executors' logs for errors of the maintenance thread, which uploads the snapshots"),
        "setting": FirstStep(
            "set spark.sql.streaming.stateStore.{setting} back to {usual} at the next start; it is {now}",
            "a setting delays them", {"setting": "maintenanceInterval", "usual": "its default", "now": "larger"}),
    },
    # resources
    "gc-pressure": {
        GENERAL: FirstStep(_HEAP),
        "state": FirstStep(_STATE_ROWS, "state fills the heap"),
        "cache": FirstStep(_PERSISTED, "persisted data fills the heap"),
    },
    "memory-spill": {
        GENERAL: FirstStep(
            "see in the Spark UI whether all tasks of the stage spill, or one of them, which has a hot key"),
        "multiplied": FirstStep(
            "see in the Spark UI, page SQL, which join or explode makes so many rows, and by what condition",
            "tasks spill far more than they read"),
        "cache": FirstStep(_PERSISTED, "persisted data holds the memory"),
    },
    "memory-leak": {
        GENERAL: FirstStep(
            "find what the program keeps from batch to batch: a list, a cache, results of collect() or toPandas()"),
        "python_workers": FirstStep(
            "find what the function keeps from call to call: a global, a cache without a limit, a library that leaks",
            "the Python workers grow"),
    },
    "cpu-saturated": {
        GENERAL: FirstStep("find the processes and move them, or give the driver cores of its own"),
        "limit": FirstStep("raise the CPU limit of the driver's container to {cores}, or remove it",
            "the container has a CPU limit that is used up", {"cores": "what its threads would use"}),
    },
    "noisy-neighbour": {
        GENERAL: FirstStep(
            "see what the tasks of {query} compute (thread dump of an executor, py-spy), or stop it if it can wait",
            words={"query": "the other query"}),
        "no Python": FirstStep(
            "see what the tasks of {query} compute (thread dump of an executor), or stop it if it can wait",
            "the other query's plan has no Python", {"query": "the other query"}),
        "rows": FirstStep("limit what {query} reads in a batch (maxOffsetsPerTrigger; of files maxFilesPerTrigger)",
            "the other query reads more rows than before", {"query": "the other query"}),
        "several": FirstStep("decide which of {query} can run less often, or in an application of its own",
            "several queries together take the cores", {"query": "the other queries"}),
        "job": FirstStep(
            "find the job that no watched query began (Spark UI, page Jobs); run it later or in another application",
            "a job of the application that belongs to no watched query"),
    },
    "too-few-slots": {
        GENERAL: FirstStep("start the application with {cores} or more", words={"cores": "a core for each task"})
    },
    "executor-lost": {
        GENERAL: FirstStep("check the machine of {executor} on the page of the cluster manager",
            words={"executor": "the executor"}),
        "memory": FirstStep("raise spark.executor.memoryOverhead at the next start",
            "the reason names memory or exit code 137"),
        "heap": FirstStep("raise spark.executor.memory at the next start, or give each batch fewer rows",
            "its heap was full, exit code 52"),
    },
    "checkpoint-slow": {
        GENERAL: FirstStep("check the storage of the checkpoint: latency of small writes, throttling, free space")
    },
    "checkpoint-full": {
        GENERAL: FirstStep(
            "free space in the storage of the checkpoint or raise its quota, then start the query again"),
        "file size": FirstStep(
            "raise the limit on the size of a file (`ulimit -f` of driver and executors), then start the query again",
            "a file is too large"),
        "permission": FirstStep("give the query's user write access to the checkpoint back, then start the query again",
            "a write is not permitted"),
    },
    "many-small-files": {
        GENERAL: FirstStep("compact the table that it writes: OPTIMIZE (Delta), rewrite_data_files (Iceberg)"),
        "sink files": _FILES_WRITTEN,
    },
    "no-checkpoint": {GENERAL: FirstStep("decide what the next start must not skip or repeat")},
    # ledger
    "conflicting-duplicates": {GENERAL: FirstStep("ask the producer which copy is right")},
    "ledger-imbalance": {
        GENERAL: FirstStep("stop the query and what reads its output, then compare it with what was sent")
    },
    # self
    "observer-degraded": {
        GENERAL: FirstStep("search the driver's log for `only counted`"),
        "tasks": FirstStep("see the reason in the driver's log; where ui_url is set, check that this Spark UI answers",
            "tasks or executors fail"),
        "worker": FirstStep("raise the trigger interval of queries with very short ones", "the observer is too slow"),
        "silent": FirstStep("check whether the driver process still runs", "the driver reports nothing"),
        "still": FirstStep("find out what suspended the driver: its machine, its container (docker pause), or a signal",
            "the driver stood still"),
        "late": FirstStep("take a thread dump of the driver: spark-listener-group-streams is in the slow listener",
            "events come late"),
    },
}  # fmt: skip

# of a symptom without a cause, by the part of a batch that takes longest
BY_LARGEST_PART: Mapping[str, str] = {
    "latest_offset": "time one request to the source",
    "get_batch": "count the files that a batch reads: each is looked up alone",
    "query_planning": "look for what made the plan of the query long, or trigger less often",
    "wal_commit": "time one write to the checkpoint",
    "commit_offsets": "time one write to the checkpoint",
    "driver_before": "take a thread dump of the driver (Spark UI, page Executors) in a batch, before its first task",
    "driver_between": "take a thread dump of the driver (Spark UI, page Executors) in a batch, while no task runs",
    "driver_waits": "see where the function of foreachBatch waits: `py-spy dump --pid PID` on the driver's Python",
    "after_tasks": _WAITING_SINK,
    "source_wait": "time one read of the source",
    "sink_wait": _WAITING_SINK,
    "retries": _FAILED_TASKS,
    "failed_statements": _FAILED_STATEMENTS,
    "many_tasks": "compare the number of tasks of a batch with the cores",
    "few_rows": "compare the number of tasks of a batch with its rows",
    "table_scan": "see in the Spark UI, page SQL, which scan of a batch reads most rows",
    "state_stall": "see with `iostat -x` whether the disk of spark.local.dir is busy",
    "spill": "see in the Spark UI whether all tasks of the stage spill, or one of them",
    "uneven_keys": "find the hot key",
    "uneven_source": "compare the rows of the partitions",
    "uneven_task": "find out on which executor it runs",
    "uneven_executors": "compare the tasks of the executors",
    "other_queries": "look at the batches of the other queries",
    "other_processes": "find the processes that use the CPU",
    "cpu_limit": "raise the CPU limit of the driver's container",
    "slot_wait": _SLOTS,
    "launch": "compare the number of tasks of a batch with the cores",
    "python": "find the function that takes longest in the Spark UI, page SQL",
    "gc": _HEAP,
    "state_commit": "compare the number of shuffle partitions with the cores",
    "state_update": _STATE_ROWS,
    "shuffle": "see in the Spark UI what the stages write and read",
    "cpu": "compare the tasks of a batch with the cores, and ask whether the load is intended",
    "waiting": "take a thread dump of an executor (Spark UI, page Executors) during a batch",
    "tasks_unknown": "see in the Spark UI which stage of a batch takes longest",
    "unattributed": "look for pauses of the driver's JVM",
}
ONE_LONG_BATCH = "find the long batch in the Spark UI, and the stage or the pause that took its time"


def first_step(
    rule: str, context: str, why: str, *, command: str | None = None, settings: Sequence[Setting] = (), **values: str
) -> Remedy:
    """The first step of a rule in a context, with the names and numbers of a query."""
    step = FIRST_STEPS[rule][context]
    action = step.text.format_map({**step.words, **values})
    return Remedy(action, why, command, settings=tuple(settings), general=step.general)


def sentence(step: str) -> str:
    """A step as a sentence: with a capital and a full stop."""
    return f"{step[:1].upper()}{step[1:]}."
