import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.checkpoint_full import RULE
from ledgerops.signals.query_view import QueryView
from tests.tables import cases

FRAME = "\tat org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog.write(HDFSMetadataLog.scala:208)"
FULL = f"java.io.IOException: No space left on device\n{FRAME}\n=== Streaming Query ==="


@pytest.mark.parametrize(
    "told",
    [
        "java.io.IOException: No space left on device",
        "java.io.IOException: File too large",
        "java.io.IOException: Disk quota exceeded",
        "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException: The DiskSpace quota of /checkpoints is exceeded: "
        "quotaExceeded",
        "java.nio.file.AccessDeniedException: s3a://bucket/checkpoints/offsets/8: Access Denied",
        "java.io.FileNotFoundException: /checkpoints/commits/.8.tmp (Read-only file system)",
    ],
)
def test_a_storage_that_refuses_is_named(history, told):
    assert [each.component.detail for each in RULE.check(history(exception=f"{told}\n{FRAME}"))] == ["checkpoint"]


@pytest.mark.parametrize(
    ("told", "step"),
    [
        ("No space left on device", "free space in the storage of the checkpoint"),
        ("File too large", "raise the limit on the size of a file"),
        ("/checkpoints/commits/.8.tmp (Read-only file system)", "give the query's user write access"),
    ],
)
def test_the_first_step_is_for_why_it_was_refused(history, told, step):
    [finding] = RULE.check(history(exception=f"java.io.IOException: {told}\n{FRAME}"))
    assert finding.remedies[0].action.startswith(step)


def test_it_says_what_the_file_system_said(history):
    [finding] = RULE.check(history(exception=FULL))

    assert finding.summary == (
        "the query failed because the storage of its checkpoint rejects writes: IOException: No space left on device"
    )


def test_it_is_the_root_of_the_failure(history):
    [root] = Diagnoser()(history(exception=FULL, error_class="STREAM_FAILED")).root_causes
    assert (root.rule, root.explains) == ("checkpoint-full", ("query-failed",))


def test_it_is_still_told_while_the_query_starts_again(history):
    view = history(exception=FULL)
    view.history.start(view.now + 1, "id-1", "run-2")

    assert list(RULE.check(QueryView(view.history, view.now + 5)))
    assert list(RULE.check(QueryView(view.history, view.now + 300))) == []


@cases(
    "case",
    ("failed of something else", {"exception": f"java.lang.ArithmeticException: / by zero\n{FRAME}"}),
    (
        "the sink or the shuffle had no space",
        {"exception": "java.io.IOException: No space left on device\n\tat org.apache.spark.shuffle.A.write(A:1)"},
    ),
    ("a storage that was away", {"exception": "java.io.IOException: Connection reset\n" + FRAME}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []
