"""Load tests and searches as one HTML file each: the verdict, what was asked and measured, the plots, the causes."""

from collections.abc import Iterator

from ledgerops.analysis.html.render import render
from ledgerops.common import format
from ledgerops.load.test.measure import Measured
from ledgerops.load.test.plots import job_plot, search_plot
from ledgerops.load.test.result import JobResult, LoadTestResult, seconds, spark_version
from ledgerops.load.test.search_report import SearchSummary, figures
from ledgerops.load.test.slo import LEGS, PERCENTILES, broken
from ledgerops.model.spark_progress import format_instant

TEMPLATES = "ledgerops.load.test"


def page(result: LoadTestResult) -> str:
    """The report of a load test: one file, no script, no network."""
    names = ", ".join(each.measured.job for each in result.jobs)
    trial = result.trial
    return render(
        f"{TEMPLATES}/load_test.html",
        title=f"{names} {'passed' if result.passed else 'failed'} at {result.title}",
        result=result,
        began=None if trial.origin is None else format_instant(trial.origin),
        trigger=seconds(trial.wanted.trigger),
        spark=None if trial.wanted.cores is None else spark_version(trial.wanted.cores),
        percentiles=list(PERCENTILES),
        plots=[job_plot(each, trial.origin or 0.0) for each in result.jobs],
        legs=[list(_legs(each.measured)) for each in result.jobs],
        figures=[list(_figures(each)) for each in result.jobs],
    )


def _legs(measured: Measured) -> Iterator[tuple[str, list[str]]]:
    """A name, and a value for each of PERCENTILES."""
    for leg, summary in LEGS.items():
        yield f"{leg}: {summary}", [seconds(getattr(measured.rows, leg).at(share)) for share in PERCENTILES.values()]
    yield "batch duration", [seconds(measured.batch_seconds(share)) for share in PERCENTILES.values()]


def _figures(job: JobResult) -> Iterator[tuple[str, str]]:
    measured, sustainable = job.measured, job.findings.sustainable
    yield "offered", f"{format.count(measured.offered)} rows/s"
    yield "processed", format.UNKNOWN if measured.processed is None else f"{measured.processed:.1%} of the offered rows"
    if sustainable is None:
        yield "sustainable rate, from these batches", job.findings.unknown_because or format.UNKNOWN
    else:
        value, low, high = (format.count(each) for each in sustainable)
        used = measured.offered / sustainable.value if sustainable.value else 0.0
        yield "sustainable rate, from these batches", f"{value} rows/s ({low} to {high}); offered {used:.0%} of it"
    yield "highest lag", seconds(measured.lag)
    slope = measured.age_slope
    yield "lag growth", format.UNKNOWN if slope is None else f"{slope[0]:+.1%} ± {slope[1]:.1%} of the load"
    yield "highest state", f"{format.count(measured.state_rows)} rows, {format.size(measured.state_bytes)}"
    yield "batches", str(len(measured.inside))


def search_page(searched: SearchSummary) -> str:
    """The report of a search: one file, no script, no network."""
    found = searched.found
    reason = found.reason or ""
    if not reason and found.high is not None:
        reason = f"At {found.high.rate:,.0f} rows/s: {'; '.join(broken(found.high.outcomes))}"
    return render(
        f"{TEMPLATES}/search.html",
        title=searched.headline,
        searched=searched,
        reason=reason[:1].upper() + reason[1:],
        began=format_instant(searched.began),
        took=format.clock(searched.took),
        trials=sum(len(each.trials) for each in found.rates),
        spark=spark_version(searched.options.cores),
        plot=search_plot(searched),
        rates=[
            {
                "rate": rate,
                "failed": "; ".join(broken(rate.outcomes)),
                "figures": figures(rate),
            }
            for rate in found.rates
        ],
    )
