"""A load that `ledgerops load` sent to Kafka, and the recording of the jobs that read it meanwhile.

The manifest has the plan and the instant at which its schedule began, so every row's due time is known as it is of the
embedded source. The jobs must have been running when the load began, and have read what the topic held by then: the
first batch that begins after that starts at the first record of the load. Poison has offsets, too, and is spread evenly
over the load: counts are scaled by its share. An INVALID load does not measure the jobs and is rejected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ledgerops.errors import UserError
from ledgerops.ledger.plan.manifest import Manifest, read_manifest
from ledgerops.ledger.plan.plan import LoadPlan, parse_plan
from ledgerops.load.test.driver import TrialRequest
from ledgerops.load.test.plan_batches import PlanBatch
from ledgerops.load.test.recorded import read_recorded
from ledgerops.load.test.trial import Trial
from ledgerops.model.records import Progress

MAX_EXTRA_SHARE = 0.001  # of the records that offsets may be beyond the manifest: a transaction's markers have offsets
MAX_CLOCK_SECONDS = 1.0  # by which the clocks of the generator and of the jobs may differ


@dataclass(frozen=True, slots=True)
class SentLoad:
    """One load, by the manifest in `file`."""

    manifest: Manifest
    plan: LoadPlan
    file: Path
    origin: float  # of the manifest: when its schedule began

    @property
    def last(self) -> float:
        """Seconds of the plan at which the last record was due."""
        return float(self.plan.schedule.due_time(np.array([max(0, self.manifest.records - 1)]))[0])

    def done(self, batches: Sequence[Progress]) -> list[PlanBatch]:
        """The batches that began since the load did, in the plan's terms.

        Raises UserError when they hold more than was sent, or the first of them more than was due by then.
        """
        poison = sum(self.manifest.poison.values())
        share = self.manifest.records / max(1, self.manifest.summary.all.rows + poison)  # of a table: its rows only
        since = [batch for batch in batches if batch.started >= self.origin]
        spans = [span for batch in since if (span := self._span(batch)) is not None]
        if not spans:
            return []
        batch, base, _, head = spans[0]
        planned = batch.started + batch.phases.get("latest_offset", 0.0) - self.origin
        due = self.plan.schedule.due(planned + MAX_CLOCK_SECONDS)
        if (head - base) * share > due * (1 + MAX_EXTRA_SHARE) + 1:
            raise UserError(
                f"cannot judge by {self.file}: {head - base:,} records of {self.manifest.topic} were unread when "
                f"{due:,} were due: the jobs had not read those of before the load; wait until they have, and repeat it"
            )
        last = spans[-1][2] - base
        if last * share > self.manifest.records * (1 + MAX_EXTRA_SHARE) + 1:
            there = self.manifest.summary.all.rows + poison
            raise UserError(
                f"{self.file} has {there:,} records, but the recording shows {last:,} read "
                f"from {self.manifest.topic}: the topic also has records of another load"
            )
        return [
            PlanBatch(batch, round((first - base) * share), round((end - base) * share))
            for batch, first, end, _ in spans
        ]

    def _span(self, batch: Progress) -> tuple[Progress, int, int, int] | None:
        """Offsets before and after, of the load's topic, and its head; the first batch of a query has no start."""
        for source in batch.sources:
            mine = {place: offset for place, offset in source.end.items() if place[0] == self.manifest.topic}
            if mine:
                end = sum(mine.values())
                start = sum(source.start[each] for each in mine) if source.start else end - source.rows
                return batch, start, end, sum(source.latest.get(place, offset) for place, offset in mine.items())
        return None


def read_sent_load(file: Path) -> SentLoad:
    """The load of a manifest. Raises UserError unless it is of a plan that was sent to Kafka on time and completely."""
    manifest = read_manifest(file)
    if manifest.text is None or manifest.origin is None or manifest.topic is None:
        raise UserError(f"cannot judge by {file}: only a plan that was sent to Kafka has a due time for each record")
    if manifest.sent.get("valid") is False:
        why = manifest.sent.get("invalid_because") or "the generator could not keep up"
        raise UserError(f"cannot judge by {file}: the load is INVALID ({why}), so it does not measure the jobs")
    if "valid" not in manifest.sent:
        raise UserError(f"cannot judge by {file}: the load was sent with --at-once, not on schedule")
    if not manifest.exact:
        raise UserError(
            f"cannot judge by {file}: records were rejected or their delivery is unknown, so the rows that a job read "
            "are not known; repeat the load"
        )
    plan = parse_plan(manifest.text, manifest.plan)
    if plan.schedule.total is not None and manifest.records > plan.schedule.total:
        raise UserError(f"cannot judge by {file}: its plan has fewer than {manifest.records:,} records")
    load = SentLoad(manifest, plan, file, manifest.origin)
    if any(change.poison is not None and change.begin < load.last for change in plan.changes):
        raise UserError(f"cannot judge by {file}: the share of its poison changes, so no offset has a due time")
    return load


def trial_of(load: SentLoad, recording: Path, folder: Path, jobs: Sequence[str], warm_up: float) -> Trial:
    """The trial that jobs made of the load; of all jobs without names. Raises UserError if one is not in the recording.

    The trigger interval is the recording's: the shortest, where jobs have several.
    """
    known = read_recorded(recording)
    missing = [job for job in jobs if job not in known.batches]
    if missing or not known.batches:
        there = ", ".join(sorted(known.batches)) or "none"
        raise UserError(f"no batch of {', '.join(missing) or 'any job'} in {recording}; it has batches of {there}")
    names = tuple(jobs) or tuple(sorted(known.batches))
    if load.last <= warm_up:
        raise UserError(f"the load of {load.file} took {load.last:.0f} s, all of it warm-up; give a shorter --warm-up")
    trigger = min((known.intervals[job] for job in names if known.intervals.get(job)), default=None)
    wanted = TrialRequest(names, load.plan, warm_up, load.last - warm_up, trigger, cores=None)
    end = load.origin + load.last  # what fails before or after is no failure under this load
    failed = {job: why for job in names for at, why in known.failed.get(job, ()) if load.origin <= at <= end}
    return Trial(folder, wanted, load.origin, failed, recording, load.done)
