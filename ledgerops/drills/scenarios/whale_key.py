"""F05, whale key: from the onset 60 % of the rows belong to one customer, whose rows one task works off.

State is kept by customer, and each row waits 10 ms for an answer: even rows take each of eight tasks 0.4 s, the whale's
four times as long, and more with each batch.
"""

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 51
start: now
phases: [{shape: constant, rate: 160}]
keys: {customers: 60, accounts: 66}
changes: [{from: 45s, to: 75s, keys: {distribution: whale, share: 0.6}}]
"""


def start(patient: Patient) -> None:
    patient.query(slow_udf.scored(patient, patient.rows(PLAN), 10), mode="update")


DRILL = Drill(
    name="whale-key",
    id="F05",
    kind="fault",
    summary="60 % of the rows belong to one customer, whose rows one task works off",
    start=start,
    effect=batches_outlast(2.0),
    fault_seconds=30.0,
    recovery_seconds=50.0,
    conf=slow_udf.CONF,
    master=slow_udf.MASTER,
    truth=Truth(
        faults=(Fault(rules=("key-skew",), component=("stage=customer_id", "key=customer_id"), remedy="salt"),),
        may=LATE,
    ),
)
