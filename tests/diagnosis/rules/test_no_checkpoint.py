from dataclasses import replace

from ledgerops.diagnosis.rules.no_checkpoint import RULE
from ledgerops.diagnosis.rules.query_failed import RULE as QUERY_FAILED
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.conftest import told_by
from tests.tables import cases

KAFKA = "KafkaV2[Subscribe[transactions]]"

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


def restarted(history, query_id="id-2", first=0, began=9000, starting="latest", rows=200, source=KAFKA, **plan):
    """A query that had read up to 6000 when it ended; the first batch of the next run ends at an offset."""
    view = history(source=source, plan={"starting_offsets": starting} | plan)
    last = view.history.batches[-1]
    [read] = last.sources
    read = replace(read, start={}, end=dict.fromkeys(read.end, began), latest=dict.fromkeys(read.end, began), rows=rows)
    started = {"query_id": query_id, "run_id": "run-2", "batch_id": first, "started": last.ended + 60}
    view.history.add(replace(last, **started, rows=rows, sources=(read,)))
    view.history.plan = replace(view.history.plan, run_id="run-2")
    return QueryView(view.history, view.history.last.ended)


def test_a_run_that_began_with_a_new_checkpoint_at_the_latest_offsets_is_told_what_it_passed_over(history):
    [finding] = RULE.check(restarted(history))
    assert finding.summary == (
        "the query began with a new checkpoint, at the latest offsets: 2,800 offsets that came since the end of the "
        "run before are not read"
    )
    assert told_by(finding) == {"offsets_passed_over": 2800}


@cases(
    "case, again",
    ("begins at the earliest offsets, and reads all of them", {"began": 6000, "rows": 6000}, 6000),
    ("reads only as much as its limit", {"began": 500, "rows": 500}, 6000),
    ("begins somewhere before the end", {"began": 6100, "rows": 300}, 200),
)
def test_a_run_that_began_with_a_new_checkpoint_is_told_what_it_reads_again(history, case, again):
    [finding] = RULE.check(restarted(history, starting="earliest", **case))
    assert finding.summary == (
        f"the query began with a new checkpoint, {again:,} offsets that the run before had read are read again"
    )
    assert told_by(finding) == {"offsets_read_again": again}


@cases(
    "case",
    ("went on with its checkpoint", {"query_id": "id-1", "first": 6}),
    ("began at the earliest offsets", {"starting": "earliest"}),
    ("began where the run before had ended", {"began": 6000, "rows": 0}),
    ("read all that came meanwhile", {"rows": 3000}),
    ("reads another kind of source", {"source": "Other[orders]"}),
    ("writes nowhere", {"sink": "NoopTable"}),
)
def test_a_restart_is_nothing_to_tell_where_it(history, case):
    assert list(RULE.check(restarted(history, **case))) == []


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
