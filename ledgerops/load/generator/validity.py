"""Whether a load was what its plan says, or the generator itself was the bottleneck.

A test with a generator that could not keep up measures the generator. k6 counts such iterations as dropped and Spark's
own benchmark refuses a run that produced less than 95 % of its plan; here a load is INVALID when less than 99 % of what
was due was acknowledged, or when more than 1 % of the records were sent later than the budget.
"""

from ledgerops.load.generator.accounting import SentCounts

MIN_ACKNOWLEDGED_SHARE = 0.99  # of what was due
#: Seconds of p99 lateness: five readings of the clock, and far below a trigger interval.
LATE_BUDGET = 0.05


def judge(sent: SentCounts, late_budget: float = LATE_BUDGET) -> str | None:
    """Why the load is INVALID, in one line; None when it is valid, or when nothing was due and nothing went wrong."""
    if sent.problem and not sent.planned:
        return sent.problem
    if sent.planned and sent.acknowledged < MIN_ACKNOWLEDGED_SHARE * sent.planned:
        return (
            f"only {sent.acknowledged:,} of {sent.planned:,} due records were acknowledged "
            f"({sent.acknowledged / sent.planned:.1%}, {MIN_ACKNOWLEDGED_SHARE:.0%} required): {_why_missing(sent)}"
        )
    return _late(sent, late_budget)


def judge_so_far(sent: SentCounts, late_budget: float = LATE_BUDGET) -> str | None:
    """As `judge`, of a load that is under way: what was handed over may still be on its way."""
    if sent.refused:
        return f"refused {sent.refused:,} records: {_why_missing(sent)}"
    behind = sent.planned - sent.produced
    if behind > max((1 - MIN_ACKNOWLEDGED_SHARE) * sent.planned, sent.rate):
        return f"{behind:,} due records were not sent yet: {_why_late(sent)}"
    return _late(sent, late_budget)


def _late(sent: SentCounts, late_budget: float) -> str | None:
    late = sent.late(0.99)
    if late <= late_budget:
        return None
    return f"p99 lateness was {spent(late)} (at most {spent(late_budget)} allowed): {_why_late(sent)}"


def spent(seconds: float) -> str:
    """A duration to the millisecond where that matters: 12 ms, 340 ms, 2.10 s, 63 s."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:,.0f} s"


def _why_missing(sent: SentCounts) -> str:
    return sent.problem or (
        "the target was full" if sent.backpressured else "the load was stopped while it was behind schedule"
    )


def _why_late(sent: SentCounts) -> str:
    if sent.backpressure_seconds > 0.01 * sent.seconds:
        full = spent(sent.backpressure_seconds)
        return f"the target was full for {full}; lower the rate, or give the target more resources"
    return "this generator cannot keep up; use more --workers or a lower --rate-scale, see ledgerops load calibrate"
