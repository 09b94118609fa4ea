"""F15, slow broker: from the onset, each broker response takes 200 to 400 ms longer."""

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.kafka_fixture import PLAN, broker_of, open_broker, rows

DRILL = Drill(
    name="slow-broker",
    id="F15",
    summary="each broker response takes 0.3 s longer",
    prepare=lambda injector: open_broker(injector, {"transactions": 5}, load={"transactions": PLAN}),
    start=lambda app: app.job("dedup_transactions", {"transactions": rows(app)}),
    inject=lambda injector: broker_of(injector).proxy.set(latency=0.3, jitter=0.1),
    repair=lambda injector: broker_of(injector).proxy.heal(),
    effect=batches_outlast(2.0),
    onset=60.0,  # the first batches take 20 s on a busy machine
    truth=cause("slow-source", component=("source",), remedy="broker|network", may=LATE_SYMPTOMS),
)
