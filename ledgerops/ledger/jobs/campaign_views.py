"""Campaign views: how often the ads of each campaign were seen in ten seconds, the Yahoo streaming benchmark.

Reads `ad_events`, keeps those of type view, joins the ad's campaign from a static table and writes one row for each
campaign and window once the watermark has passed the window's end: the views and `updated_at`, the time of the batch
that wrote the row. What updated_at is after window_end is the benchmark's latency. An ad without a campaign is dropped.
The original writes every open window to Redis again each second, so that a count grows under the reader's eyes; here
a window is written once, when it is closed, because rows that are never taken back can be written to files exactly
once. It is later by the lateness, in return.
State: one row for each campaign and open window, a hundred for every ten seconds of the lateness. The table of
campaigns is part of the plan.
Watermark: the largest event time of views seen, less the lateness; views of a window that has been closed are dropped.
The last windows stay in state until newer views arrive.
Restart: open windows come back with the checkpoint; a window is written once, and a batch that is repeated has the
time that it had.
Upgrade: the lateness and the campaigns may change at a restart; the window, the key and the aggregates may not (begin
with a new checkpoint and output).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import LATENESS, Job
from ledgerops.ledger.sources.ads import campaigns

WINDOW = "10 seconds"


def transform(ad_events: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Ad events in; window_start, window_end, campaign_id, views (count) and updated_at out."""
    return (
        ad_events.where(F.col("event_type") == "view")
        .select("ad_id", "event_time")
        .withWatermark("event_time", lateness)
        .join(F.broadcast(campaigns(ad_events.sparkSession)), "ad_id")
        .groupBy(F.window("event_time", WINDOW), "campaign_id")
        .agg(F.count("*").alias("views"))
        .withColumn("updated_at", F.current_timestamp())
        .selectExpr("window.start AS window_start", "window.end AS window_end", "campaign_id", "views", "updated_at")
    )


JOB = Job(
    name="campaign_views",
    group="benchmark",
    summary=f"Views of each campaign's ads in {WINDOW}: the Yahoo streaming benchmark.",
    transform=transform,
    stateful=True,
    inputs=("ad_events",),
    key="campaign_id",
    lateness=LATENESS,
)
