"""What a drill sets in its control file: there while the fault lasts, and gone after it."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from ledgerops.drills import BY_NAME
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.runner import _phases


@pytest.mark.parametrize(("name", "expected"), [("flaky-sink", {"stall": 3.0, "every": 4}), ("burst", {})])
def test_the_settings_of_a_fault_hold_until_its_repair(tmp_path, name, expected):
    seen = []

    def look(injector):
        seen.append(json.loads((tmp_path / "control.json").read_text()))

    drill = replace(BY_NAME[name], onset_seconds=0.0, fault_seconds=0.0, recovery_seconds=0.0, inject=look, repair=look)
    injector = Injector(tmp_path, drill.name, {}, 1)
    injector.origin = time.time()
    injector.control.set(other=True)

    bundle = _phases(drill, injector, Bundle(tmp_path))

    assert seen == [{"other": True, **expected}, {"other": True}]
    assert bundle.times["injected"] <= bundle.times["repaired"] <= bundle.times["ended"]
