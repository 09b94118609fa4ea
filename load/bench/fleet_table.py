"""The published table of many drivers on one Prometheus, made of what was read in three times, one after the other."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from ledgerops.mixin.site import Site
from load.bench.lines import Line, limit

MIN_SCRAPES = 4  # of each driver before the start is over: the first ones, with all series new, take far longer
QUICK_SECONDS = 0.2  # a group that never took longer is told with the others
MAX_SHARE = 0.5  # of a rule group's interval that its evaluation may take


@dataclass
class Watched:
    """What was read of Prometheus during some minutes; sizes and states are those at their end."""

    seconds: float = 0.0
    cpu: float = 0.0  # cores
    samples: float = 0.0  # appended a second
    groups: dict[str, list[float]] = field(default_factory=dict)  # by rule group: its evaluations, seconds
    rules: dict[str, list[float]] = field(default_factory=dict)  # by rule
    skipped: set[str] = field(default_factory=set)  # rule groups without an evaluation that began in this time
    missed: float = 0.0  # evaluations that were left out
    answered: float = 0.0  # drivers
    median: float = 0.0  # of the drivers' newest scrapes, seconds
    p99: float = 0.0
    longest: float = 0.0  # of all their scrapes in this time, seconds
    series: float = 0.0
    resident: float = 0.0  # bytes
    peak: float = 0.0  # bytes, since Prometheus started
    firing: float = 0.0  # alerts

    @property
    def text(self) -> str:
        """The groups, those that may take long by name, and the three slowest rules: median and longest of each."""
        groups, rules = (sorted(each.items(), key=lambda row: -max(row[1])) for each in (self.groups, self.rules))
        quick = [max(took) for _, took in groups if max(took) < QUICK_SECONDS]
        named = [f"{name} {_spread(took)}" for name, took in groups[: len(groups) - len(quick)]]
        named += [f"{len(quick)} others at most {max(quick):.2f} s"] if quick else []
        named += [f"{name} not once" for name in sorted(self.skipped)]
        return f"{', '.join(named)}; slowest rules: {', '.join(f'{name} {_spread(took)}' for name, took in rules[:3])}"


def _spread(took: list[float]) -> str:
    return f"{median(took):.2f} s (longest {max(took):.2f} s)"


def lines_of(
    what: str, each: str, drivers: int, start: Watched, steady: Watched, lost: Watched, site: Site
) -> Iterator[Line]:
    """The published table. `what` is scraped and `each` of it so large; the three times follow each other."""
    yield Line(f"{what}: series", f"{each}, {steady.series:,.0f} in all")
    yield Line(
        f"a scrape of each every {site.scrape_seconds:.0f} s",
        f"{steady.answered:.0f} of {drivers} answered; {steady.samples:,.0f} samples a second; median "
        f"{steady.median:.2f} s, p99 {steady.p99:.2f} s, longest {steady.longest:.2f} s",
    )
    yield Line(
        "Prometheus",
        f"{steady.resident / 1e9:.1f} GB resident ({steady.resident / max(steady.series, 1) / 1e3:.1f} kB a series), "
        f"peak {lost.peak / 1e9:.1f} GB; {steady.cpu:.2f} cores",
    )
    yield _rules("rules, nothing wrong: the median evaluation of each group", steady, site.evaluation_seconds)
    yield _rules(
        f"the same with {drivers // 2} drivers gone, {lost.firing:,.0f} alerts firing at the end",
        lost, site.evaluation_seconds,
    )  # fmt: skip
    yield Line(
        f"the same from Prometheus' start until each driver was scraped {MIN_SCRAPES} times",
        f"{start.seconds:.0f} s; the longest scrape {start.longest:.1f} s; {start.text}; {start.missed:.0f} "
        "evaluations left out",
    )


def _rules(what: str, found: Watched, interval: float) -> Line:
    figure = f"{found.text}; {found.missed:.0f} evaluations left out"
    longest = max((max(took) for took in found.groups.values()), default=math.inf)
    share = math.inf if found.skipped else longest / interval
    return limit(what, share, figure, MAX_SHARE, f"each <= {MAX_SHARE:.0%} of {interval:.0f} s")
