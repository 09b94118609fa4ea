"""The result of a load test: verdict, summary, document and table."""

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ledgerops.common import format
from ledgerops.load.test.cause import Cause, Findings, examine
from ledgerops.load.test.measure import Measured
from ledgerops.load.test.slo import LEGS, PERCENTILES, Outcome, Slo, broken, judge, shown
from ledgerops.load.test.trial import Trial
from ledgerops.model.spark_progress import format_instant
from ledgerops.version import __version__

VERSION = 1
COLUMNS = (
    *("job", "at_seconds", "measured", "batch_id", "rows", "offered_rows_per_second", "processed_rows_per_second"),
    *("batch_seconds", "lag_seconds", "latency_p50_seconds", "latency_p99_seconds", "waiting_p99_seconds"),
    *("state_rows", "state_bytes"),
)


@dataclass(frozen=True)
class JobResult:
    """One job under the load."""

    measured: Measured
    outcomes: Sequence[Outcome]
    findings: Findings

    @property
    def passed(self) -> bool:
        """Whether the run ended without an error and met every objective."""
        return not self.measured.error and all(each.held for each in self.outcomes)

    @property
    def causes(self) -> Sequence[Cause]:
        """Why it failed; nothing of a run that passed."""
        return () if self.passed else self.findings.causes

    @property
    def summary(self) -> str:
        """`FAILED: p99 latency 14.2 s, wanted < 5 s; cause: input-overload (...)`"""
        if self.passed:
            return f"PASSED: {', '.join(f'{each.slo.measure} {each.slo.show(each.value)}' for each in self.outcomes)}"
        error = self.measured.error
        what = f"the run failed: {error}" if error else "; ".join(broken(self.outcomes))
        causes = "; ".join(each.text for each in self.causes) or "none found; see the report"
        return f"FAILED: {what}; cause: {causes}"


@dataclass(frozen=True)
class LoadTestResult:
    """All jobs of one load test."""

    trial: Trial
    title: str  # of the load
    jobs: Sequence[JobResult]

    @property
    def passed(self) -> bool:
        """Whether every job passed."""
        return all(each.passed for each in self.jobs)


def examine_trial(trial: Trial, title: str, slos: Sequence[Slo]) -> LoadTestResult:
    """Measures, judges and diagnoses a trial that is over."""
    runs = list(trial.measured().values())
    found = examine(trial.recording, runs)
    jobs = [JobResult(run, judge(slos, run), findings) for run, findings in zip(runs, found, strict=True)]
    return LoadTestResult(trial, title, jobs)


def text(result: LoadTestResult) -> str:
    """The result as text: a line for each job, with its figures below."""
    lines = []
    for job in result.jobs:
        measured, findings = job.measured, job.findings
        lines += [f"{measured.job}  {job.summary}"]
        rates = [f"offered {format.count(measured.offered)} rows/s"]
        if findings.sustainable is not None:
            value, low, high = findings.sustainable
            rates += [f"sustainable {format.count(value)} rows/s ({format.count(low)} to {format.count(high)})"]
        lines += [f"  {', '.join(rates)}"]
        for leg in LEGS:
            values = [
                f"{name} {seconds(getattr(measured.rows, leg).at(PERCENTILES[name]))}" for name in ("p50", "p99", "max")
            ]
            lines += [f"  {leg:8} {', '.join(values)}"]
        lines += [
            f"  {'batch':8} median {seconds(measured.batch_seconds(0.5))}, p95 {seconds(measured.batch_seconds(0.95))}"
        ]
    return "\n".join(lines) + "\n"


def seconds(value: float | None) -> str:
    """A number of seconds as text, with three digits: two rates differ in the third."""
    return shown("seconds", value)


def document(result: LoadTestResult) -> dict[str, Any]:
    """Plain JSON types; seconds, bytes, rows, rates in rows a second; null for unknown."""
    trial = result.trial
    return {
        "version": VERSION,
        "passed": result.passed,
        "load": result.title,
        "plan": trial.wanted.plan.name,
        "plan_digest": trial.wanted.plan.digest,
        "began": None if trial.origin is None else format_instant(trial.origin),
        "warm_up_seconds": trial.wanted.warm_up,
        "measured_seconds": trial.wanted.seconds,
        "trigger_seconds": trial.wanted.trigger,
        "environment": environment(trial.wanted.cores),
        "jobs": [_job(each) for each in result.jobs],
    }


