"""A job of the ledger, on rows of its own generator."""

import time
from pathlib import Path

import outside

from ledgerops.ledger.jobs import find_job
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.sources.tables import open_source

spark, opts = outside.application("ledger")
job = find_job("daily_counts")
plan = parse_plan(Path("plan.yaml").read_text("utf-8"), "plan.yaml")
rows = open_source(
    spark, "transactions", plan=plan, work_dir=Path("work"), origin=time.time(), max_rows_per_trigger=opts.cap or None
)
result = job.transform(rows)


def begin():
    writer = result.writeStream.outputMode(job.output_mode).foreachBatch(outside.deliver)
    return outside.start(writer, opts)


outside.serve(spark, opts, begin)
