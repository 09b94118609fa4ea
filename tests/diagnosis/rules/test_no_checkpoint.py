from ledgerops.diagnosis.rules.no_checkpoint import RULE
from ledgerops.diagnosis.rules.query_failed import RULE as QUERY_FAILED
from tests.tables import cases

TEMPORARY = {"temporary_checkpoint": True, "sink": "ForeachBatchSink"}
FROM_THE_BEGINNING = "a restart reads its sources from the beginning again"
SKIPS = "a restart skips the rows that arrive until it has started (startingOffsets is latest)"


@cases(
    "offsets, effect",
    ("the latest", "latest", SKIPS),
    ("all", "earliest", "a restart reads the topics from the beginning again (startingOffsets is earliest)"),
    ("given ones", "given", FROM_THE_BEGINNING),
    ("unknown", None, FROM_THE_BEGINNING),
)
def test_a_query_without_a_checkpoint_is_told_what_a_restart_does(history, offsets, effect):
    [finding] = RULE.check(history(plan={**TEMPORARY, "starting_offsets": offsets}))
    assert finding.summary == f"the query has no checkpoint location: {effect}"


def test_a_folder_whose_name_is_that_of_a_sink_is_none(history):
    assert list(RULE.check(history(plan={"temporary_checkpoint": True, "sink": "FileSink[/data/memory/orders]"})))


@cases(
    "plan",
    ("a folder of its own", {"temporary_checkpoint": False}),
    ("not known", {}),
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
