"""R1, GC pressure: from the onset, a cache in the driver occupies most of its heap, and batches wait for GC."""

from __future__ import annotations

from typing import Any

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp

LEFT = 60  # MiB of the heap that the cache leaves
PIECE = 250_000  # texts of a few letters; many small things take the collector long
PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 400}]}"


class Cache:
    """A cache in the JVM that occupies all of the heap but `LEFT` MiB while the control file says so."""

    def __init__(self, app: TargetApp) -> None:
        self._app = app
        self._pieces: list[Any] | None = None

    def turn(self) -> None:
        """Fills or releases the cache if the control file asks for another state than the present one."""
        wanted = bool(self._app.control("cache"))
        if wanted == (self._pieces is not None):
            return
        jvm: Any = self._app.spark.sparkContext._jvm
        if not wanted:
            self._pieces = None
            return
        self._pieces = []
        comma, text = jvm.java.util.regex.Pattern.compile(","), "text," * PIECE
        while self._free(jvm) > LEFT * 2**20:
            self._pieces.append(comma.split(text))

    @staticmethod
    def _free(jvm: Any) -> int:
        """Bytes of the heap that nothing lives in."""
        jvm.java.lang.System.gc()
        machine = jvm.java.lang.Runtime.getRuntime()
        return int(machine.maxMemory() - machine.totalMemory() + machine.freeMemory())


def start(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": app.rows(PLAN)})
    app.each_turn.append(Cache(app).turn)


DRILL = Drill(
    name="gc-pressure",
    id="R1",
    summary="a cache occupies nearly all of the heap",
    start=start,
    control={"cache": True},
    effect=batches_outlast(2.0),
    truth=cause(
        "gc-pressure",
        component=("executor",),
        remedy="memory",
        # the collector's threads take the cores, too
        may=(*LATE_SYMPTOMS, "cpu-saturated"),
    ),
    recovery_seconds=45.0,
    conf=(("spark.driver.memory", "600m"),),
)
