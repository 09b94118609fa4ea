"""Data loss: rows were deleted before the query had read them.

Meaning: the offset from which the query goes on is older than the oldest that the topic still has, or the query failed
    because it found that out itself (`failOnDataLoss`). What lies between is gone from the topic.
Impact: the rows are in no output, now or later. With `failOnDataLoss` = false the query goes on without a word.
Diagnosis: `ledgerops_retention_headroom_seconds{query="QUERY"}` is 0 for the partition. The finding names topic,
    partition and gap. Ask why the query was so far behind: `ledgerops_source_lag_seconds{query="QUERY"}` before it.
Mitigation: read the missing rows again from where else they are (the producer's own store, a mirror, an archive), with
    a query or a load of its own. To let a query that failed go on, start it with `failOnDataLoss` = false once, and
    back to true after that; a new checkpoint would lose the state, too. Give the topic a larger retention.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ledgerops.diagnosis.model import Component, Evidence, Finding, Remedy, Rule
from ledgerops.metrics.pressure import HEADROOM
from ledgerops.records import Partition
from ledgerops.view import View

TOLD = re.compile(r"failOnDataLoss|KAFKA_DATA_LOSS|OffsetOutOfRange|data (may|might) have been (lost|missed)")
PARTITION = re.compile(r"(?:partition|TopicPartition:?|for)\s+([\w.-]+)-(\d+)\b", re.IGNORECASE)
GAPS = (
    re.compile(r"was changed from (\d+) to (\d+)"),
    re.compile(r"was (\d+) but consumer reset to (\d+)"),
    re.compile(r"in range \[(\d+), ?(\d+)\)"),
    re.compile(r"offsets? (?:in )?\[?(\d+), ?(\d+)\)"),
)
LINGER = 600.0  # seconds; the query may go on at once, but what is lost stays lost


class Gap(NamedTuple):
    partition: Partition
    offsets: int


def check(view: View) -> Iterator[Finding]:
    gaps = _gaps(view)
    ended = view.history.ended
    told = ended.exception if ended is not None and ended.exception and TOLD.search(ended.exception) else None
    if told is not None and ended is not None:
        yield _finding(view, gaps or _told_gaps(told), ended.at, failed=True)
    elif gaps and view.heads is not None:
        yield _finding(view, gaps, view.heads.at, failed=False)


def _gaps(view: View) -> list[Gap]:
    """What is missing by the broker's own word, the largest first."""
    heads = view.heads
    if heads is None:
        return []
    found = [
        Gap(partition, heads.earliest[partition] - end)
        for partition, end in view.consumed.items()
        if end < heads.earliest.get(partition, 0)
    ]
    return sorted(found, key=lambda gap: -gap.offsets)


def _told_gaps(exception: str) -> list[Gap]:
    """What the exception tells of the first partition that it met."""
    where = PARTITION.search(exception)
    if where is None:
        return []
    sizes = [abs(int(match[2]) - int(match[1])) for gap in GAPS if (match := gap.search(exception)) is not None]
    return [Gap((where[1], where[2]), sizes[0] if sizes else 0)]


def _finding(view: View, gaps: list[Gap], at: float, failed: bool) -> Finding:
    evidence = []
    if gaps:
        topic, partition = gaps[0].partition
        size = f"{gaps[0].offsets:,} offsets" if gaps[0].offsets else "offsets"
        more = f", and {sum(gap.offsets for gap in gaps[1:]):,} of {len(gaps) - 1} more partitions" * (len(gaps) > 1)
        what = f"{size} of partition {partition} of {topic}{more} were deleted before the query had read them"
        component = Component("partition", f"{topic}-{partition}", topic)
        if gaps[0].offsets:
            evidence.append(Evidence("offsets_lost", float(sum(gap.offsets for gap in gaps)), "offsets", "0", at))
    else:
        what = "offsets that the query had not read are gone from the source"
        component = Component(
            "source", ",".join(source.name for source in view.last.sources) if view.last else "source"
        )
    if failed:
        failures = float(max(1, sum(view.history.failures.values())))
        evidence.append(Evidence("ledgerops_query_failures_total", failures, "count", "0", at))
        tail = "; the query failed of it"
    else:
        evidence.append(Evidence(HEADROOM.name, 0.0, "seconds", "> 0", at))
        tail = ""
    return Finding(
        what + tail,
        component,
        tuple(evidence),
        (
            Remedy("read the missing rows again from where else they are", "the topic does not have them any more"),
            Remedy(
                "start the query with failOnDataLoss = false once, to let it go on",
                "the checkpoint keeps the state; a new one would lose it, too",
                safe=False,
            )
            if failed
            else Remedy("give the topic a larger retention", "the next pause of the query would lose rows again"),
        ),
        confidence=0.95,
        began=at,
    )


RULE = Rule(
    slug="data-loss",
    severity="critical",
    check=check,
    runbook=__doc__,
    explains=("query-failed",),
    linger=LINGER,
    outlives=True,
    at_rest=True,
)
