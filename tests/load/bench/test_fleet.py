"""Many drivers on one Prometheus, in small: four drivers and a real Prometheus."""

import re

from ledgerops.mixin.site import Site
from load.bench.fleet import SITE, fleet
from load.bench.fleet_table import Watched, lines_of
from load.bench.lines import NO, YES, table
from tests.programs import needed
from tests.tables import cases

QUICK = Site(scrape_seconds=5.0, evaluation_seconds=1.0, time_scale=1 / 60)


def test_all_drivers_are_scraped_the_rules_evaluated_and_those_that_go_are_reported():
    needed("prometheus")
    said = []
    series, scrape, memory, well, gone, start = fleet(said.append, 4, 2, 2, (5.0, 5.0), QUICK)

    each, total = (int(found.replace(",", "")) for found in re.findall(r"([\d,]+) in", series.figure))
    assert total >= 4 * each > 4 * 100
    assert scrape.figure.startswith("4 of 4 answered; ")
    assert "GB resident" in memory.figure
    assert ("ledgerops-symptoms" in well.figure or "others at most" in well.figure) and "slowest rules: " in well.figure
    assert gone.what.startswith("the same with 2 drivers gone, ")  # how many alerts fire by then is up to the machine
    assert start.what == "the same from Prometheus' start until each driver was scraped 4 times"
    assert float(start.figure.split(" s; ")[0]) >= 15  # four scrapes are fifteen seconds apart


START = Watched(
    seconds=171.2, longest=79.04, groups={"symptoms": [92.4]}, rules={"LedgerQueryDown": [60.1]}, missed=11,
    samples=9e9, cpu=2.0, median=50.0, p99=70.0, series=1.0, answered=100.0,
)  # fmt: skip
STEADY = Watched(
    seconds=180.3, cpu=0.412, samples=52_336.4,
    groups={"symptoms": [1.1, 1.5, 0.9], "observer": [2.25], "causes": [0.1], "causes-2": [0.04]},
    rules={
        "LedgerDriverLost": [1.1], "LedgerFallingBehind": [1.0], "LedgerQueryDown": [0.5], "LedgerWatchdog": [0.1],
    },
    answered=500, median=0.131, p99=0.733, longest=1.5, series=1_509_502, resident=6.4e9, peak=6.5e9,
)  # fmt: skip
LOST = Watched(
    seconds=150.0, groups={"symptoms": [4.66]}, rules={"LedgerDriverLost": [4.53]}, peak=6.9e9, firing=251,
)  # fmt: skip


def made(start=START, steady=STEADY, lost=LOST):
    return list(lines_of("500 drivers", "2,874 in 0.32 MB a driver", 500, start, steady, lost, SITE))


def test_the_table_has_the_steady_figures_and_the_start_in_a_line_of_its_own():
    assert table(made()) == (
        "| what | measured | budget | holds |\n"
        "| --- | --- | --- | --- |\n"
        "| 500 drivers: series | 2,874 in 0.32 MB a driver, 1,509,502 in all |  |  |\n"
        "| a scrape of each every 30 s | 500 of 500 answered; 52,336 samples a second; median 0.13 s, p99 0.73 s, "
        "longest 1.50 s |  |  |\n"
        "| Prometheus | 6.4 GB resident (4.2 kB a series), peak 6.9 GB; 0.41 cores |  |  |\n"
        "| rules, nothing wrong: the median evaluation of each group | observer 2.25 s (longest 2.25 s), symptoms "
        "1.10 s (longest 1.50 s), 2 others at most 0.10 s; slowest rules: LedgerDriverLost 1.10 s (longest 1.10 s), "
        "LedgerFallingBehind 1.00 s (longest 1.00 s), LedgerQueryDown 0.50 s (longest 0.50 s); 0 evaluations left out "
        "| each <= 50% of 15 s | yes |\n"
        "| the same with 250 drivers gone, 251 alerts firing at the end | symptoms 4.66 s (longest 4.66 s); slowest "
        "rules: LedgerDriverLost 4.53 s (longest 4.53 s); 0 evaluations left out | each <= 50% of 15 s | yes |\n"
        "| the same from Prometheus' start until each driver was scraped 4 times | 171 s; the longest scrape 79.0 s; "
        "symptoms 92.40 s (longest 92.40 s); slowest rules: LedgerQueryDown 60.10 s (longest 60.10 s); 11 evaluations "
        "left out |  |  |\n"
    )


@cases(
    "steady, holds",
    ("half of the interval", Watched(groups={"symptoms": [1.0, 7.5]}), YES),
    ("more than half of the interval", Watched(groups={"symptoms": [1.0, 7.6]}), NO),
    ("a group without an evaluation", Watched(groups={"observer": [0.4]}, skipped={"symptoms"}), NO),
    ("no evaluation at all", Watched(), NO),
)
def test_the_budget_holds_only_where_each_group_was_evaluated_in_time(steady, holds):
    assert made(steady=steady)[3].holds == holds


def test_a_group_that_was_not_evaluated_is_named():
    figure = made(steady=Watched(groups={"observer": [0.4]}, skipped={"symptoms"}))[3].figure
    assert figure.startswith("observer 0.40 s (longest 0.40 s), symptoms not once; ")
