"""The row of the State page about what state stores do at a start and after damage, and the HDFS-backed store."""

from __future__ import annotations

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import Panel, Row, Target, by, over, pace, q, rate

HITS = by("sum", "query", rate(q("ledgerops_hdfs_state_cache_hits_total")))
MISSES = by("sum", "query", rate(q("ledgerops_hdfs_state_cache_misses_total")))

ROW = Row(
    "Loading and mending",
    (
        Panel(
            "Time to load state",
            (
                pace(q("ledgerops_rocksdb_load_seconds_total"), "{{query}} in all"),
                pace(q("ledgerops_rocksdb_load_snapshot_seconds_total"), "{{query}} from snapshots"),
                pace(q("ledgerops_rocksdb_replay_changelog_seconds_total"), "{{query}} replaying changelogs"),
            ),
            "s",
            "Task seconds in each second; a version is loaded at a start, and when a partition moves to another executor. Good: near 0 except after a start.",
            width=8,
        ),
        Panel(
            "Loads from the checkpoint",
            (
                pace(q("ledgerops_rocksdb_loads_from_dfs_total"), "{{query}} versions"),
                pace(q("ledgerops_rocksdb_changelog_files_replayed_total"), "{{query}} changelog files"),
            ),
            "ops",
            "Versions that no local file had, and changelog files replayed for them. Good: 0 except after a start.",
            width=8,
            waits="a version of Spark that counts them",
            drill="catch-up",
        ),
        Panel(
            "Snapshots forced or repaired",
            (
                pace(q("ledgerops_rocksdb_forced_snapshots_total"), "{{query}} forced"),
                pace(q("ledgerops_rocksdb_snapshots_repaired_total"), "{{query}} repaired"),
                pace(q("ledgerops_hdfs_state_forced_snapshots_total"), "{{query}} forced (HDFS-backed)"),
                pace(q("ledgerops_hdfs_state_snapshots_repaired_total"), "{{query}} repaired (HDFS-backed)"),
            ),
            "ops",
            "Snapshots outside the schedule, and broken ones that were passed over. Good: 0.",
            width=8,
            warn=thresholds.ANY,
            waits="a version of Spark that counts them",
            drill="catch-up",
        ),
        Panel(
            "HDFS-backed store",
            (Target(over(HITS, f"{HITS} + {MISSES}"), "{{query}} cache hits"),),
            "percentunit",
            "Share of versions that its cache has. Good: 100 % except after a start.",
            width=12,
            most=1.0,
            waits="a query with the HDFS-backed store",
            drill="growth-to-gc",
        ),
        Panel(
            "Memory of the HDFS-backed store",
            (Target(by("sum", "query", q("ledgerops_hdfs_state_current_version_bytes"))),),
            "bytes",
            "The newest version, without the cached ones before it. Good: a plateau.",
            width=12,
            waits="a query with the HDFS-backed store",
            drill="growth-to-gc",
        ),
    ),
)
