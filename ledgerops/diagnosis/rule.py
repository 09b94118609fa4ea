"""What a rule is, and how sure it is. The catalogue is `ledgerops.diagnosis.rules.RULES`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ledgerops.diagnosis.limits import CLEAR_TIMES
from ledgerops.model.finding import Finding, Severity
from ledgerops.signals.query_view import QueryView

REPORTED_SECONDS = 120.0  # for which single wrong rows are reported: Prometheus may ask once a minute only
LATE = ("falling-behind", "trigger-overrun")  # what batches that take too long lead to
CLEAR, LIKELY, UNSURE = 0.95, 0.8, 0.5  # confidence: clearly over its limit, just over it, a guess


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: the docstring of its module is its runbook, `check` yields findings, `explains` are edges of the graph.

    `ruled_out` says in one sentence with a number why the rule is not the cause, or None when it cannot tell.
    A rule reads as much history as it needs, so a verdict hardly depends on earlier verdicts; `linger` is how many
    seconds a finding stays after the rule no longer sees it, so that one good batch among bad ones does not clear it.
    `outlives` marks a finding that stays true long after the query has ended, `at_rest` one that can be true of a query
    that has nothing to read. What `needs_harm` is only worth knowing while nothing suffers: its severity is then info.
    What an `urgent` rule finds cannot be undone: its first step comes before those of other causes.
    """

    slug: str
    severity: Severity
    check: Callable[[QueryView], Iterator[Finding]]
    runbook: str
    explains: tuple[str, ...] = ()
    ruled_out: Callable[[QueryView], str | None] | None = None
    linger: float = 10.0
    outlives: bool = False
    at_rest: bool = False
    needs_harm: bool = False
    urgent: bool = False

    @property
    def title(self) -> str:
        """The runbook's first line."""
        return self.runbook.strip().splitlines()[0]


def confidence(value: float, limit: float) -> float:
    """How sure a finding is, 0 to 1, by a measured number and the limit that it exceeds."""
    return CLEAR if value >= CLEAR_TIMES * limit else LIKELY
