"""Source partition skew: one partition of the source gets most of the rows.

Meaning: by default one task reads each source partition. The task of the largest partition still runs when the others
    are done. A task reads several small files, but a file that gzip compressed cannot be divided among tasks.
Impact: the batch takes as long as its largest partition, and more cores do not help. The backlog of that partition
    grows while the others are up to date.
Diagnosis: 1. `topk(3, sum by (topic, partition) (ledgerops_source_backlog_offsets{app="APP",query="QUERY"}))` shows
    which partitions are behind. If all of them are, the load is too high: see `input-overload`.
    2. `ledgerops_skew_ratio{app="APP",query="QUERY",kind="source_partition"}` shows how uneven the rows of a batch are.
    Near 1 means that the producer is even again, and only the old backlog is left.
    3. Find out how the producer chooses the partition: by a key with few distinct values, or always the same one by
    mistake. Of files compare the sizes in the folder, and in the Spark UI, page "Stages", the tasks that read.
Mitigation: repair how the producer chooses the partition, then wait until the backlog of the partition is processed.
    Until then repartition after reading, if the work after reading takes long, or let Kafka's option `minPartitions`
    divide the partition among tasks. More partitions help only new rows, and only if their keys differ. Of files, let
    the producer write them of about equal size and in a format that can be divided, such as Parquet; several large ones
    in one task are spread by a lower `spark.sql.files.maxPartitionBytes`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.context import folder_of, source_kind, source_names
from ledgerops.diagnosis.limits import MOSTLY
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import REPARTITION, Component, Evidence, Remedy, Setting
from ledgerops.model.records import Partition, Progress
from ledgerops.signals.partitions import read_by_partition
from ledgerops.signals.query_view import QueryView

REPAIR = first_step("source-partition-skew", GENERAL, "by default one task reads a partition, however many cores")

COMPARE = first_step(
    "source-partition-skew",
    "files",
    "more cores do not help while one task reads most rows; several files of it are spread by a lower "
    "spark.sql.files.maxPartitionBytes",
)


class Heaviest(NamedTuple):
    """The partition that got most rows of its topic, in offsets, over the batches of the profile."""

    partition: Partition
    rows: int
    total: int
    partitions: int

    @property
    def share(self) -> float:
        """Of the topic's rows, 0 to 1."""
        return self.rows / self.total


def heaviest(batches: Sequence[Progress]) -> Heaviest | None:
    """Of all topics with several partitions; None where nothing was read."""
    read = Counter[Partition]()
    for batch in batches:
        read.update(read_by_partition(batch))
    found = []
    for topic in {topic for topic, _ in read}:
        own = {partition: rows for partition, rows in read.items() if partition[0] == topic}
        most = max(own, key=lambda partition: own[partition])
        if len(own) > 1 and own[most] > 0:
            found.append(Heaviest(most, own[most], sum(own.values()), len(own)))
    return max(found, key=lambda each: each.share, default=None)


def _tell(view: QueryView, found: Profile) -> Told | None:
    worst, cores = heaviest([split.batch for split in found.splits]), view.cluster.cores
    apart = Remedy(
        f"repartition the rows after reading{f' into {cores} tasks' if cores else ''}",
        "spreads the work after reading, at the cost of a shuffle",
        safe=False,
        settings=(Setting(REPARTITION, cores),),
    )
    if worst is None and source_kind(view) in ("files", "table"):
        return _file(view, found, apart)
    if worst is None or worst.share < MOSTLY:
        return None
    (topic, number), even = worst.partition, worst.total / worst.partitions
    divided = Remedy(
        f"or set minPartitions to {max(2 * (cores or 1), worst.partitions + 1)}",
        "Spark then divides a large partition of Kafka among tasks; the checkpoint stays",
        safe=False,
    )
    who = f"partition {number} of {topic} got {worst.share:.0%} of {worst.total:,} rows; an even share would be "
    return Told(
        Component("partition", f"{topic}-{number}", topic),
        (REPAIR, apart, *([divided] if source_kind(view) == "kafka" else [])),
        {"who": f"{who}{1 / worst.partitions:.0%}"},
        (
            Evidence("partition_rows", float(worst.rows), "offsets", f"~ {even:,.0f}", found.at),
            Evidence("partition_share", worst.share, "ratio", f"< {MOSTLY:g}", found.at),
        ),
    )


def _file(view: QueryView, found: Profile, apart: Remedy) -> Told | None:
    """Files have no partitions that are known: the task with most rows tells."""
    stages = [stage for split in found.splits if (stage := split.worst("uneven_source")) is not None]
    stage = max(stages, key=lambda each: each.records, default=None)
    if stage is None or stage.records_max < MOSTLY * stage.records:
        return None
    share, name = stage.records_max / stage.records, source_names(view)
    rows = f"{stage.records:,} rows of {name}{folder_of(view, name)}"
    return Told(
        Component("source", name, "files"),
        (COMPARE, apart),
        {"who": f"a task read {share:.0%} of {rows}; an even share is {1 / stage.tasks:.0%}"},
        (
            Evidence("task_rows", stage.records_max, "rows", f"~ {stage.records / stage.tasks:,.0f}", found.at),
            Evidence("task_share", share, "ratio", f"< {MOSTLY:g}", found.at),
        ),
    )


CAUSE = Cause(
    slug="source-partition-skew",
    runbook=__doc__,
    parts=("uneven_source",),
    happened="{who}, which costs {seconds} of a batch of {batch}",
    formulas={
        "partition_rows": "endOffset - startOffset of the partition, over the batches",
        "partition_share": "that divided by the same of all partitions of its topic",
        "task_rows": "of files: rows of the task with most, in the uneven stage of the batches that has most rows",
        "task_share": "that divided by the rows of all tasks of its stage",
    },
    tell=_tell,
)
