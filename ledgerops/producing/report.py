"""What a load has to say at its end: what was sent, how exactly, and whether it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ledgerops.figures import clock
from ledgerops.ledger.manifest import Manifest
from ledgerops.producing.samples import percentile
from ledgerops.producing.sent import Sent
from ledgerops.producing.verdict import judge, spent

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

LEGS = {
    "acknowledge_corrected": "scheduled to acknowledged",
    "acknowledge": "created to acknowledged",
    "append": "created to appended",
}


def quality(sent: Sent, late_budget: float, at_once: bool) -> dict[str, Any]:
    """For the manifest: how late the load was, and whether it is valid. Of one sent at once there is no schedule."""
    if at_once:
        return {}
    why = judge(sent, late_budget)
    return {
        "late_seconds": {"p50": sent.late(0.5), "p99": sent.late(0.99), "most": round(sent.latest, 6)},
        "late_budget": late_budget,
        "valid": why is None,
        "invalid_because": why,
    }


def lines(
    manifest: Manifest,
    sent: Sent,
    where: str,
    legs: Mapping[str, HdrHistogram] | None = None,
    samples: str | None = None,
) -> Iterator[str]:
    """The report, line by line; the verdict last but for the files."""
    found, poison = manifest.summary, sum(manifest.poison.values())
    copies = found.all.rows - found.distinct.rows
    yield f"sent {manifest.plan} to {where} in {clock(sent.seconds)}"
    told = [f"{found.distinct.rows:,} distinct", f"{copies:,} copies", f"{found.late:,} late"]
    told += [f"{found.conflicting:,} with another amount"] if found.conflicting else []
    told += [f"{found.future:,} dated ahead"] if found.future else []
    yield f"rows      {found.all.rows:,} ({', '.join(told)})"
    if poison:
        yield f"poison    {poison:,} ({', '.join(f'{kind} {count:,}' for kind, count in manifest.poison.items())})"
    counts = f"{sent.acknowledged:,} acknowledged, {sent.refused:,} refused"
    yield f"records   {sent.planned:,} due, {sent.produced:,} sent, {counts}"
    yield f"rate      {sent.produced / max(sent.seconds, 1e-9):,.0f} records a second"
    if sent.backpressured:
        times = "once" if sent.backpressured == 1 else f"{sent.backpressured:,} times"
        yield f"full      the target {times}, for {spent(sent.backpressure_seconds)} in all"
    how = manifest.sent
    if "valid" in how:
        late = how["late_seconds"]
        yield f"lateness  {spent(late['p50'])} (median), {spent(late['p99'])} (p99), {spent(late['most'])} (most)"
    for name, label in LEGS.items():
        if legs and name in legs and (median := percentile(legs[name], 0.5)) is not None:
            yield f"latency   {label}: {spent(median)} (median), {spent(percentile(legs[name], 0.99) or 0.0)} (p99)"
    if "valid" in how:
        yield f"verdict   {'valid' if how['valid'] else 'INVALID: ' + str(how['invalid_because'])}"
    if samples:
        yield f"samples   {samples}"
