"""Where a run writes: Parquet in its own folder, Kafka's topics, or the tables of a Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ledgerops.common.kafka import reach

if TYPE_CHECKING:
    from ledgerops.common.kafka import KafkaClient
    from ledgerops.ledger.jobs.job import Job
    from ledgerops.ledger.run.run_dir import RunDir
    from ledgerops.ledger.sinks import Sink

SinkKind = Literal["parquet", "kafka", "postgres"]
ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RunSink:
    """One kind of sink for all jobs of a run. `url` may hold a password, which is never shown."""

    kind: SinkKind = "parquet"
    client: KafkaClient | None = None
    prefix: str = ""  # before the name of every topic
    url: str = field(default="", repr=False)

    @property
    def target(self) -> str:
        """What distinguishes one destination from another; empty for a folder of the run itself."""
        if self.kind == "kafka":
            assert self.client is not None
            return " ".join(filter(None, (self.client.servers, self.prefix)))
        if self.kind == "postgres":
            from ledgerops.ledger.sinks import PostgresSink

            return str(PostgresSink(self.url))
        return ""

    def for_job(self, job: Job, folder: RunDir) -> Sink:
        """The sink for one job. Parquet files go to the job's own folder under `folder.outputs`."""
        from ledgerops.ledger.sinks import KafkaSink, ParquetSink, PostgresSink

        if self.kind == "kafka":
            assert self.client is not None
            return KafkaSink(self.client, self.prefix)
        return PostgresSink(self.url) if self.kind == "postgres" else ParquetSink(folder.outputs / job.name)

    def check(self, jobs: Sequence[Job], folder: RunDir) -> None:
        """Asks the destination once. Raises UserError when it does not answer or refuses us."""
        if self.kind == "kafka":
            assert self.client is not None
            reach(self.client, ANSWER_SECONDS)
        elif self.kind == "postgres":
            for job in jobs[:1]:
                self.for_job(job, folder).last_batch(job, folder.checkpoints / job.name)

    def describe(self, folder: str) -> str:
        """For a reader of the summary; `folder` is how the run's output folder is written."""
        return f"{folder}/JOB (Parquet)" if self.kind == "parquet" else f"{self.kind} {self.target}"
