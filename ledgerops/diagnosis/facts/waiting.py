"""What a batch does that does not end, by the stacks of its threads, and what to do about it."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Literal, NamedTuple

from ledgerops.diagnosis.facts.contention import cpu_use
from ledgerops.diagnosis.facts.context import function_calls, function_computes, function_place, sink_kind
from ledgerops.diagnosis.facts.hang import moves
from ledgerops.diagnosis.facts.observer_gaps import failing_collectors, recent_records
from ledgerops.diagnosis.limits import MAX_SAMPLE_AGE_SECONDS, MOSTLY
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Remedy
from ledgerops.model.records import Stack, Stacks
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

Whom = Literal["executor", "slot", "broker", "database", "storage", "python", "nobody"]
# how classes begin of the clients that wait for an answer; in a stack the innermost one says whose
CLIENTS: Mapping[Whom, tuple[str, ...]] = {
    "broker": ("org.apache.kafka.clients.", "org.apache.spark.sql.kafka010."),
    "database": (
        "org.postgresql.", "com.mysql.", "org.mariadb.", "oracle.jdbc.", "com.microsoft.sqlserver.",
        "com.clickhouse.", "net.snowflake.", "org.apache.spark.sql.execution.datasources.jdbc.",
    ),
    "storage": (
        "org.apache.hadoop.fs.", "org.apache.hadoop.hdfs.", "com.amazonaws.", "software.amazon.awssdk.", "com.azure.",
        "com.google.cloud.", "io.delta.storage.", "org.apache.iceberg.io.", "org.apache.iceberg.aws.",
    ),
    "python": ("org.apache.spark.api.python.", "org.apache.spark.sql.execution.python."),
}  # fmt: skip
# packages of Python whose caller waits for a database
DATABASES = (
    "psycopg", "psycopg2", "asyncpg", "pg8000", "pymysql", "aiomysql", "mysql", "oracledb", "pymssql", "sqlalchemy",
    "pymongo", "cassandra", "redis", "snowflake", "clickhouse_connect", "clickhouse_driver", "trino",
)  # fmt: skip
SENDERS = ("org.apache.kafka.clients.producer.", "org.apache.spark.sql.kafka010.KafkaDataWriter")
# where a thread is that waits, also in native code: it parks, sleeps, or reads and writes what may not answer
STILL = re.compile(
    r"(sun\.nio\.(ch|fs)|java\.(net|io)|jdk\.internal\.misc\.Unsafe|java\.lang\.(Object|Thread)"
    r"|org\.rocksdb|org\.apache\.hadoop\.(net|io\.nativeio))\."
)
WORDS: Mapping[Whom, str] = {
    "executor": "wait{s} for an executor: there is none",
    "slot": "wait{s} for a free slot",
    "broker": "wait{s} for the broker",
    "database": "wait{s} for the database",
    "storage": "wait{s} for the file system",
    "python": "wait{s} for Python",
    "nobody": "compute{s}",
}
GENERATED = "GeneratedClass"  # in a frame of the code that Spark wrote for a plan
RESTART = Remedy(
    "stop the query and start it from its checkpoint",
    "the batch is repeated: nothing is lost, and a sink that appends may get its rows twice",
    safe=False,
)


class Waiting(NamedTuple):
    """What all tasks of a batch wait for, or, where it has none, the query in the driver: nobody if they compute."""

    whom: Whom
    tasks: int  # 0 for the driver
    frame: str  # the class and method in which it is called, if any
    still: bool = True  # no task ended and no job began between the two looks
    last_of: int = 0  # the tasks of its jobs, where all but this one have ended
    holders: str = ""  # for a slot: the queries whose tasks run meanwhile, where they are known

    @property
    def sends(self) -> bool:
        """Whether it waits for the broker of a sink."""
        return self.frame.startswith(SENDERS)

    @property
    def words(self) -> str:
        """2 tasks wait for the broker (KafkaConsumer.poll)"""
        one = f"the last of its {self.last_of} tasks" if self.last_of else "its task"
        who = {0: "the driver", 1: one}.get(self.tasks, f"its {self.tasks} tasks")
        does = f"{who} {WORDS[self.whom].format(s='' if self.tasks > 1 else 's')}"
        where = "code of the plan" if GENERATED in self.frame else ".".join(self.frame.split(".")[-2:])
        where = where or self.holders
        return f"{does} ({where})" if where else does


@once
def waiting(view: QueryView) -> Waiting | None:
    """An executor or a slot, where none of its tasks runs. Else the same in two looks in a row; None where one of them
    shows anything else."""
    running, looks = view.run.unfinished, view.history.stacks
    if running is None or running.moved is None:
        return None
    pending = (running.tasks or 0) - (running.tasks_done or 0)
    if pending > 0 and running.tasks_running == 0 and not moves(view):
        whom: Whom = "executor" if view.cluster.is_empty else "slot"
        return Waiting(whom, pending, "", holders=_holders(view))
    if len(looks) < 2 or not looks[0].at < looks[1].at:
        return None
    if not view.now - MAX_SAMPLE_AGE_SECONDS <= looks[0].at <= looks[1].at <= view.now:
        return None
    if any(look.run_id != view.history.run_id or look.at < running.since for look in looks):
        return None
    before, now = (_seen(look, pending) for look in looks)
    if before is None or now is None or before.whom != now.whom:
        return None
    last_of = (running.tasks or 0) if running.tasks_done and pending == now.tasks == 1 else 0
    return now._replace(still=running.moved < looks[0].at, last_of=last_of)


def elsewhere(view: QueryView) -> set[tuple[str, str]]:
    """That a slow source of the batches before does not explain the one that hangs, where that waits for no source."""
    found = waiting(view)
    of_source = found is None or (found.whom not in ("executor", "slot", "nobody") and not found.sends)
    return set() if of_source else {("slow-source", "query-stuck")}


def _holders(view: QueryView) -> str:
    names = [other.query for other in view.others if other.running is not None and other.running.tasks_running]
    if len(names) > 1:
        return f"tasks of {len(names)} other queries run"
    return f"tasks of {names[0]} run" if names else ""


def seen_doing(view: QueryView) -> str:
    """What two looks at the running batch show, and where the function of `foreachBatch` is; empty where nothing is."""
    running, found = view.run.unfinished, waiting(view)
    place = function_place(view, running.since) if running is not None else None
    told = (found and found.words, place and f"the function of foreachBatch is at {place}")
    return "".join(f"; {each}" for each in told if each)


def _seen(look: Stacks, pending: int) -> Waiting | None:
    tasks = [stack for stack in look.stacks if stack.task]
    if pending > 0 and not tasks:
        return None  # the driver waits for them
    found = [_client(stack) for stack in tasks or look.stacks]
    whom = {each[0] for each in found if each is not None}
    if not found or None in found or len(whom) != 1:
        return None
    assert found[0] is not None
    return Waiting(whom.pop(), sum(stack.count for stack in tasks), found[0][1])


def _client(stack: Stack) -> tuple[Whom, str] | None:
    """Whom the innermost client in a stack asks, or nobody where the thread computes, and where; None where nothing
    tells: it waits for a lock, or Spark's own code is further in."""
    if stack.runs and stack.frames and not STILL.match(stack.frames[0]):
        return "nobody", stack.frames[0]
    for frame in stack.frames[1:] if stack.frames and STILL.match(stack.frames[0]) else ():
        for whom, signs in CLIENTS.items():
            if frame.startswith(signs):
                return whom, frame
        if frame.startswith("org.apache.spark."):
            return None
    return None


