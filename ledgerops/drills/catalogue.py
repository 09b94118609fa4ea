"""The drills, in the order in which they are listed."""

from ledgerops.drills.scenarios import (
    batch_cost,
    checkpoints,
    event_time,
    failures,
    healthy,
    integrity,
    interruptions,
    kafka,
    load,
    resources,
    sinks,
    skew,
    state,
)

DRILLS = (
    *sinks.DRILLS, *skew.DRILLS, *batch_cost.DRILLS, *kafka.DRILLS, *checkpoints.DRILLS, *healthy.DRILLS,
    *interruptions.DRILLS, *state.DRILLS, *resources.DRILLS, *load.DRILLS, *event_time.DRILLS, *failures.DRILLS,
    *integrity.DRILLS,
)  # fmt: skip
BY_NAME = {drill.name: drill for drill in DRILLS}
