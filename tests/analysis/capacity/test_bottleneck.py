import pytest

from ledgerops.analysis.capacity.bottleneck import PIECES, limit
from ledgerops.diagnosis.batch_parts import PARTS
from tests.analysis.capacity.conftest import exact_line, situation, stage, stages
from tests.tables import cases

LINE = exact_line()  # 0.4 s and 5,000 rows a second
COUNTS = {"query_planning": 0.2, "wal_commit": 0.1, "cpu": 0.5}
COLLECTS = {"driver_before": 0.7, "driver_between": 0.4, "cpu": 0.2}


def test_the_pieces_outside_of_tasks_are_parts_of_a_batch():
    assert {part for _, parts in PIECES.values() for part in parts} <= set(PARTS)


@cases(
    "known, rows, what, detail",
    ("small batches", {}, 1000, "fixed_overhead", "fixed cost of 0.40 s, 67% of a batch of 1,000 rows"),
    ("a sink that takes its time whatever it gets", {"parts": {"after_tasks": 0.35, "cpu": 0.3}}, 1000, "sink",
     "fixed cost of 0.40 s, 67% of a batch of 1,000 rows; " "most of it in the sink outside Spark's tasks"),
    ("a source that takes long to answer", {"parts": {"latest_offset": 0.35, "cpu": 0.3}}, 1000, "source",
     "fixed cost of 0.40 s, 67% of a batch of 1,000 rows; most of it in the source"),
    ("large batches", {}, 6000, "cores", "8 tasks share 2 cores"),
    ("state partitions", {"stages": stages(stage([0.4] * 2)), "parts": COUNTS}, 6000, "state_partitions",
     "the state stage has 2 tasks, fixed by the checkpoint (Spark 4.2 can change it)"),
    ("a hot key", {"stages": stages(stage([2.0, 0.1], records=[950, 50])), "key": "customer_id"}, 6000, "hot_key",
     "one of 2 tasks reads 95% of the rows of its stage (by customer_id)"),
    ("a sink that grows with the rows",
     {"stages": stages(stage([0.4] * 8), slope=0.1), "parts": {"after_tasks": 1.1, "cpu": 0.2}}, 6000, "sink",
     "1.10 s of a batch of 1.30 s are spent in the sink outside Spark's tasks"),
    ("rows collected in the driver", {"stages": stages(stage([0.4] * 8), slope=0.1), "parts": COLLECTS}, 6000, "driver",
     "1.10 s of a batch of 1.30 s are spent in the driver while no task runs"),
    ("a cap of the source", {"cap": ("maxOffsetsPerTrigger", 6000.0)}, 6000, "source_limit",
     "maxOffsetsPerTrigger allows 6,000 rows a batch"),
    ("a cap so large that more rows would take as long each", {"cap": ("maxOffsetsPerTrigger", 60_000.0)}, 60_000,
     "cores", "8 tasks share 2 cores"),
    ("no tasks", {"parts": {"tasks_unknown": 1.0}}, 6000, "unknown", "tasks were recorded for too few batches"),
    ("no tasks, but small batches", {"stages": None}, 1000, "fixed_overhead",
     "0.40 s of a batch of 0.60 s are fixed cost"),
    ("the CPU limit of a container", {"parts": {"query_planning": 0.1, "cpu": 0.4, "cpu_limit": 3.5}}, 6000,
     "cpu_limit", "3.50 s of a batch of 4.00 s are lost to the CPU limit"),
    ("large batches, and others that take a little",
     {"parts": {"query_planning": 0.1, "cpu": 2.4, "other_processes": 0.5}}, 6000, "cores", "8 tasks share 2 cores"),
    ("no batch", {"parts": {}}, 6000, "unknown", "no batch after the warm-up"),
)  # fmt: skip
def test_what_limits(known, rows, what, detail):
    assert limit(situation(**known), 2, rows, LINE) == (what, detail)


@cases(
    "parts, what, detail",
    ("one outside of tasks", {"after_tasks": 0.2, "query_planning": 0.9, "cpu": 0.3}, "fixed_overhead",
     "0.90 s of a batch of 1.40 s are spent in planning and the checkpoint"),
    ("tasks, though all others together take longer",
     {"after_tasks": 0.3, "query_planning": 0.4, "driver_before": 0.4, "cpu": 0.6}, "cores", "8 tasks share 2 cores"),
)  # fmt: skip
def test_without_a_line_the_largest_part_of_a_typical_batch_limits(parts, what, detail):
    assert limit(situation(parts=parts), 2, None, None) == (what, detail)


@pytest.mark.parametrize("shuffle", [True, False], ids=["state partitions", "source partitions"])
def test_what_holds_the_tasks_up_is_not_known_where_the_cores_are_not(shuffle):
    known = situation(stages=stages(stage([0.4] * 8, shuffle=shuffle), cores=None))
    assert limit(known, None, 6000, LINE) == ("unknown", "the number of cores is not known")
    assert limit(known, None, 1000, LINE).what == "fixed_overhead"


def test_with_more_cores_the_tasks_limit_less():
    known = situation(stages=stages(stage([0.4] * 8, wall=1.6), slope=0.6), parts={"driver_between": 0.5, "cpu": 0.6})
    assert limit(known, 2, 6000, LINE).what == "cores"
    assert limit(known, 8, 6000, LINE).what == "driver"
