from dataclasses import replace

import pytest

from ledgerops.diagnosis.engine import Diagnoser, _rank
from ledgerops.diagnosis.rules.data_loss import RULE
from ledgerops.model.records import FailedStatement, TableCommit
from tests.diagnosis.conftest import stage, told_by
from tests.diagnosis.rules.broker import asked
from tests.tables import cases

LOST = (
    "org.apache.spark.sql.kafka010.KafkaIllegalStateException: [KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data "
    "may have been lost because they are not available in Kafka any more; set failOnDataLoss to false. "
    "Reason: Starting offset for transactions-3 was 200 but consumer reset to 1200."
)
CHANGED = "Partition bank.tx-0's offset was changed from 10 to {}, some data may have been missed. "
UNREAD = "deleted before the query had read"
TWO = {"seconds": [1.0] * 2, "read": [[500, 500]] * 2, "warm": 0}


@cases(
    "case, said, lost, summary",
    ("seen", {"running": 20}, ([9000], [6500]), 500, f"500 offsets of partition 0 of transactions were {UNREAD} them"),
    (
        "several partitions are added up",
        TWO,
        ([3000, 3000], [1100, 2500]),
        1600,
        f"1,500 offsets of partition 1 of transactions and 100 of 1 more partition were {UNREAD} them",
    ),
)
def test_an_offset_that_is_gone_before_it_was_read_is_found(history, case, said, lost, summary):
    [finding] = RULE.check(asked(history(**case), *said))
    assert finding.summary == summary
    assert finding.component.name == ("transactions-1" if len(said[0]) > 1 else "transactions-0")
    assert told_by(finding)["offsets_lost"] == lost


@cases(
    "exception, summary",
    ("Spark 4", LOST, f"1,000 offsets of partition 3 of transactions were {UNREAD} them"),
    ("Spark 3.5", CHANGED.format(25), f"15 offsets of partition 0 of bank.tx were {UNREAD} them"),
    ("a single offset", CHANGED.format(11), f"1 offset of partition 0 of bank.tx was {UNREAD} it"),
    ("no number", "see failOnDataLoss", "the source has deleted offsets that the query had not read"),
)
def test_a_query_that_failed_of_it_tells_the_gap(history, exception, summary):
    [finding] = RULE.check(history(exception=exception))
    assert finding.summary == f"{summary}; the query failed because of it"


@pytest.mark.parametrize("later", [0, 5000])
def test_it_is_the_root_of_the_failure_and_is_told_long_after_it(history, later):
    view = history(exception=LOST, error_class="STREAM_FAILED")
    [root] = Diagnoser()(view.at(view.now + later)).root_causes
    assert (root.rule, root.severity, root.explains) == ("data-loss", "critical", ("query-failed",))


def test_it_is_told_for_some_minutes_after_the_query_went_on(history):
    judge, lost = Diagnoser(), asked(history(running=20), [9000], [6500])
    views = (lost, asked(lost.at(lost.now + 300), [9000], [5000]), lost.at(lost.now + 900))
    found = ["data-loss" in [finding.rule for finding in judge(view).findings] for view in views]
    assert found == [True, True, False]


@cases(
    "case, said",
    ("healthy", {}, {"latest": [6000], "earliest": [0]}),
    ("idle, and all was deleted after it", {"idle": True}, {"latest": [6000], "earliest": [6000]}),
    ("behind, but nothing is lost", {"running": 500}, {"latest": [90_000], "earliest": [6000]}),
    ("no batch yet: from the earliest offset", {"warm": 0}, {"latest": [6000], "earliest": [5000]}),
    ("failed of something else", {"exception": "java.lang.ArithmeticException: / by zero"}, None),
    ("stopped", {"stopped": True}, None),
    ("no answer", {}, {"latest": [6000], "error": "Connection refused", "silent_for": 30.0}),
    ("a first backlog", {"warm": 0, "seconds": [9.0], "backlog": [5000]}, {"latest": [9000], "earliest": [500]}),
)
def test_others_are_not(history, case, said):
    view = history(**case)
    assert list(RULE.check(asked(view, **said) if said else view)) == []


def passed_over(view, rows, batch=-1):
    """The view in which a batch read so many rows of the offsets that it went over."""
    known = view.history.batches[batch]
    [source] = known.sources
    view.history.batches[batch] = replace(known, rows=rows, sources=(replace(source, rows=rows),))
    return view.at(view.now)


