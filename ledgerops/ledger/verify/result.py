"""What a check found, for the table and for JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["holds", "broken", "not checked", "nothing to verify"]
MAX_EXAMPLES = 5


@dataclass
class JobCheck:
    """The result for one job. None: not checked, or unknown."""

    job: str
    verdict: Verdict
    rows: int | None = None
    lost: int | None = None
    repeated: int | None = None
    changed: int | None = None
    money: str | None = None  # "equal", or by how much it differs
    notes: list[str] = field(default_factory=list)
    examples: dict[str, Sequence[str]] = field(default_factory=dict)  # of lost, repeated and changed: at most five each

    def document(self) -> Mapping[str, Any]:
        """The result as JSON, with the names of the fields as keys."""
        return vars(self)


def judge(result: JobCheck, lenient: bool) -> JobCheck:
    """Sets the verdict by the counts, and drops examples of nothing.

    With `lenient` repeats are what the sink may do, and are only noted.
    """
    repeated = result.repeated or 0
    if lenient and repeated:
        result.notes.append(f"{repeated:,} repeated (allowed by the sink: at least once)")
        repeated = 0
    result.examples = {what: examples for what, examples in result.examples.items() if examples}
    fine: Verdict = "nothing to verify" if result.rows == 0 else "holds"
    result.verdict = "broken" if result.lost or repeated or result.changed else fine
    return result
