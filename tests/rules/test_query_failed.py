import pytest

from ledgerops.diagnosis.rules.query_failed import RULE, first_line

STACK = "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] bad row\n\tat org.apache.spark.sql.Some.method"


def test_an_exception_is_found(history):
    [finding] = RULE.check(history(exception=STACK, error_class="USER_RAISED_EXCEPTION"))

    assert finding.summary == (
        "the query failed after batch 5 (USER_RAISED_EXCEPTION): SparkRuntimeException: [USER_RAISED_EXCEPTION] bad row"
    )


def test_a_query_may_fail_before_its_first_batch(history):
    [finding] = RULE.check(history(warm=0, exception=STACK))

    assert finding.summary.startswith("the query failed before its first batch (no error class): ")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({}, id="at work"),
        pytest.param({"stopped": True}, id="stopped on purpose"),
        pytest.param({"stopped": True, "plan": {"trigger": "available_now"}}, id="an available-now run that is done"),
        pytest.param({"idle": True, "quiet_for": 300}, id="idle"),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


@pytest.mark.parametrize(
    ("exception", "line"),
    [
        ("java.io.IOException: No space left on device\n\tat x", "IOException: No space left on device"),
        (
            "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 30.0 failed 1 times, "
            "most recent failure: Lost task 0.0 in stage 30.0 (TID 47) (host executor driver): "
            "java.lang.RuntimeException: bad row\n\tat x",
            "RuntimeException: bad row",
        ),
        ("boom", "boom"),
        ("x" * 500, "x" * 157 + "..."),
        ("Something went wrong: it was bad", "Something went wrong: it was bad"),
    ],
)
def test_the_first_line_says_what_happened(exception, line):
    assert first_line(exception) == line
