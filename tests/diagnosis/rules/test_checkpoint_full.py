import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.checkpoint_full import RULE
from ledgerops.signals.query_view import QueryView
from tests.tables import cases

FRAME = "\tat org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog.write(HDFSMetadataLog.scala:208)"
FULL = f"java.io.IOException: No space left on device\n{FRAME}\n=== Streaming Query ==="


@pytest.mark.parametrize(
    ("told", "step"),
    [
        ("IOException: No space left on device", "free space in the storage of the checkpoint"),
        ("IOException: File too large", "raise the limit on the size of a file"),
        ("IOException: Disk quota exceeded", "free space in the storage of the checkpoint"),
        ("DSQuotaExceededException: The DiskSpace quota of /checkpoints is exceeded: quotaExceeded", "free space in"),
        ("AccessDeniedException: s3a://bucket/checkpoints/offsets/8: Access Denied", "give the query's user write"),
        ("FileNotFoundException: /checkpoints/commits/.8.tmp (Read-only file system)", "give the query's user write"),
    ],
)
def test_a_storage_that_refuses_is_named_with_a_first_step_for_why(history, told, step):
    [finding] = RULE.check(history(exception=f"java.io.{told}\n{FRAME}"))
    assert finding.component.detail == "checkpoint"
    assert finding.remedies[0].action.startswith(step)


def test_it_is_the_root_of_the_failure_and_says_what_the_file_system_said(history):
    [root] = Diagnoser()(history(exception=FULL, error_class="STREAM_FAILED")).root_causes

    assert (root.rule, root.explains) == ("checkpoint-full", ("query-failed",))
    assert root.summary == (
        "the query failed because the storage of its checkpoint rejects writes: IOException: No space left on device"
    )


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
