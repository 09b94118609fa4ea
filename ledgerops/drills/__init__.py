"""The drills, in the order in which they are listed."""

from ledgerops.drills import (
    slow_sink,
)

DRILLS = (slow_sink.DRILL,)
BY_NAME = {drill.name: drill for drill in DRILLS}
