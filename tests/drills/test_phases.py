"""What a scripted drill does to its application: there while the fault lasts, and gone after it."""

import json
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest

from ledgerops.drills.catalogue import BY_NAME
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.run import CaseRun


@pytest.mark.parametrize(("name", "expected"), [("flaky-sink", {"stall": 3.0, "every": 4}), ("burst", {})])
def test_a_fault_lasts_from_the_onset_to_the_repair(injector, tmp_path, name, expected):
    seen = []

    @contextmanager
    def look(_):
        seen.append(json.loads((tmp_path / "outside.json").read_text()))
        yield
        seen.append(json.loads((tmp_path / "outside.json").read_text()))

    drill = replace(BY_NAME[name], onset_seconds=0.0, fault_seconds=0.0, seconds=0.0, breaks=look)
    (tmp_path / "times.json").write_text(json.dumps({"origin": time.time()}))
    bundle = Bundle(tmp_path)
    injector.origin = bundle.times["origin"]
    injector.outside.set(other=True)
    CaseRun(drill, injector, seed=1, lanes=1)._play(bundle)
    injector.opened.close()

    assert seen == [{"other": True, **expected}, {"other": True}]
    assert bundle.times["injected"] <= bundle.times["repaired"] <= bundle.times["ended"]
