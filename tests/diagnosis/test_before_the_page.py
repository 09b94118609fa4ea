"""A page has its cause: the diagnosis has named it when the alert begins, however short a minute of the alerts is."""

import re

import pytest

from ledgerops.agent.worker import TICK_SECONDS
from ledgerops.diagnosis.rules import BY_SLUG
from ledgerops.mixin.alerts import query_stuck
from ledgerops.mixin.site import Site
from tests.e2e import evening

SITES = [pytest.param(Site(), id="as it is rendered"), pytest.param(evening.SITE, id="an evening")]


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(ms|s|m)", text).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60}[unit]


def waited(site, alert):
    """Between the beginning of what an alert is about and the alert, less what a judgement may be late."""
    return seconds(site.window(alert.hold)) - TICK_SECONDS


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("interval", [1.0, 5.0, 60.0])
@pytest.mark.parametrize("batch", [0.5, 2.0, 4.0])
def test_a_query_that_hangs_is_named(history, site, batch, interval):
    silent = query_stuck.spare_seconds(site) + 3 * (batch + interval)
    running = silent - interval + waited(site, query_stuck.ALERT)  # it began a trigger after the last sign
    view = history(running=running, seconds=[batch] * 12, interval=interval)
    assert list(BY_SLUG["query-stuck"].check(view))
