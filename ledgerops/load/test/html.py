"""The report of a load test as one HTML file: the verdict, what was asked and measured, the plots, the causes."""

from __future__ import annotations

from collections.abc import Sequence

from ledgerops.analysis.html.markup import Markup, Value, join, tag, text
from ledgerops.analysis.html.page import framed
from ledgerops.analysis.html.parts import table
from ledgerops.common import format
from ledgerops.load.test.plots import STYLE, figure
from ledgerops.load.test.result import JobResult, Result, seconds, spark, ways
from ledgerops.load.test.slo import PERCENTILES, Outcome
from ledgerops.model.spark_progress import format_instant
from ledgerops.version import __version__

WORDS = {"held": "held", "failed": "failed", "unknown": "unknown: counts as failed"}
STYLES = {"held": "good", "failed": "critical", "unknown": "warning"}
LEG_WORDS = {
    "latency": "latency: from when the row was due to the end of its batch",
    "waiting": "of that, waiting for its batch to begin",
    "working": "of that, in its batch",
}
SENT = "of waiting, by the generator's samples"


def page(result: Result) -> str:
    """Everything in one file; no script, no network."""
    passed = result.passed
    names = ", ".join(each.measured.job for each in result.jobs)
    title = f"{names} {'passed' if passed else 'failed'} at {result.title}"
    body = [
        tag("h1", title, class_="good" if passed else "critical"),
        *(tag("p", _lead(each, len(result.jobs) > 1), class_="lead") for each in result.jobs if not each.passed),
        _meta(result),
        *(_section(each, result) for each in result.jobs),
        _how(result),
    ]
    return render(title, body)


def render(title: str, body: list[Markup]) -> str:
    """A body with the style and the foot of load tests and searches."""
    foot = tag(
        "footer", f"ledgerops {__version__}; every number can be computed again from the recording", class_="faint"
    )
    return framed(title, [Markup(f"<style>{STYLE}</style>"), *body, foot])


def _lead(job: JobResult, several: bool) -> Markup:
    words = job.summary.removeprefix("FAILED: ")
    return text(f"{job.measured.job}: {words}" if several else words[:1].upper() + words[1:])


def _meta(result: Result) -> Markup:
    trial = result.trial
    wanted = trial.wanted
    where = "" if wanted.cores is None else f"; {spark(wanted.cores)}"
    began = "did not begin" if trial.origin is None else format.instant(format_instant(trial.origin))
    told = (
        f"{began}; {wanted.seconds:.0f} s measured after {wanted.warm_up:.0f} s of warm-up; trigger interval "
        f"{seconds(wanted.trigger)}{where}"
    )
    return tag("p", told, class_="meta")


def _section(job: JobResult, result: Result) -> Markup:
    return tag(
        "section",
        *([tag("h2", job.measured.job)] if len(result.jobs) > 1 else []),
        tag("h3", "Objectives"),
        _objectives(job.outcomes),
        *_causes(job),
        tag(
            "figure",
            figure(job, result.trial.origin or 0.0),
            tag("figcaption", "Grey is the warm-up, which is not measured. Lines and bars have the same time axis."),
        ),
        tag("h3", "Figures of the measured part"),
        _legs(job, result),
        _rates(job),
        *_findings(job, result.trial.origin or 0.0),
    )


def _objectives(outcomes: Sequence[Outcome]) -> Markup:
    """A row for each objective, what was measured, and whether it held."""
    return table(
        ["objective", "measured", "wanted", ""], [_objective(each) for each in outcomes], ("measured", "wanted")
    )


def _objective(each: Outcome) -> Markup:
    value: Value = each.reason if each.value is None else each.slo.show(each.value)
    return tag(
        "tr",
        tag("td", each.slo.measure),
        tag("td", value, class_="amount" if each.value is not None else None),
        tag("td", f"{each.slo.comparison} {each.wanted}", class_="amount"),
        tag("td", tag("span", WORDS[each.status], class_=f"tagged {STYLES[each.status]}")),
    )


