"""What a load has to say at its end: what was sent, how exactly, and whether it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerops.common.files import part_of
from ledgerops.common.format import clock
from ledgerops.errors import UserError, cannot_write
from ledgerops.ledger.plan.manifest import Manifest
from ledgerops.load.generator.accounting import SentCounts
from ledgerops.load.generator.latency_samples import percentile
from ledgerops.load.generator.validity import judge, spent

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

    from ledgerops.load.generator.request import LoadRequest

LEG_TITLES = {
    "acknowledge_corrected": "scheduled to acknowledged",
    "acknowledge": "created to acknowledged",
    "append": "created to appended",
}


def manifest_path(given: Path | str | None, table: str = "transactions") -> Path:
    """Where the manifest goes. Raises UserError, before anything is sent, if it cannot be written there."""
    default = "manifest.json" if table == "transactions" else f"manifest-{table}.json"
    file = Path(given or Path("runs") / default)
    if file.is_dir():
        raise UserError(f"cannot write {file}: it is a folder")
    probe = part_of(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except FileExistsError:
        raise UserError(f"cannot write {file}: {file.parent} is not a folder") from None
    except OSError as error:
        raise cannot_write(file, error) from None
    return file


def conclude(
    request: LoadRequest, sent: SentCounts, legs: Mapping[str, HdrHistogram], late_budget: float, file: Path
) -> Manifest:
    """Prints the report and writes the manifest. Raises UserError, with the report printed, when that fails."""
    manifest = request.manifest(sent, **quality(sent, late_budget, request.at_once))
    for line in lines(manifest, sent, request.where, legs, request.samples):
        print(line)
    manifest.write(file)
    print(f"manifest  {file}", flush=True)
    return manifest


def failure(manifest: Manifest, sent: SentCounts) -> str | None:
    """Why the load cannot be taken as sent, in a line; None of one that can, valid or not."""
    return None if manifest.exact else f"failed: {sent.problem or 'not every record was acknowledged'}"


def succeeded(manifest: Manifest) -> bool:
    """Whether every record was acknowledged, on time where there was a schedule."""
    return manifest.exact and bool(manifest.sent.get("valid", True))


def quality(sent: SentCounts, late_budget: float, at_once: bool) -> dict[str, Any]:
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
    sent: SentCounts,
    where: str,
    legs: Mapping[str, HdrHistogram] | None = None,
    samples: str | None = None,
) -> Iterator[str]:
    """The report, line by line; the verdict last but for the files."""
    found, poison = manifest.summary, sum(manifest.poison.values())
    copies = found.all.rows - found.distinct.rows
    yield f"sent {manifest.plan} to {where} in {clock(sent.seconds)}"
    parts = [f"{found.distinct.rows:,} distinct", f"{copies:,} copies", f"{found.late:,} late"]
    parts += [f"{found.conflicting:,} with another amount"] if found.conflicting else []
    parts += [f"{found.future:,} dated ahead"] if found.future else []
    yield f"rows      {found.all.rows:,} ({', '.join(parts)})"
    if poison:
        yield f"poison    {poison:,} ({', '.join(f'{kind} {count:,}' for kind, count in manifest.poison.items())})"
    counts = f"{sent.acknowledged:,} acknowledged, {sent.refused:,} refused"
    yield f"records   {sent.planned:,} due, {sent.produced:,} sent, {counts}"
    yield f"rate      {sent.produced / max(sent.seconds, 1e-9):,.0f} records per second"
    if sent.backpressured:
        times = "once" if sent.backpressured == 1 else f"{sent.backpressured:,} times"
        yield f"full      the target {times}, for {spent(sent.backpressure_seconds)} in all"
    how = manifest.sent
    if "valid" in how:
        late = how["late_seconds"]
        yield f"lateness  {spent(late['p50'])} (median), {spent(late['p99'])} (p99), {spent(late['most'])} (most)"
    for name, label in LEG_TITLES.items():
        if legs and name in legs and (median := percentile(legs[name], 0.5)) is not None:
            yield f"latency   {label}: {spent(median)} (median), {spent(percentile(legs[name], 0.99) or 0.0)} (p99)"
    if "valid" in how:
        yield f"verdict   {'valid' if how['valid'] else 'INVALID: ' + str(how['invalid_because'])}"
    if samples:
        yield f"samples   {samples}"
