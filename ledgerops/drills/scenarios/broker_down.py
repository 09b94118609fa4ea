"""F16, broker down: the broker process is killed and comes back after 25 s on the same port with its data."""

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import at_once
from ledgerops.drills.harness.kafka_fixture import PLAN, broker_of, open_broker, rows

DRILL = Drill(
    name="broker-down",
    id="F16",
    summary="the only broker is killed and comes back after 25 s",
    prepare=lambda injector: open_broker(injector, {"transactions": 5}, load={"transactions": PLAN}),
    start=lambda app: app.job("dedup_transactions", {"transactions": rows(app)}),
    inject=lambda injector: broker_of(injector).kafka.kill(),
    repair=lambda injector: broker_of(injector).kafka.start(),
    effect=at_once,
    fault_seconds=25.0,
    recovery_seconds=50.0,
    truth=cause("source-unreachable", component=("source",), remedy="broker", may=(*LATE_SYMPTOMS, "query-stuck")),
)
