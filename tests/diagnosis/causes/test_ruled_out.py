"""What rules a cause out: the little that it takes of a batch, where that was measured."""

from ledgerops.diagnosis.cause import ruled_out
from ledgerops.diagnosis.causes import CAUSES
from tests.diagnosis.conftest import late, stage
from tests.tables import cases

BY_SLUG = {cause.slug: cause for cause in CAUSES}
LESS = [stage(records=[500] * 4, seconds=[0.2, 0.2, 0.2, 0.8])]
SLIGHTLY = [stage(records=[500, 500, 500, 900], seconds=[1.0, 1.0, 1.0, 1.8])]
WHALE = [stage(records=[100, 100, 100, 1700], seconds=[0.2, 0.2, 0.2, 3.4])]
COLLECTS, UDF = [stage(seconds=[3.4, 3.4], gc=0.02, cpu=0.4)], [stage("udf", seconds=[4.5, 4.5], cpu=0.1)]
COMPUTES, WAITS = [stage(seconds=[4.4, 4.4], began=0.1, cpu=1.0)], [stage(seconds=[4.4, 4.4], cpu=0.1)]
WORKS = [stage(records=[900, 900], seconds=[1.8, 1.8], began=0.1)]
OFFSETS = {"add_batch": 3.6, "wal_commit": 0.1, "commit_offsets": 0.1}
QUICK = {"latest_offset": 0.1}
PLANNED = {"warm": 0, "seconds": 2.1, "phases": {"add_batch": 2.0, "query_planning": 0.1}}
STALL = {"rows": 1000, "update_seconds": 6.0, "custom": {"rocksdbWriterStallLatencyMs": 0.0}}


def spilling(size):
    return [stage("map", wall=0.5), stage(began=0.5, records=[5000, 5000], seconds=[0.3, 0.3], spill=size)]


@cases(
    "slug, case, because",
    ("offsets", "checkpoint-slow", {"seconds": 4.0, "phases": OFFSETS}, "0.20 s of 4.0 s (5%)"),
    ("collection", "gc-pressure", {"seconds": 4.0, "stages": COLLECTS}, "0.07 s of 4.0 s (2%)"),
    ("a key", "key-skew", {"seconds": 4.0, "stages": SLIGHTLY, "cores": 4}, "0.60 s of 4.0 s (15%)"),
    ("a key, of unknown cores", "key-skew", {"seconds": 4.0, "stages": WHALE, "cores": None}, None),
    ("a spill", "memory-spill", {"seconds": 4.0, "stages": spilling(200 * 2**20)}, "0.30 s of 4.0 s (7%)"),
    ("no spill", "memory-spill", {"seconds": 4.0, "stages": spilling(0)}, None),
    ("workers", "python-bound", {"stages": UDF, "python": 0.8}, "0.40 s of 5.0 s (8%)"),
    ("no workers", "python-bound", {"stages": UDF}, None),
    ("no stall", "rocksdb-stall", {"seconds": 4.0, "stages": WAITS, "operators": STALL}, "0 s of 4.0 s (0%)"),
    ("a sink", "slow-sink", {"stages": COMPUTES}, "0.40 s of 5.0 s (8%)"),
    ("a sink, of unknown tasks", "slow-sink", {"stages": None}, None),
    ("a source", "slow-source", {"stages": None, "phases": QUICK}, "0.10 s of 5.0 s (2%)"),
    ("a plan", "small-batch-overhead", {**PLANNED, "stages": WORKS}, "0.20 s of 2.1 s (10%)"),
    ("state", "state-commit-slow", {"stages": WAITS, "operators": {"commit_seconds": 1.0}}, "0.50 s of 5.0 s (10%)"),
    ("no state", "state-commit-slow", {"stages": WAITS}, None),
    ("a task", "straggler", {"stages": LESS, "cores": 4}, "0.60 s of 5.0 s (12%)"),
    ("no failure", "task-retries", {}, "0 s of 5.0 s (0%)"),
    ("few tasks", "too-many-tasks", {}, "0 s of 5.0 s (0%)"),
)
def test_a_cause_is_ruled_out_by_what_it_takes(history, slug, case, because):
    assert ruled_out(BY_SLUG[slug], late(history, [stage()], **case)) == because
