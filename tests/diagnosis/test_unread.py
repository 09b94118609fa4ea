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


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda: reads(every(2.0)), id="one arrives for each that is read"),
        pytest.param(lambda: reads(every(2.5)), id="fewer arrive than may be read"),
        pytest.param(lambda: reads(every(2.0, start=-60.0)), id="the cap is reached, and the wait is long but steady"),
        pytest.param(lambda: reads(every(86_400.0, 365, -365 * 86_400.0)), id="a first backlog of a year"),
        pytest.param(lambda: reads(every(0.1, 300, -86_400.0)), id="a first backlog that was copied at once"),
        pytest.param(lambda: reads([*every(0.1, 300, -3600.0), *every(4.0)]), id="a backlog beside files that arrive"),
        pytest.param(lambda: reads(every(2.0, start=-120.0), cap=2, batches=40), id="a catch-up after a pause"),
        *(
            pytest.param(
                lambda batches=batches: reads(every(0.1, 100, 30.0), batches=batches),
                id=f"{batches} of 100 files that were copied within ten seconds",
            )
            for batches in range(5, 45, 3)
        ),
        pytest.param(lambda: reads(every(2.0), clock=-86_400.0), id="copied one by one with their old times"),
        pytest.param(lambda: reads(every(1.25), clock=-3600.0), id="a clock an hour behind"),
        pytest.param(lambda: reads(every(1.25), clock=3600.0), id="a clock an hour ahead"),
        pytest.param(lambda: reads(every(2.0), cap=5, pace=0.3, batches=30), id="a slow clock, and no cap is reached"),
        pytest.param(
            lambda: reads([*every(0.1, 12, 1.0), *every(1.95, 100, 3.0)], batches=50), id="hardly more than may be read"
        ),
        pytest.param(lambda: reads(every(1.25), batches=13), id="not ten seconds yet"),
        pytest.param(lambda: reads(every(1.25), trigger="available_now"), id="a run that ends by itself"),
        pytest.param(lambda: reads(every(1.25), option=None), id="no cap: each batch reads all there is"),
        pytest.param(lambda: reads(every(1.25), option="maxOffsetsPerTrigger"), id="another cap"),
        pytest.param(lambda: reads(every(1.25), flat=False), id="it is not known whether files still arrive"),
        pytest.param(lambda: reads(every(1.25), known=False), id="a recording without files"),
        pytest.param(lambda: reads(every(1.25), batches=10), id="just started"),
        pytest.param(lambda: reads(every(1.25), idle=True), id="idle"),
        pytest.param(lambda: reads([]), id="no file yet"),
        *(
            pytest.param(
                lambda seed=seed, batches=batches: reads(at_random(2.6, seed), batches=batches),
                id=f"at random, three quarters of the cap {seed}",
            )
            for seed, batches in ((4, 75), (13, 60), (33, 45))
        ),
        *(
            pytest.param(
                lambda seed=seed: reads(at_random(4.0, seed), batches=60), id=f"at random, half the cap {seed}"
            )
            for seed in range(4)
        ),
    ],
)
def test_others_do_not(view):
    assert growth.growth(view()) is None
    assert [finding.rule for finding in Diagnoser()(view()).findings] == []
