"""Where a run writes: Parquet or Delta tables in its own folder, Kafka's topics, or the tables of a Postgres."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.run.run_dir import RunDir
from ledgerops.ledger.sinks import DeltaSink, KafkaSink, ParquetSink, PostgresSink, Sink, delta
from ledgerops.ledger.sinks.delta import check_appends

SinkKind = Literal["parquet", "delta", "kafka", "postgres"]
ANSWER_SECONDS = 10.0
# with Delta tables a job reads the table of another one where that runs, too: silver from bronze, gold from silver
UPSTREAM = {"masked_transactions": "landed_transactions", "daily_counts": "masked_transactions"}


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
            return str(PostgresSink(self.url))
        return ""

    def for_job(self, job: Job, folder: RunDir) -> Sink:
        """The sink for one job. Files and tables go to the job's own folder under `folder.outputs`."""
        if self.kind == "kafka":
            assert self.client is not None
            return KafkaSink(self.client, self.prefix)
        if self.kind == "delta":
            return DeltaSink(folder.outputs / job.name)
        return PostgresSink(self.url) if self.kind == "postgres" else ParquetSink(folder.outputs / job.name)

    def check(self, jobs: Sequence[Job], folder: RunDir) -> None:
        """Asks the destination once. Raises UserError when it does not answer or refuses us."""
        if self.kind == "kafka":
            assert self.client is not None
            reach(self.client, ANSWER_SECONDS)
        elif self.kind == "postgres":
            for job in jobs[:1]:
                self.for_job(job, folder).last_batch(job, folder.checkpoints / job.name)
        elif self.kind == "delta":
            for job in jobs:
                check_appends(job)

    @property
    def conf(self) -> dict[str, str]:
        """What it needs of the session."""
        return delta.CONF if self.kind == "delta" else {}

    def upstream(self, jobs: Sequence[Job]) -> dict[str, str]:
        """By name, the jobs that read the table of another one of these jobs."""
        names = {job.name for job in jobs} if self.kind == "delta" else set()
        return {name: table for name, table in UPSTREAM.items() if {name, table} <= names}

    def describe(self, folder: str) -> str:
        """For a reader of the summary; `folder` is how the run's output folder is written."""
        here = {"parquet": "Parquet", "delta": "Delta"}.get(self.kind)
        return f"{folder}/JOB ({here})" if here else f"{self.kind} {self.target}"
