"""X2, catch-up after a crash: the sink fails, the query is away for 30 s, and then works off what has piled up.

The backlog is the crash's doing: nothing else may be blamed for it, neither the load nor the cap on its batches.
"""

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import dies
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient

CAP = 1200  # rows a batch: twice what comes
PLAN = """
seed: 52
start: now
partitions: {count: 2}
phases: [{shape: constant, rate: 300}]
"""


def start(patient: Patient) -> None:
    def begin() -> None:
        earlier = patient.kept.get("main")
        patient.job("dedup_transactions", {"transactions": patient.rows(PLAN, max_rows=CAP)})
        if earlier is not None:
            patient.kept["main"].deaths = earlier.deaths

    def look() -> None:
        kept = patient.kept["main"]
        if kept.seen_dead and not patient.chaos("fail"):
            begin()

    begin()
    patient.each_turn.append(look)


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(fail="disk quota exceeded")


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(fail=None)


DRILL = Drill(
    name="catch-up",
    id="X2",
    kind="combined",
    summary="a crash, half a minute away, and the backlog that comes of it",
    start=start,
    inject=inject,
    repair=repair,
    effect=dies(),
    fault_seconds=30.0,
    recovery_seconds=60.0,
    truth=Truth(
        faults=(Fault(rules=("query-failed",), component=("query",), remedy="same checkpoint"),),
        may=("freshness-breach",),
    ),
)
