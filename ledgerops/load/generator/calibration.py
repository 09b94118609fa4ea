"""How much this machine's load generator can send on time, found by steps of rate.

Each step is a load of some seconds that is judged as every load is (`validity`). Rates double until one
does not hold, then lie between the highest that did and the lowest that did not. A step that fails is tried once more:
something else on the machine may have had the core.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ledgerops.common.kafka import KafkaClient
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream
from ledgerops.load.generator.kafka import KafkaTarget
from ledgerops.load.generator.pacer import produce, settle
from ledgerops.load.generator.validity import LATE_BUDGET, judge

FIRST_RATE = 25_000.0  # records a second; a machine that cannot do this carries no load test
STEP_SECONDS = 2.5  # of a step: 250 readings of the clock, so that its p99 does not rest on one
MAX_SECONDS = 38.0  # in all
PRECISION_RATIO = 1.15  # the highest rate that holds is known within 15 %
SAFE_SHARE = 0.8  # of the ceiling: what a load may ask while jobs and a broker share the machine
MOCK_PARTITIONS = 4  # as librdkafka's mock broker makes topics
TOPIC = "ledgerops.calibration"
# rows as of the default plan, all of them to as many partitions as there are
_PLAN = """
seed: 7
start: 2026-01-01T00:00:00Z
phases: [{{shape: constant, rate: {rate}}}]
keys: {{customers: 4000, accounts: 4500, distribution: zipf, exponent: 0.8}}
partitions: {{count: {partitions}}}
disorder: {{late: {{share: 0.01, delay: uniform, low: 1s, high: 10s}}}}
duplicates: {{share: 0.01, within: 5s}}
"""


@dataclass(frozen=True)
class Step:
    """One rate that was tried; times in seconds."""

    asked: float  # records a second
    sent: float  # records a second
    late_p50: float
    late_p99: float
    cores: float  # processor time of this process a second, librdkafka's threads and a mock broker included
    why: str | None  # it does not hold; None: it does

    @property
    def holds(self) -> bool:
        """Whether the generator kept to this rate."""
        return self.why is None

    def document(self) -> dict[str, Any]:
        """The step as JSON: all fields, and `holds`."""
        return {**vars(self), "holds": self.holds}


Try = Callable[[float], Step]


def search(attempt: Try, stopped: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> Iterator[Step]:
    """Yields steps until the ceiling is known, time is up, or `stopped` returns true."""
    began = clock()

    def has_time() -> bool:
        return clock() - began < MAX_SECONDS - STEP_SECONDS and not stopped()

    low: float | None = None
    high: float | None = None
    rate = FIRST_RATE
    while has_time():
        step = attempt(rate)
        if not step.holds and has_time():
            yield step
            step = attempt(rate)
        yield step
        if step.holds:
            low = rate
        else:
            high = rate
        if high is None:
            rate *= 2
        elif low is None:
            rate = high / 2
        elif high <= low * PRECISION_RATIO:
            return
        else:
            rate = _round((low + high) / 2)
        if rate < 1_000:
            return


def ceiling(steps: list[Step]) -> float | None:
    """The highest rate that held, in records a second; None when none did."""
    return max((step.asked for step in steps if step.holds), default=None)


def attempts(wait: Callable[[float], bool], late_budget: float = LATE_BUDGET) -> Try:
    """A function that tries a rate, each time on a new producer."""
    # its broker is a part of librdkafka, in this process: no server, no disk
    client = KafkaClient("mock:9092", {"test.mock.num.brokers": "1"})

    def attempt(rate: float) -> Step:
        plan = parse_plan(_PLAN.format(rate=rate, partitions=MOCK_PARTITIONS), "calibration.yaml")
        to = KafkaTarget(client, TOPIC, MOCK_PARTITIONS, checked=False)
        began, used = time.monotonic(), time.process_time()

        def pause(seconds: float) -> bool:
            return wait(seconds) or time.monotonic() > began + 2 * STEP_SECONDS  # too far behind to hold

        wanted = round(rate * STEP_SECONDS)
        sent = produce(PlanStream(plan, 0.0), to, records=wanted, at_once=False, wait=pause)
        seconds, used = time.monotonic() - began, time.process_time() - used
        settle(sent, to)
        return Step(
            asked=rate,
            sent=sent.produced / max(sent.seconds, 1e-9),
            late_p50=sent.late(0.5),
            late_p99=sent.late(0.99),
            cores=used / seconds,
            why="it stopped early" if wait(0.0) and sent.records < wanted else judge(sent, late_budget),
        )

    return attempt


def _round(rate: float) -> float:
    """To three digits at most, so that it reads well."""
    size = 10 ** max(0, len(str(int(rate))) - 3)
    return float(round(rate / size) * size)