@cases(
    "case, rows, said, lost",
    ("at the offsets of the batch before", {}, 400, ([7500], [6600]), (600, 6, 1000)),
    ("after a pause, by the broker's word", {"rows": 9000, "warm": 0}, 1000, ([9000], [8000]), (8000, 0, 9000)),
)
def test_a_batch_that_went_over_offsets_that_were_gone_is_found(history, case, rows, said, lost):
    [finding] = RULE.check(asked(passed_over(history(seconds=[1.0], **case), rows), *said, later=1))

    offsets, number, read = lost
    assert finding.summary == (
        f"{offsets:,} offsets of partition 0 of transactions were deleted before batch {number} could read them; the "
        "query continued without them"
    )
    assert finding.component.name == "transactions-0"
    assert told_by(finding) == {"offsets_lost": offsets, "batch_rows": rows, "batch_offsets": read}


def test_it_is_still_seen_some_batches_later(history):
    view = asked(passed_over(history(seconds=[1.0]), rows=400), [7500], [6600], later=1)
    for batch in history(seconds=[1.0] * 4).batches[-3:]:
        view.history.add(batch)
    assert list(RULE.check(view.at(view.now + 6)))


def taken_at_will(view):
    return passed_over(passed_over(view, 300, batch=-4), 400)


def transactional(view):
    """Each batch with half as many rows, for commit markers take the other offsets."""
    for place, batch in enumerate(view.history.batches):
        view = passed_over(view, round(batch.rows / 2), batch=place)
    return view


@cases(
    "change, said",
    ("few rows, and nobody asks the broker", lambda view: passed_over(view, 400), None),
    ("few rows, but the topic has all offsets", lambda view: passed_over(view, 400), ([9500], [0])),
    ("a topic with transactions: markers take offsets", transactional, None),
    ("such a topic, from which read rows were just deleted", transactional, ([9500], [8200])),
    ("next to nothing is missing", lambda view: passed_over(view, 995), ([9500], [8900])),
    ("rows deleted after they were read", lambda view: passed_over(view, 1000), ([9500], [8900])),
    ("a topic that is read twice", lambda view: passed_over(view, 2000), ([9500], [8900])),
    ("long before the broker was asked", lambda view: passed_over(view, 400, batch=-4), ([9500], [5900])),
    ("batches of which the sink takes as many rows as it likes", taken_at_will, ([9500], [8500])),
)
def test_fewer_rows_than_offsets_need_not_be_a_loss(history, change, said):
    view = change(history(seconds=[1.0], warm=8))
    assert list(RULE.check(asked(view, *said, later=1) if said else view)) == []


def skipping(history, files=1, skipped=3, ago=60.0, rows=0, sink="FileSink[file:/out]", **more):
    """The view of a run of which the log of the output had the first batches before it began."""
    view = history(**{"seconds": [0.3] * 3, "rows": 0, "per_offset": 1, "warm": 0, "plan": {"sink": sink}} | more)
    for batch in list(view.history.batches):
        [source] = batch.sources
        moved = replace(source, start={("t", "0"): batch.batch_id}, end={("t", "0"): batch.batch_id + 1})
        view.history.batches[batch.batch_id] = replace(batch, rows=rows, sources=(moved,))
    at = view.history.started_at - ago
    view.history.commits.extend(TableCommit(number, at, number, None, files, 100) for number in range(skipped))
    return view.at(view.now)


def test_batches_that_a_file_sink_skips_are_lost(history):
    [finding] = RULE.check(skipping(history))
    assert finding.summary == (
        "the sink skipped 3 batches, 0 to 2: the log of its output folder already had these numbers, of another "
        "checkpoint; what they read was not written"
    )
    assert (finding.component.name, told_by(finding)) == ("FileSink", {"skipped_batches": 3.0})
    late = replace(finding, rule="rate-limited", explains=("falling-behind",), share=0.9)
    assert sorted((late, finding), key=_rank)[0] is finding
    assert [each.action.split(",")[0] for each in finding.remedies] == [
        "stop the query",
        "give the query an output folder of its own and a new checkpoint",
    ]


def test_batches_before_the_newest_of_another_checkpoint_are_lost_though_their_own_entries_are_deleted(history):
    view = skipping(history, skipped=0)
    view.history.commits.append(TableCommit(999, view.history.started_at - 86_400, 999, None, 1, 100))
    [finding] = RULE.check(view.at(view.now))
    assert told_by(finding) == {"skipped_batches": 3.0}


