import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.checkpoint_full import RULE
from tests.tables import cases

FRAME = "\tat org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog.write(HDFSMetadataLog.scala:208)"
NO_SPACE = "java.io.IOException: No space left on device"
FULL = f"{NO_SPACE}\n{FRAME}\n=== Streaming Query ==="


SPACE, WRITE = "free space in the storage of the checkpoint", "give the query's user write"


@pytest.mark.parametrize(
    ("told", "step"),
    [
        ("IOException: No space left on device", SPACE),
        ("IOException: File too large", "raise the limit on the size of a file"),
        ("IOException: Disk quota exceeded", SPACE),
        ("DSQuotaExceededException: The DiskSpace quota of /checkpoints is exceeded: quotaExceeded", SPACE),
        ("AccessDeniedException: s3a://bucket/checkpoints/offsets/8: Access Denied", WRITE),
        ("FileNotFoundException: /checkpoints/commits/.8.tmp (Read-only file system)", WRITE),
    ],
)
def test_a_storage_that_refuses_is_the_root_of_the_failure_with_a_first_step_for_why(history, told, step):
    [root] = Diagnoser()(history(exception=f"java.io.{told}\n{FRAME}", error_class="STREAM_FAILED")).root_causes

    assert (root.rule, root.explains, root.component.detail) == ("checkpoint-full", ("query-failed",), "checkpoint")
    assert root.summary == f"the query failed because the storage of its checkpoint rejects writes: {told}"
    assert root.remedies[0].action.startswith(step)


def test_it_is_still_told_while_the_query_starts_again(history):
    view = history(exception=FULL)
    view.history.start(view.now + 1, "id-1", "run-2")
    assert [bool(list(RULE.check(view.at(view.now + seconds)))) for seconds in (5, 300)] == [True, False]


@cases(
    "exception",
    ("the sink or the shuffle had no space", f"{NO_SPACE}\n\tat org.apache.spark.shuffle.A.write(A:1)"),
    ("a storage that was away", f"java.io.IOException: Connection reset\n{FRAME}"),
)
def test_others_are_not(history, exception):
    assert list(RULE.check(history(exception=exception))) == []
