"""What a load must send, made without the senders."""

from ledgerops.ledger.plan.poison import REASONS
from ledgerops.ledger.plan.record_stream import PlanStream, chunks
from ledgerops.load.generator.records import encode


def expected_records(plan, origin, count, kinds=REASONS):
    """Key and value of each record numbered below `count`, in order, by partition."""
    stream = PlanStream(plan, origin)
    found = {partition: [] for partition in range(stream.partitions)}
    for _, rows in chunks(stream, count):
        made = encode(stream, rows, kinds)
        for key, value, partition in zip(made.keys, made.values, made.partitions, strict=True):
            found[partition].append((key, value))
    return found
