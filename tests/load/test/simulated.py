"""A query that never ran: batches take an overhead and so much a row, its recording is as a real driver writes it."""

import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ledgerops.ledger.plan.plan import LoadPlan
from ledgerops.load.test.driver import NAME, TrialRequest
from ledgerops.load.test.measure import Measured
from ledgerops.load.test.plan_batches import done
from ledgerops.load.test.plans import Due
from ledgerops.load.test.trial import Say, Trial
from ledgerops.model.spark_progress import format_instant, parse_progress
from tests.build import spark_json

ORIGIN = 1_800_000_000.0
RUN = "9f0d1c3e-0000-4000-8000-000000000002"


@dataclass
class System:
    """Carries (trigger - overhead) / per_row rows an interval: 24,000 rows/s at 2 s, as it stands here."""

    overhead: float = 0.4
    per_row: float = 1.6 / 48_000
    noise: float = 0.02  # of a batch's time, one standard deviation
    wander: float = 0.0  # of a trial's whole capacity
    seed: int = 1
    state_bytes: int = 0
    state_rows: Callable[[int], int] = lambda rows: 0  # after so many rows
    fails: str | None = None
    base: int = 0  # offsets that the topic held before
    rates: list[str] = field(default_factory=list)  # titles of the plans that ran, in order

    def carries(self, trigger: float = 2.0) -> float:
        return (trigger - self.overhead) / self.per_row / trigger

    def records(self, plan: LoadPlan, seconds: float, trigger: float, origin: float = ORIGIN) -> list[dict]:
        """Spark's progress records of a run of so many seconds."""
        chance = random.Random(f"{self.seed} {len(self.rates)}")
        slower = 1 + self.wander * chance.gauss(0, 1)
        due, read, found, at = Due(plan, origin), 0, [], origin
        while at <= origin + seconds:
            head = math.floor(due.count(at))
            took = 0.0
            if head > read:
                took = (self.overhead + self.per_row * (head - read)) * slower * (1 + self.noise * chance.gauss(0, 1))
                if at + took > origin + seconds:
                    break
                found.append(self._record(len(found), at, took, read, head))
                read = head
            # the next trigger, or at once after a batch that outlasted its interval
            at = at + took if took >= trigger else (math.floor(at / trigger + 1e-6) + 1) * trigger
        return found

    def _record(self, number: int, start: float, took: float, first: int, last: int) -> dict:
        operators = []
        if self.state_bytes or self.state_rows(last):
            operators = [
                {"operatorName": "dedupe", "numRowsTotal": self.state_rows(last), "memoryUsedBytes": self.state_bytes}
            ]
        milliseconds = round(1000 * took)
        return spark_json(
            runId=RUN,
            timestamp=format_instant(start),
            batchId=number,
            batchDuration=milliseconds,
            numInputRows=last - first,
            durationMs={
                "addBatch": round(0.8 * milliseconds),
                "queryPlanning": round(0.1 * milliseconds),
                "walCommit": round(0.06 * milliseconds),
                "triggerExecution": milliseconds,
            },
            stateOperators=operators,
            sources=[
                {
                    "description": "ledger",
                    "startOffset": {"transactions": {"0": self.base + first}} if first else None,
                    "endOffset": {"transactions": {"0": self.base + last}},
                    "latestOffset": {"transactions": {"0": self.base + last}},
                    "numInputRows": last - first,
                }
            ],
        )

    def perform(self, wanted: TrialRequest, folder: Path, say: Say) -> Trial:
        """As `trial.perform`, in no time: the recording is there, and says what a driver's would."""
        self.rates.append(wanted.plan.name)
        say("measuring", 0.5)
        place = folder / NAME / "recording"
        place.mkdir(parents=True)
        seconds = wanted.warm_up + wanted.seconds
        lines = [line(ORIGIN, "started", {"id": "q", "runId": RUN, "timestamp": format_instant(ORIGIN)})]
        plan = {"run_id": RUN, "trigger": "processing_time", "trigger_interval": wanted.trigger}
        lines.append(line(ORIGIN, "plan", plan))
        for record in self.records(wanted.plan, seconds, wanted.trigger):
            lines.append(line(parse_progress(record).ended, "progress", record))
        lines.append(line(ORIGIN + seconds, "terminated", {"id": "q", "runId": RUN}))
        (place / "recording-000001.jsonl").write_text("".join(lines))
        return Trial(folder, wanted, ORIGIN, {"daily_counts": self.fails} if self.fails else {})

    def measured(self, plan: LoadPlan, seconds: float = 30.0, warm_up: float = 20.0, trigger: float = 2.0) -> Measured:
        self.rates.append(plan.name)
        batches = [parse_progress(each) for each in self.records(plan, warm_up + seconds, trigger)]
        begin = ORIGIN + warm_up
        return Measured("daily_counts", trigger, begin, begin + seconds, Due(plan, ORIGIN), done(batches), self.fails)


def line(at: float, kind: str, data: dict) -> str:
    return json.dumps({"at": format_instant(at), "kind": kind, "query": "daily_counts", "data": data}) + "\n"
