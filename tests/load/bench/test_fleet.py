"""Many drivers on one Prometheus, in small: four drivers and a real Prometheus."""

from __future__ import annotations

import re

from ledgerops.mixin.site import Site
from load.bench.fleet import fleet
from tests.programs import needed

SECOND = Site(scrape_seconds=1.0, evaluation_seconds=1.0, time_scale=1 / 60)


def test_all_drivers_are_scraped_the_rules_evaluated_and_those_that_go_are_reported():
    needed("prometheus")
    said = []
    series, scrape, memory, well, gone = fleet(said.append, 4, 2, 2, (0.0, 3.0, 3.0), SECOND)

    each, total = (int(found.replace(",", "")) for found in re.findall(r"([\d,]+) in", series.figure))
    assert total >= 4 * each > 4 * 100
    assert scrape.figure.startswith("4 of 4 answered; ")
    assert "GB resident" in memory.figure
    assert "ledgerops-symptoms" in well.figure and "slowest rules: " in well.figure
    assert gone.what.startswith("the same with 2 drivers gone, ")  # how many alerts fire by then is up to the machine
