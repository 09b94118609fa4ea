"""The drills, in the order in which they are listed."""

from ledgerops.drills import (
    slow_sink,
    slow_state_commit,
)

DRILLS = (
    slow_sink.DRILL,
    slow_state_commit.DRILL,
)
BY_NAME = {drill.name: drill for drill in DRILLS}