def test_a_sink_that_has_come_to_the_end_of_the_old_log_writes_again(history):
    view = skipping(history, seconds=[0.3] * 5)
    for batch in list(view.history.batches)[3:]:
        view.history.batches[batch.batch_id] = replace(batch, rows=50)
    [finding] = RULE.check(view.at(view.now))
    assert finding.summary.endswith("; what they read was not written; it has written again since batch 3")
    assert [each.action for each in finding.remedies] == [
        "read what the skipped batches read again, with a query that has its own folder"
    ]


@cases(
    "case",
    ("one is repeated after a restart", {"skipped": 1}),
    ("the run wrote them itself", {"ago": -1.0}),
    ("they have rows", {"rows": 50}),
    ("an entry without files has no time", {"files": 0, "ago": 1e9}),
    ("a table, which knows whose batches it has", {"sink": "DeltaSink[file:/out]"}),
)
def test_batches_without_rows_need_not_be_skipped(history, case):
    assert list(RULE.check(skipping(history, **case))) == []


FULL = FailedStatement(0.2, 0.3, "[USER_RAISED_EXCEPTION] table full")


def hiding(history, failed=(FULL,), stages=(), whole=True, moved=1, of=3, sink="ForeachBatchSink"):
    """The view of three batches whose tasks are known, of which the newest `of` failed with what their function ran."""
    view = history(seconds=[0.3] * 3, rows=0, warm=0, stages=[stage()], plan={"sink": sink})
    for place, batch in enumerate(view.history.batches):
        [source] = batch.sources
        read = replace(source, start={("t", "0"): 5}, end={("t", "0"): 5 + moved})
        view.history.batches[place] = replace(batch, sources=(read,))
    for place in range(3 - of, 3):
        told = view.history.tasks[place]
        view.history.tasks[place] = replace(told, failed=tuple(failed), stages=tuple(stages), whole=whole)
    return view.at(view.now)


def test_batches_whose_function_hides_that_nothing_was_written_are_lost(history):
    [finding] = RULE.check(hiding(history))
    assert finding.summary == (
        "nothing was written of 3 batches that were looked at, 0 to 2: all that the function of foreachBatch ran "
        "failed, and it went on: [USER_RAISED_EXCEPTION] table full"
    )
    assert told_by(finding) == {"unwritten_batches": 3.0}
    assert [each.action.split(" ")[0] for each in finding.remedies] == ["stop", "let"]


@cases(
    "case",
    ("another statement was done", {"stages": [stage()]}),
    ("not all that ran is known", {"whole": False}),
    ("nothing failed", {"failed": []}),
    ("there was nothing to read", {"moved": 0}),
    ("the function may keep one for the next", {"of": 1}),
    ("no function that could hide it", {"sink": "DeltaSink[file:/out]"}),
)
def test_a_statement_that_failed_need_not_be_a_loss(history, case):
    assert list(RULE.check(hiding(history, **case))) == []


def test_a_partition_whose_beginning_the_broker_did_not_tell_is_not_counted(history):
    """A recording may hold offsets below zero."""
    view = asked(history(**TWO), [3000, 3000], [0, 0])
    view.history.heads[-1] = replace(view.history.heads[-1], earliest={})
    view.lag.consumed = dict.fromkeys(view.lag.consumed, -5)
    assert list(RULE.check(view)) == []


def test_versions_of_a_table_that_are_gone_are_no_offsets_of_a_topic(history):
    gone = (
        "[DELTA_MISSING_FILES_UNEXPECTED_VERSION] The stream from your Delta table was expecting process data from "
        'version 9, but the earliest available version is 12; set .option("failOnDataLoss", "false")'
    )
    assert list(RULE.check(history(exception=gone))) == []


BACK = (
    "SparkException: [KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED] Some data may have been lost; set failOnDataLoss to "
    "false. Reason: Partition transactions-3 offset was changed from 2000 to 50."
)


def rewinds(view, batch=-1):
    """The view in which the topic ended at offset 40 when a batch began."""
    known = view.history.batches[batch]
    [source] = known.sources
    (partition,) = source.end
    view.history.batches[batch] = replace(known, rows=0, sources=(replace(source, rows=0, end={partition: 40}),))
    return view.at(view.now)


@cases(
    "make, partition, before, after, then, second",
    ("a query that failed", lambda history: history(exception=BACK), 3, 2000, 50, "failed because of it", "false"),
    (
        "a query that continued",
        lambda history: rewinds(history(source="KafkaV2[Subscribe[transactions]]")),
        *(0, 5000, 40, "continued from there", "true"),
    ),
)
def test_offsets_that_went_back_are_those_of_a_topic_that_was_created_again(
    history, make, partition, before, after, then, second
):
    [root] = Diagnoser()(make(history)).root_causes
    assert (root.rule, root.summary) == (
        "data-loss",
        f"partition {partition} of transactions went back from offset {before:,} to {after}: the topic was deleted and "
        f"created again, or its brokers lost records; the query {then}",
    )
    assert told_by(root)["end_offset"] == after
    first, later = (each.action for each in root.remedies)
    assert first.startswith("find out who created transactions again") and f"failOnDataLoss = {second}" in later


