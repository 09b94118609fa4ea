"""X2, catch-up after a crash: the sink fails, the query is down for 30 s, then processes the accumulated backlog.

The crash caused the backlog. Neither the load nor the cap on the batch size may be named as the cause.
"""

from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.effects import dies
from ledgerops.drills.harness.target_app import TargetApp

CAP = 1200  # rows a batch: twice what comes
PLAN = """
seed: 52
start: now
partitions: {count: 2}
phases: [{shape: constant, rate: 300}]
"""


def start(app: TargetApp) -> None:
    def begin() -> None:
        earlier = app.kept.get("main")
        app.job("dedup_transactions", {"transactions": app.rows(PLAN, max_rows=CAP)})
        if earlier is not None:
            app.kept["main"].deaths = earlier.deaths

    def turn() -> None:
        kept = app.kept["main"]
        if kept.seen_dead and not app.control("fail"):
            begin()

    begin()
    app.each_turn.append(turn)


DRILL = Drill(
    name="catch-up",
    id="X2",
    kind="combined",
    summary="a crash, 30 s of downtime, and the backlog that results",
    start=start,
    control={"fail": "disk quota exceeded"},
    effect=dies(),
    fault_seconds=30.0,
    recovery_seconds=60.0,
    truth=cause("query-failed", component=("query",), remedy="same checkpoint", may=("freshness-breach",)),
)