def _causes(job: JobResult) -> list[Markup]:
    if not job.causes:
        return []
    return [tag("h3", "Cause" if len(job.causes) == 1 else "Causes")] + [
        tag("div", tag("h3", each.rule), tag("p", each.because), class_="cause critical") for each in job.causes
    ]


def _legs(job: JobResult, result: Result) -> Markup:
    rows = []
    for leg, words in LEG_WORDS.items():
        told = getattr(job.measured, leg)
        values = [tag("td", seconds(told.at(share)), class_="amount") for share in PERCENTILES.values()]
        rows.append(tag("tr", tag("td", words), *values))
    for name, told in ways(result).items():
        values = [tag("td", seconds(told.at(share)), class_="amount") for share in PERCENTILES.values()]
        rows.append(tag("tr", tag("td", f"{SENT}: {name}"), *values))
    values = [tag("td", seconds(job.measured.batch(share)), class_="amount") for share in PERCENTILES.values()]
    rows.append(tag("tr", tag("td", "batch duration"), *values))
    return table(["", *PERCENTILES], rows, tuple(PERCENTILES))


def _rates(job: JobResult) -> Markup:
    measured, found = job.measured, job.findings
    line = measured.line
    told: list[tuple[str, str]] = [
        ("offered", f"{format.count(measured.offered)} rows/s"),
        ("processed", _share(measured.processed)),
    ]
    if found.sustainable is not None:
        value, low, high = (format.count(each) for each in found.sustainable)
        used = measured.offered / found.sustainable.value if found.sustainable.value else 0.0
        told.append(("sustainable by these batches", f"{value} rows/s ({low} to {high}); offered {used:.0%} of it"))
    else:
        told.append(("sustainable by these batches", found.untold or format.UNKNOWN))
    told += [
        ("lag at its highest", seconds(measured.lag)),
        ("growth of the lag", format.UNKNOWN if line is None else f"{line[0]:+.1%} ± {line[1]:.1%} of the load"),
        ("state at its highest", f"{format.count(measured.state_rows)} rows, {format.size(measured.state_bytes)}"),
        ("batches", str(len(measured.inside))),
    ]
    return table(["", "value"], [tag("tr", tag("td", name), tag("td", value)) for name, value in told])


def _share(value: float | None) -> str:
    return format.UNKNOWN if value is None else f"{value:.1%} of it"


def _findings(job: JobResult, origin: float) -> list[Markup]:
    if not job.findings.stretches:
        return [tag("p", "The diagnosis found nothing at warning or above while it was measured.", class_="faint")]
    rows = [
        tag(
            "tr",
            tag("td", tag("span", each.finding.severity, class_=f"tagged {each.finding.severity}")),
            tag("td", each.finding.rule, class_="when"),
            tag("td", f"{each.began - origin:.0f} s", class_="amount"),
            tag("td", "the end" if each.until is None else f"{each.until - origin:.0f} s", class_="amount"),
            tag("td", (each.root or each.finding).summary),
        )
        for each in job.findings.stretches
    ]
    return [
        tag("h3", "What the diagnosis found"),
        table(["", "rule", "from", "to", "what"], rows, ("from", "to")),
    ]


def _how(result: Result) -> Markup:
    return join(
        [
            tag("h2", "How it was measured"),
            tag(
                "p",
                "The plan says when each row is due, whether or not the query is ready for it; a row is finished when "
                "its batch ends. Latency counts from the due time, for every row, by the offsets of the batches; rows "
                "that were never finished count with their age at the end. Spark's own rates are not used. What is not "
                "known fails an objective.",
            ),
            tag(
                "p",
                "Diagnose it again: ",
                tag("code", f"ledgerops diagnose --from {result.trial.recording}"),
                class_="meta",
            ),
        ]
    )
