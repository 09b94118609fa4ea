from ledgerops.diagnosis.rules.no_checkpoint import RULE
from ledgerops.diagnosis.rules.query_failed import RULE as QUERY_FAILED
from tests.tables import cases

TEMPORARY = {"temporary_checkpoint": True, "sink": "ForeachBatchSink"}
EARLIEST = "(startingOffsets is earliest)"
FROM_THE_BEGINNING = "a restart reads its sources from the beginning again"
SKIPS = "a restart skips the rows that arrive until it has started (startingOffsets is latest)"


@cases(
    "case, effect",
    ("the latest", {"starting_offsets": "latest"}, SKIPS),
    ("all", {"starting_offsets": "earliest"}, "a restart reads the topics from the beginning again " + EARLIEST),
    (
        "given ones",
        {"starting_offsets": "given"},
        "a restart reads the topics from the offsets or times given in its options again",
    ),
    ("unknown", {}, FROM_THE_BEGINNING),
    ("a folder whose name is that of a sink", {"sink": "FileSink[/data/memory/orders]"}, FROM_THE_BEGINNING),
)
def test_a_query_without_a_checkpoint_is_told_what_a_restart_does(history, case, effect):
    [finding] = RULE.check(history(plan=TEMPORARY | case))
    assert finding.summary == f"the query has no checkpoint location: {effect}"


@cases(
    "plan",
    ("a folder of its own", {"temporary_checkpoint": False}),
    ("a table in memory", {"temporary_checkpoint": True, "sink": "MemorySink"}),
    ("no output", {"temporary_checkpoint": True, "sink": "NoopTable"}),
)
def test_others_are_not(history, plan):
    assert list(RULE.check(history(plan=plan))) == []


@cases(
    "temporary, expected",
    ("it is gone", True, "with a checkpointLocation"),
    ("it is kept", False, "with the same checkpoint"),
    ("nobody knows", None, "with the same checkpoint"),
)
def test_the_advice_after_a_failure_does_not_speak_of_a_checkpoint_that_is_gone(history, temporary, expected):
    [finding] = QUERY_FAILED.check(history(exception="boom", plan={"temporary_checkpoint": temporary}))
    assert finding.remedies[0].action == "repair what the exception names; all of it is in the driver's log"
    assert finding.remedies[1].action.endswith(expected)
