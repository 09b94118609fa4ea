"""The status of a query and the severity of a finding as numbers, for panels that colour them."""

from __future__ import annotations

from ledgerops.mixin.dashboards.model import Target, by, q

STATUSES = (
    ("healthy", "good"),
    ("idle", "cold"),
    ("stopped", "cold"),
    ("starting", "cold"),
    ("catching_up", "warn"),
    ("pressured", "warn"),
    ("falling_behind", "bad"),
    ("stuck", "bad"),
    ("failed", "bad"),
    ("lost", "bad"),
)
NAMES = tuple((str(n), f"{colour}:{name.replace('_', ' ')}") for n, (name, colour) in enumerate(STATUSES))

ACTIVE = q("ledgerops_query_active")
MOVED = f"({ACTIVE} == 0 and on (job, query) {ACTIVE} == 1)"


def present(expression: str) -> str:
    """Without what a driver goes on to say of a query that ended there and runs on another."""
    return f"{expression} unless on (job, instance, query) {MOVED}"


def status() -> str:
    """The number of the status that a query has."""
    parts = []
    for number, (name, _) in enumerate(STATUSES):
        matcher = f'status="{name}"'
        parts.append(f"({q('ledgerops_query_status', matcher)} == 1) * {number}")
    return present(f"({' or ignoring (status) '.join(parts)})")


SEVERITIES = (("info", "cold"), ("warning", "warn"), ("critical", "bad"))
FOUND = tuple((str(n), f"{colour}:{name}") for n, (name, colour) in enumerate(SEVERITIES, 1))


def found(labels: str, legend: str) -> tuple[Target, ...]:
    """What the rules find, each finding as the number of its severity."""
    targets = []
    for number, (name, _) in enumerate(SEVERITIES, 1):
        matcher = f'severity="{name}"'
        targets.append(Target(by("max", labels, present(q("ledgerops_finding", matcher))) + f" * {number}", legend))
    return tuple(targets)
