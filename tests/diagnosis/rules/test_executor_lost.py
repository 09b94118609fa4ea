from dataclasses import replace

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.executor_lost import RULE
from ledgerops.model.records import RemovedExecutor
from ledgerops.signals.query_view import QueryView
from tests.tables import cases

KILLED = "Container killed by YARN, exit code 137"
RAISE = "raise spark.executor.memoryOverhead at the next start"
NO_ANSWER = {"reason": "timed out", "names": ("1", "2")}
WORKER = "worker lost: 10.0.0.12:34567"
ON_ANOTHER = {"reason": WORKER, "host": "10.0.0.12"}
ONE, CHECK = "1 executor was lost in the last 5 min", "check the machine of the executor"
LEAVES = "Executor decommission: worker decommissioned"
OTHER = f"{CHECK}, 10.0.0.12, on the page of the cluster manager"


def lost(view, reason=KILLED, ago=20.0, names=("3",), host=None):
    """The view whose newest look at the machines knows of executors that were removed so long ago."""
    removed = tuple(
        RemovedExecutor(name, view.now - ago, reason=reason, cores=2, failed_tasks=4, host=host) for name in names
    )
    hosts = [*view.hosts[:-1], replace(view.hosts[-1], removed_executors=removed)]
    return QueryView(view.history, view.now, hosts, view.others)


@cases(
    "how, said, detail, step",
    ("with its reason", {}, f"{ONE} (3): {KILLED}", f"3: {KILLED}", RAISE),
    ("several, without memory", NO_ANSWER, "2 executors were lost in the last 5 min (1, 2): timed out", None, CHECK),
    ("whose machine is taken away", {"reason": LEAVES}, f"{ONE} (3): {LEAVES}", None, CHECK),
    ("on a machine", ON_ANOTHER, f"{ONE} (3 on 10.0.0.12): {WORKER}", f"3 on 10.0.0.12: {WORKER}", OTHER),
)
def test_an_executor_that_died_is_found(history, how, said, detail, step):
    [finding] = RULE.check(lost(history(seconds=[5] * 6), **how))
    assert finding.summary == said
    assert detail is None or finding.component.detail == detail
    assert finding.remedies[0].action.startswith(step)


@cases(
    "reason, seconds",
    ("that hung", "Executor heartbeat timed out after 131500 ms", 131.5),
    ("that was killed", KILLED, 0.0),
    ("whose heartbeat was not the reason", "worker lost after 131500 ms", 0.0),
)
def test_it_began_when_the_executor_was_last_heard_of(history, reason, seconds):
    view = lost(history(seconds=[5] * 6), reason)
    [finding] = RULE.check(view)
    assert finding.began == view.now - 20.0 - seconds


@cases(
    "reason, why",
    ("YARN", "Container killed by YARN for exceeding memory limits. 5.5 GB of 5.5 GB physical memory used", "memory"),
    ("YARN, by its limit and a code", "Exceeding physical memory limits. Exit code is 137", "memory"),
    ("Kubernetes", "container state: terminated, exit code: 1, termination reason: OOMKilled", "memory"),
    ("Java", "java.lang.OutOfMemoryError: Java heap space", "heap"),
    ("the kernel", "Out of memory: Killed process 71", "memory"),
    ("standalone, killed", "Command exited with code 137", "137"),
    ("YARN, killed", "Container from a bad node: container_1_2 on host: a. Exit status: 137. Diagnostics: -", "137"),
    ("Kubernetes, killed", "exited with exit code 137(SIGKILL, possible container OOM).", "137"),
    ("a full heap", "Command exited with code 52", "heap"),
    ("Kubernetes, a full heap", "The executor with id 3 exited with exit code 52(JVM OOM).", "heap"),
    ("a port", "worker lost: 127.0.0.1:41379 got disassociated", "lost"),
    ("the port 137", "worker lost: 10.0.0.12:137", "lost"),
    ("a host", "worker lost: zoom-node-7:4000", "lost"),
    ("a host that begins so", "worker lost: oom-node-7:4000", "lost"),
    ("a container", "Container container_1600000000137_0137_01_000137 on host: 137. Exit status: 143", "lost"),
    ("a time", "Executor heartbeat timed out after 137137 ms", "lost"),
    ("another code", "Command exited with code 1370", "lost"),
)
def test_memory_is_advised_where_the_reason_speaks_of_it_or_of_sigkill(history, reason, why):
    [finding] = RULE.check(lost(history(seconds=[5] * 6), reason))
    [step] = finding.remedies
    assert step.action.startswith({"lost": CHECK, "heap": "raise spark.executor.memory at"}.get(why, RAISE))
    said = {"memory": "the reason names memory", "137": "exit code 137 is SIGKILL", "lost": "Spark repeats the lost"}
    said["heap"] = "Spark ends an executor whose heap is full"
    assert step.why.startswith(said[why])


@cases("seconds, severity", ("batches are late", 5.0, "warning"), ("nothing suffers", 1.0, "info"))
def test_it_is_a_warning_only_with_harm(history, seconds, severity):
    roots = Diagnoser()(lost(history(seconds=[seconds] * 8))).root_causes
    assert [root.severity for root in roots if root.rule == "executor-lost"] == [severity]


@cases(
    "reason, ago",
    ("released because it was idle", "Executor 3 was removed due to being idle", 20.0),
    ("released by the driver", "Executor killed by driver.", 20.0),
    ("released by dynamic allocation", "Executor decommission: spark scale down", 20.0),
    ("rolled on purpose", "Executor decommission: Rolling via AVERAGE_DURATION at 1796041582867", 20.0),
    ("long ago", KILLED, 400.0),
    ("after this moment", KILLED, -5.0),
)
def test_others_are_not(history, reason, ago):
    assert list(RULE.check(lost(history(seconds=[5] * 6), reason, ago))) == []


def test_it_is_ruled_out_only_where_executors_are_known(history):
    assert RULE.ruled_out(history(seconds=[5] * 6)) is None
    assert RULE.ruled_out(history(seconds=[5] * 6, cores={"1": 2, "2": 2})) == "no executor was lost in the last 5 min"
