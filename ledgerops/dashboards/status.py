"""The status of a query as a number, for panels that colour it."""

from __future__ import annotations

from ledgerops.dashboards.model import q

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
)
NAMES = tuple((str(n), f"{colour}:{name.replace('_', ' ')}") for n, (name, colour) in enumerate(STATUSES))


def status() -> str:
    """The number of the status that a query has."""
    parts = []
    for number, (name, _) in enumerate(STATUSES):
        matcher = f'status="{name}"'
        parts.append(f"({q('ledgerops_query_status', matcher)} == 1) * {number}")
    return " or ignoring (status) ".join(parts)
