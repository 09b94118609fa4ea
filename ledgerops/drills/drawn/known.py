"""Cases of a known outcome: faults that a diagnosis without a healthy past finds hard, and one run without a fault."""

from __future__ import annotations

from ledgerops.drills.harness.case import Case

KNOWN = (
    Case(
        name="udf-from-birth", kind="python-udf", app="features", trigger=2.0, query="card_features", seconds=60.0,
        options={"rate": 40}, control={"row": 0.067}, expected=("python-bound",),
        onset="birth", strength="clear",
    ),
    Case(
        name="slow-sink-without-a-trigger", kind="slow-sink", app="warehouse", query="to_warehouse", seconds=60.0,
        options={"rate": 100}, control={"sink": 3.0}, expected=("slow-sink",),
        onset="birth", strength="clear",
    ),
    Case(
        name="300-partitions", kind="too-many-tasks", app="counts", trigger=2.0, query="minute_counts", seconds=60.0,
        options={"rate": 200, "shuffle": 300}, expected=("too-many-tasks", "small-batch-overhead"),
        onset="birth", strength="clear",
    ),
    Case(
        name="overload-from-birth", kind="overload", app="fraud", trigger=2.0, query="fraud_checks", seconds=60.0,
        options={"rate": 200, "wait": 16.0}, expected=("input-overload",),
        onset="birth", strength="clear",
    ),
    Case(
        name="binding-cap", kind="binding-cap", app="warehouse", source="kafka", trigger=2.0, query="capped_orders",
        options={"cap": 600}, control={"load": {"rate": 600}}, expected=("rate-limited",), seconds=60.0,
        harm="given", harm_after=8.0,
        onset="birth", strength="clear",
    ),
    Case(
        name="idle-union-branch", kind="idle-branch", app="merged", source="files", trigger=2.0, two_inputs=True,
        query="branch_counts", options={"delay": "5 seconds"}, expected=("watermark-stalled",), onset_seconds=38.0,
        control={"load": {"rate": 100}, "load2": {"rate": 100}}, changes=((38.0, {"load2": {"rate": 0}}),),
        harm="given", harm_after=20.0, seconds=126.0,
        onset="later", strength="clear",
    ),
    Case(
        name="silent-producer", kind="silent-producer", app="warehouse", source="kafka", trigger=2.0,
        query="card_payments", expected=("input-stopped",), onset_seconds=45.0, control={"load": {"rate": 500}},
        changes=((45.0, {"load": {"rate": 0}}),), harm="given", harm_after=20.0, due="info", seconds=145.0,
        onset="later", strength="clear",
    ),
    Case(
        name="late-rows", kind="late-rows", app="dedup", source="files", trigger=2.0, query="unique_orders",
        onset_seconds=38.0, control={"load": {"rate": 150}}, seconds=80.0, harm="given", harm_after=4.0,
        changes=((38.0, {"load": {"rate": 150, "late": 0.2}}),), expected=("late-data",), may=("rows-dropped",),
        onset="later", strength="clear",
    ),
    Case(
        name="harmless-skew", kind="busy-key", app="sessions", source="files", trigger=4.0, query="card_totals",
        master="local[4]", options={"shuffle": 4}, control={"load": {"rate": 60, "hot": 0.7}, "row": 0.004},
        healthy=True, harm="none", seconds=60.0,
    ),
)  # fmt: skip
BY_NAME = {case.name: case for case in KNOWN}
