"""F11, unbounded state: a deduplication without a watermark, where from the onset each row has a new key."""

from ledgerops.drills.harness.drill import FAULT_SECONDS, Drill, cause
from ledgerops.drills.harness.new_keys import new_keys, with_key
from ledgerops.drills.harness.target_app import TargetApp

PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 400}]
keys: {customers: 300, accounts: 300}
"""


def start(app: TargetApp) -> None:
    rows = with_key(app, app.rows(PLAN), FAULT_SECONDS)
    app.query(rows.dropDuplicates(["key"]))


DRILL = Drill(
    name="unbounded-state",
    id="F11",
    summary="a deduplication without a watermark, where each row has a new key",
    start=start,
    effect=new_keys(4000),
    truth=cause("unbounded-state", component=("operator",), remedy="watermark|time to live"),
    recovery_seconds=45.0,
)