@cases(
    "ids, earliest, unread",
    ("another topic", ("old", "new"), 0, 5500),
    ("another topic that begins where the old one ended", ("old", "new"), 5500, None),
    ("the same topic", ("old", "old"), 0, None),
    ("a broker that tells no ids any more", ("old", None), 0, None),
)
def test_a_topic_that_was_created_again_with_more_records_is_told_by_its_id(history, ids, earliest, unread):
    view = history(source="KafkaV2[Subscribe[transactions]]")
    [*_, before, last] = view.history.batches
    [source] = last.sources
    (partition,) = source.end
    view.history.batches[-1] = replace(last, sources=(replace(source, start={partition: 5500}),))
    known = asked(view, [6000], [0], before.ended - view.now, topic_id=ids[0])
    diagnosis = Diagnoser()(asked(known, [9000], [earliest], view.now - known.now, topic_id=ids[1]))
    found = [each for each in diagnosis.root_causes if each.rule == "data-loss"]
    assert [told_by(each) for each in found] == ([{"offsets_unread": unread}] if unread else [])
    for each in found:
        assert each.summary == (
            "transactions was deleted and created again: the query continued at offset 5,500 of the new partition 0 "
            "and never reads those before it"
        )
        assert each.remedies[0].action.startswith("find out who created transactions again")


OUT_OF_RANGE = (
    "KafkaIllegalStateException: Some data may have been lost; set failOnDataLoss to false. Reason: Could not read "
    "records in offset [6000, 6100) for topic partition transactions-0"
)


def failed(history, **said):
    """A query of which the broker was asked at its end, and last told that the topic keeps records for `keeps`."""
    return asked(history(exception=OUT_OF_RANGE), **said)


def test_a_broker_that_ends_before_what_was_read_tells_of_a_topic_that_was_created_again(history):
    [root] = Diagnoser()(failed(history, latest=[164], earliest=[0])).root_causes
    assert root.summary.startswith("partition 0 of transactions went back from offset ")
    assert root.summary.endswith("the query failed because of it") and told_by(root)["end_offset"] == 164
    assert root.remedies[0].action.startswith("find out who created transactions again")


@cases(
    "said, soon",
    ("younger than the retention", {"keeps": 3600.0}, True),
    ("older", {"keeps": 0.1}, False),
    ("never deleted by age, or not known", {"keeps": None}, False),
)
def test_what_is_gone_before_its_retention_was_not_deleted_by_it(history, said, soon):
    [root] = Diagnoser()(failed(history, latest=[9000], earliest=[0], **said)).root_causes
    step = "find out whether transactions was created again" if soon else "raise the retention of transactions"
    assert ("sooner than the topic deletes by age" in root.summary) == soon
    assert root.remedies[0].action.startswith(step)


def test_a_query_that_had_left_rows_unread_may_have_lost_old_ones(history):
    behind = history(exception=OUT_OF_RANGE, seconds=[1.0] * 3, backlog=[500] * 3)
    [root] = Diagnoser()(asked(behind, [9000], [0], keeps=3600.0)).root_causes
    assert root.remedies[0].action.startswith("raise the retention of transactions")


def test_positions_of_another_source_that_go_back_are_no_loss(history):
    assert list(RULE.check(rewinds(history(source="Other[orders]")))) == []


@cases(
    "deleted",
    (
        "Spark 4",
        "SparkException: [KAFKA_DATA_LOSS.PARTITIONS_DELETED] Some data may have been lost; failOnDataLoss. "
        "Reason: Partitions Set(transactions-0, transactions-1) have been deleted.",
    ),
    (
        "Spark 3.5",
        "IllegalStateException: Set(transactions-1) are gone. Some data may have been missed. Some data may have been "
        'lost because they are not available in Kafka any more; set the source option "failOnDataLoss" to "false".',
    ),
)
def test_partitions_that_are_deleted_with_their_topic_are_told_by_the_failure(history, deleted):
    [root] = Diagnoser()(history(exception=deleted)).root_causes
    assert root.rule == "query-failed"
    assert root.remedies[0].action.startswith("find out who created the topic again")
