"""Calibration: the ceiling is found in few steps, and one bad moment is not taken for it."""

import itertools
import json
import threading

import pytest

from ledgerops.cli import main
from ledgerops.load.generator import calibration
from ledgerops.load.generator.calibration import (
    FIRST_RATE,
    MAX_SECONDS,
    STEP_SECONDS,
    Step,
    attempts,
    ceiling,
    search,
)


class Machine:
    """Carries `most` records a second; the steps numbered in `hiccups` fail whatever the rate."""

    def __init__(self, most, hiccups=()):
        self.most, self.hiccups, self.tried, self.now = most, hiccups, [], 0.0

    def __call__(self, rate):
        fails = rate > self.most or len(self.tried) in self.hiccups
        self.tried.append(rate)
        self.now += STEP_SECONDS
        return Step(rate, rate, 0.005, 1.0 if fails else 0.01, 0.5, "late" if fails else None)

    def calibrate(self, stopped=lambda: False):
        return list(search(self, stopped, lambda: self.now))


@pytest.mark.parametrize("most", [12_000, 30_000, 120_000, 400_000])
def test_the_ceiling_is_found_within_its_tolerance_and_time(most):
    machine = Machine(most)
    found = ceiling(machine.calibrate())
    assert most / 1.3 <= found <= most
    assert machine.now <= MAX_SECONDS


def test_one_bad_moment_is_not_the_ceiling():
    assert ceiling(Machine(110_000, hiccups={1}).calibrate()) >= 90_000


def test_a_machine_that_carries_nothing_has_no_ceiling():
    machine = Machine(0)
    assert ceiling(machine.calibrate()) is None
    assert machine.now <= MAX_SECONDS


def test_it_ends_when_it_is_asked_to():
    machine = Machine(1e9)
    assert len(machine.calibrate(lambda: len(machine.tried) == 2)) == 2
    assert machine.tried == [FIRST_RATE, 2 * FIRST_RATE]


def attempt(wait):
    return attempts(wait, late_budget=9.0)(2_000.0)


def test_a_rate_is_tried_on_the_clients_own_broker():
    step = attempt(threading.Event().wait)
    assert step.asked == 2_000
    assert 0 < step.sent < 2_100
    assert 0 < step.cores < 2


def test_a_step_that_is_cut_off_holds_nothing():
    looks = itertools.count()
    assert attempt(lambda seconds: next(looks) > 20).why == "it stopped early"


def test_the_table_ends_with_what_to_ask_for(capsys, monkeypatch):
    monkeypatch.setattr(calibration, "MAX_SECONDS", 9.0)
    assert main(["load", "calibrate", "--json", "--late-budget", "5s"]) == 0
    document = json.loads(capsys.readouterr().out)

    assert document["holds"] == max(step["asked"] for step in document["steps"] if step["holds"])
    assert document["ask_at_most"] == pytest.approx(0.8 * document["holds"])