def environment(cores: int | None) -> dict[str, Any]:
    """What a reader needs to compare two results; `cores` of Spark are not known of jobs that ran elsewhere."""
    import pyspark

    return {
        "ledgerops": __version__,
        "pyspark": pyspark.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores_of_the_machine": os.cpu_count(),
        "cores_of_spark": cores,
    }


def spark_version(cores: int) -> str:
    """`Spark 4.0.1 on 2 of 8 cores`"""
    import pyspark

    return f"Spark {pyspark.__version__} on {cores} of {os.cpu_count()} cores"


def _job(job: JobResult) -> dict[str, Any]:
    found = job.findings
    return {
        "job": job.measured.job,
        "passed": job.passed,
        "summary": job.summary,
        "error": job.measured.error,
        "slos": [outcome(each) for each in job.outcomes],
        "causes": [{"rule": each.rule, "because": each.because} for each in job.causes],
        **figures_of(job.measured),
        "sustainable_rows_per_second": None if found.sustainable is None else found.sustainable._asdict(),
        "cannot_tell": found.unknown_because or None,
        "findings": [
            {
                "rule": each.finding.rule,
                "severity": each.finding.severity,
                "summary": each.finding.summary,
                "root_cause": bool(each.rooted),
                "began": format_instant(each.began),
                "until": None if each.until is None else format_instant(each.until),
            }
            for each in found.periods
        ],
    }


def outcome(each: Outcome) -> dict[str, Any]:
    """One objective and its value as JSON; `value` and `limit` are in the unit of the objective."""
    return {
        "slo": each.slo.text,
        "value": each.value,
        "limit": each.limit,
        "status": each.status,
        "reason": each.reason or None,
    }


def figures_of(measured: Measured) -> dict[str, Any]:
    """All figures of one run, as JSON."""
    line = measured.age_slope
    return {
        "offered_rows_per_second": measured.offered,
        "processed_ratio": measured.processed,
        "batches": len(measured.inside),
        "batch_seconds": {name: measured.batch_seconds(PERCENTILES[name]) for name in ("p50", "p95", "max")},
        **{
            f"{leg}_seconds": {name: getattr(measured.rows, leg).at(share) for name, share in PERCENTILES.items()}
            for leg in LEGS
        },
        "lag_seconds": measured.lag,
        "lag_slope": measured.slope,
        "lag_slope_line": None if line is None else {"slope": line[0], "half_interval": line[1]},
        "state_bytes": measured.state_bytes,
        "state_rows": measured.state_rows,
        "state_growth": measured.state_growth,
    }


def rows(result: LoadTestResult) -> Iterator[tuple[str | float | None, ...]]:
    """A line for each batch: what the plots show. Times in seconds since the plan began."""
    origin = result.trial.origin or 0.0
    for job in result.jobs:
        measured = job.measured
        for before, done in zip([None, *measured.done], measured.done, strict=False):
            batch = done.batch
            cycle = batch.ended - (before.batch.ended if before else batch.started)
            latency = measured.batch_figures(done)
            span = (batch.ended - cycle, batch.ended)
            offered = measured.arrivals.count(span[1]) - measured.arrivals.count(span[0])
            yield (
                measured.job,
                round(batch.ended - origin, 3),
                int(measured.begin <= batch.ended <= measured.end),
                batch.batch_id,
                done.last - done.first,
                round(offered / cycle, 1) if cycle > 0 else None,
                round((done.last - done.first) / cycle, 1) if cycle > 0 else None,
                round(batch.duration, 3),
                *(
                    None if value is None else round(value, 3)
                    for value in (latency.peak, latency.p50, latency.p99, latency.waiting)
                ),
                sum(operator.rows for operator in batch.operators),
                sum(operator.memory_bytes for operator in batch.operators),
            )
