"""No checkpoint: the query has no checkpoint location, so a restart does not go on where it ended.

Meaning: neither the query nor the session names a checkpoint location, and Spark made a temporary one. No later run
    finds it. Queries that write to memory or nowhere are not reported: nothing of them outlives the driver either. Or
    each start has another checkpoint location: the newest began beyond the offsets at which the run before had ended,
    or before them.
Impact: none while the query runs. A restart begins anew: a Kafka source with `startingOffsets` = latest skips the rows
    that came meanwhile, any other source is read from its beginning again, so results are repeated. State is lost.
Diagnosis: 1. Read in the finding what a restart will do. `ledgerops_query_restarts_total{app="APP",query="QUERY"}`
    shows whether it has happened already.
    2. Check that nothing else remembers the position, such as a sink that is written idempotently by batch number: the
    numbers start at 0 again, too.
    3. Look for `spark.sql.streaming.checkpointLocation` in the settings of the session that you meant to set.
Mitigation: set the option `checkpointLocation` of the query to a folder that survives the driver, one for each query,
    and start it again once. Choose the moment: this start still begins anew.
Evidence:
    temporary_checkpoint: 1 where the newest plan record has `temporary_checkpoint` = true.
    offsets_passed_over: endOffset of the first batch of the newest query id - that of the last batch of the id before,
        over the partitions of the sources that have none but these - numInputRows of these sources in that first batch
    offsets_read_again: the same where it is below 0, without its sign
"""

from collections.abc import Iterator
from itertools import pairwise

from ledgerops.common.format import counted
from ledgerops.diagnosis.facts.context import sink_kind
from ledgerops.diagnosis.rule import LIKELY, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress
from ledgerops.signals.partitions import lowest_offsets
from ledgerops.signals.query_view import QueryView

REPEATS = "a restart reads its sources from the beginning again"
AFTER_RESTART = {  # by startingOffsets
    "latest": "a restart skips the rows that arrive until it has started (startingOffsets is latest)",
    "given": "a restart reads the topics from the offsets or times given in its options again",
    "earliest": "a restart reads the topics from the beginning again (startingOffsets is earliest)",
}


def check(view: QueryView) -> Iterator[Finding]:
    plan = view.plan
    if sink_kind(view) == "none":
        return
    if not plan.temporary_checkpoint:
        yield from _another(view)
        return
    yield Finding(
        f"the query has no checkpoint location: {AFTER_RESTART.get(plan.starting_offsets or '', REPEATS)}",
        Component("query", view.query, "checkpoint"),
        (Evidence("temporary_checkpoint", 1.0, "count", "0", view.now),),
        (
            first_step("no-checkpoint", GENERAL, "the first start with a checkpoint does not know what was read"),
            Remedy(
                "set the option checkpointLocation to a folder that survives the driver",
                "a restart then goes on with the next batch and keeps the state",
                safe=False,
            ),
        ),
        confidence=1.0,
    )


def _another(view: QueryView) -> Iterator[Finding]:
    """What came between two runs and is not read, or was read and is again, where the newer began with a checkpoint of
    its own."""
    batches = view.history.batches if view.history.former else ()
    new = [pair for pair in pairwise(batches) if pair[0].query_id != pair[1].query_id and pair[1].batch_id == 0]
    if not new:
        return
    before, first = new[-1]
    ends = lowest_offsets(source.end for source in before.sources)
    read = [source for source in first.sources if source.kind == "kafka" and source.end.keys() <= ends.keys()]
    ahead = sum(end - ends[partition] for source in read for partition, end in source.end.items())
    beyond = ahead - sum(source.rows for source in read)
    if beyond < 0:
        again = Evidence("offsets_read_again", float(-beyond), "offsets", "0", first.ended)
        yield _begun(view, first, again, f"{counted(-beyond, 'offset')} that the run before had read are read again")
    elif beyond > 0 and view.plan.starting_offsets == "latest":
        over = Evidence("offsets_passed_over", float(beyond), "offsets", "0", first.ended)
        came = f"{counted(beyond, 'offset')} that came since the end of the run before are not read"
        yield _begun(view, first, over, f"at the latest offsets: {came}")


def _begun(view: QueryView, first: Progress, offsets: Evidence, what: str) -> Finding:
    return Finding(
        f"the query began with a new checkpoint, {what}",
        Component("query", view.query, "checkpoint"),
        (offsets,),
        (
            first_step(
                "no-checkpoint", GENERAL, "the checkpoint of the run before, where it is kept, knows what was read"
            ),
            Remedy(
                "start the query with the same checkpointLocation each time",
                "it then goes on where the run before ended",
                safe=False,
            ),
        ),
        confidence=LIKELY,
        began=first.started,
    )


RULE = Rule("no-checkpoint", "info", check, __doc__, at_rest=True)
