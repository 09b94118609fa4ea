"""What is done to processes from outside, and that it ends."""

import time

import psutil
import pytest

from ledgerops.drills.catalogue import DRILLS
from ledgerops.drills.drawn.draw import cases
from ledgerops.drills.harness.actions import ACTIONS, cores_taken
from ledgerops.drills.harness.delta_table import DeltaTable
from ledgerops.errors import UserError


def test_a_busy_process_computes_until_it_is_ended(injector):
    before = set(psutil.Process().children())
    with cores_taken(injector, 1):
        [process] = set(psutil.Process().children()) - before
        limit = time.monotonic() + 60.0
        while process.cpu_times().user < 0.5:
            assert time.monotonic() < limit
            time.sleep(0.05)

    assert not process.is_running()


def test_a_column_is_added_to_the_table_that_the_application_reads(injector):
    injector.table = DeltaTable(injector.folder / "input")
    with ACTIONS["add_column"](injector, 0.0):
        pass

    assert injector.table.version == 1


def test_an_application_that_has_ended_is_not_waited_for(injector):
    injector.process = psutil.Popen(["true"])
    injector.process.wait()

    with pytest.raises(UserError, match=r"drill none: the application ended; see .*app\.log"):
        injector.until(lambda: False, 60.0, "nothing")


def test_every_action_of_a_case_is_known():
    drawn = [case for seed in range(1, 9) for case in cases(seed)]
    assert {what for case in [*DRILLS, *drawn] for _, what, _ in case.actions} == set(ACTIONS)
