"""Files that wait in a folder because a batch may not read more."""

import random

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.facts import growth
from ledgerops.diagnosis.facts.unread import unread
from tests.diagnosis.landing import every, reads
from tests.tables import cases


def at_random(seconds: float, seed: int = 1) -> list[float]:
    chance, found, at = random.Random(seed), [], 0.0
    for _ in range(200):
        at += chance.expovariate(1 / seconds)
        found.append(at)
    return found


def test_files_that_arrive_faster_than_the_cap_allows_wait_longer_and_longer():
    wait = unread(reads(every(1.25)))
    assert (wait.source, wait.option, wait.cap) == ("FileStreamSource", "maxFilesPerTrigger", 1)
    assert wait.share == pytest.approx(1 - 1.25 / 2)
    assert wait.last == pytest.approx(19 * 0.75)


@cases(
    "view",
    ("several files a batch", lambda: reads(every(0.25, 300), cap=5, batches=30)),
    ("Spark's options have no case", lambda: reads(every(1.25), option="maxfilespertrigger")),
    ("files at random, three times the cap", lambda: reads(at_random(0.7), batches=60)),
    ("no room in the interval", lambda: reads(every(1.25), seconds=1.9)),
    ("after a few older files", lambda: reads([*every(0.1, 5, -900.0), *every(1.0)], batches=30)),
)
def test_the_query_then_falls_behind(view):
    grown = growth.growth(view())
    assert grown.form == "files"
    assert grown.last > grown.first


def copied(batches):
    return lambda: reads(every(0.1, 100, 30.0), batches=batches)


def scattered(seconds, seed, batches):
    return lambda: reads(at_random(seconds, seed), batches=batches)


@cases(
    "view",
    ("one arrives for each that is read", lambda: reads(every(2.0))),
    ("the cap is reached, and the wait is long but steady", lambda: reads(every(2.0, start=-60.0))),
    ("a first backlog of a year", lambda: reads(every(86_400.0, 365, -365 * 86_400.0))),
    ("a first backlog that was copied at once", lambda: reads(every(0.1, 300, -86_400.0))),
    ("a backlog beside files that arrive", lambda: reads([*every(0.1, 300, -3600.0), *every(4.0)])),
    ("a catch-up after a pause", lambda: reads(every(2.0, start=-120.0), cap=2, batches=40)),
    *((f"{n} of 100 files that were copied within ten seconds", copied(n)) for n in range(5, 45, 3)),
    ("copied one by one with their old times", lambda: reads(every(2.0), clock=-86_400.0)),
    ("a clock an hour behind", lambda: reads(every(1.25), clock=-3600.0)),
    ("a clock an hour ahead", lambda: reads(every(1.25), clock=3600.0)),
    ("a slow clock, and no cap is reached", lambda: reads(every(2.0), cap=5, pace=0.3, batches=30)),
    ("hardly more than may be read", lambda: reads([*every(0.1, 12, 1.0), *every(1.95, 100, 3.0)], batches=50)),
    ("not ten seconds yet", lambda: reads(every(1.25), batches=13)),
    ("a run that ends by itself", lambda: reads(every(1.25), trigger="available_now")),
    ("no cap: each batch reads all there is", lambda: reads(every(1.25), option=None)),
    ("another cap", lambda: reads(every(1.25), option="maxOffsetsPerTrigger")),
    ("it is not known whether files still arrive", lambda: reads(every(1.25), flat=False)),
    ("a recording without files", lambda: reads(every(1.25), known=0)),
    ("the files of the newest batches are not known", lambda: reads(every(1.25), known=20, batches=30)),
    ("just started", lambda: reads(every(1.25), batches=10)),
    ("idle", lambda: reads(every(1.25), idle=True)),
    ("no file yet", lambda: reads([])),
    *((f"at random, three quarters of the cap {n}", scattered(2.6, n, m)) for n, m in ((4, 75), (13, 60), (33, 45))),
    *((f"at random, half the cap {n}", scattered(4.0, n, 60)) for n in range(4)),
)
def test_others_do_not(view):
    assert growth.growth(view()) is None
    assert [finding.rule for finding in Diagnoser()(view()).findings] == []