def steps(view: QueryView) -> tuple[Remedy, ...]:
    """What goes on ends by itself, and would do the same again. What hangs is looked at before a restart."""
    found = waiting(view)
    if moves(view):
        if found is not None and found.whom != "nobody":
            return (_dump(view),)
        return (first_step("query-stuck", "going on", "started again, it has the same to do"),)
    if found is not None and found.whom == "nobody":
        return (first_step("query-stuck", found.whom, f"{found.words}; started again, it has the same to compute"),)
    if found is not None and found.whom in ("executor", "slot"):
        return (first_step("query-stuck", found.whom, f"{found.words}; started again, they wait again"),)
    return _dump(view), RESTART


def unanswered(view: QueryView) -> str:
    """That the driver's JVM computes and gives collectors no answer, as an end of a sentence; else empty."""
    use, records = cpu_use(view), recent_records(view)
    cores = use.cores_by.get("driver_jvm", 0.0) if use is not None else 0.0
    if use is None or cores <= MOSTLY * use.cores or not records or not failing_collectors(records):
        return ""
    return f"; the driver's JVM uses {cores:.1f} cores and answers nothing"


def _dump(view: QueryView) -> Remedy:
    """A task, the function of `foreachBatch`, the driver, or how to find out which."""
    running, found, look = view.run.unfinished, waiting(view), partial(first_step, "query-stuck")
    if found is not None and found.whom == "python":
        why = f"{found.words}; the dump shows at which line it is, and a restart destroys it"
        return look("python", why, command="py-spy dump --pid PID_OF_THE_WORKER")
    if found is not None:
        context = "sink broker" if found.sends else found.whom
        return look(context, f"{found.words}; started again it may wait again")
    if running is None and unanswered(view):
        why = "one whose heap is full is like that; a thread dump would wait for it, too"
        return look("jvm", why, command="jstat -gcutil PID_OF_THE_JVM 1000")
    if running is None or running.tasks is None:
        why = "py-spy shows what a Python process waits for, jstack a JVM; a restart destroys it"
        return look(GENERAL, why, command="py-spy dump --pid PID")
    if running.tasks > (running.tasks_done or 0):
        processes = view.hosts[-1].processes if view.hosts else ()
        jvm = "PID_OF_THE_DRIVER" if view.cluster.is_local else "PID_OF_THE_EXECUTOR"
        in_python = any(each.role == "python_workers" for each in processes)
        command = "py-spy dump --pid PID_OF_THE_WORKER" if in_python else f"jstack {jvm}"
        return look("tasks", "the dump shows what the task waits for; a restart destroys it", command=command)
    if sink_kind(view) == "foreach_batch":
        calls = function_calls(view, running.since)
        if calls in DATABASES and function_computes(view) is False:
            return look("database", f"the function waits for {calls}; started again it may wait again")
        why = "no task runs, so the batch waits for that function; a restart destroys what it shows"
        return look("sink function", why, command="py-spy dump --pid PID_OF_THE_DRIVER")
    why = "no task runs, so the batch waits for the driver; a restart destroys what the dump shows"
    return look("driver", why, command="jstack PID_OF_THE_DRIVER")
