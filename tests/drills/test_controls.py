"""The healthy controls: each of the catalogue is there, breaks nothing, and has a load plan that can be read."""

import sys

import pytest

from ledgerops.drills import DRILLS
from ledgerops.ledger.plan.plan import parse_plan

CONTROLS = [drill for drill in DRILLS if drill.kind == "control"]


def test_every_control_of_the_catalogue_is_run():
    covered = {each for drill in CONTROLS for each in drill.id.split()}

    assert {f"H{number}" for number in range(1, 16)} | {"F22"} <= covered


@pytest.mark.parametrize("drill", CONTROLS, ids=lambda drill: drill.name)
def test_a_control_has_nothing_to_be_found(drill):
    assert drill.truth.faults == drill.truth.may == drill.truth.elsewhere == ()
    assert drill.effect is None


def test_every_plan_of_a_control_is_read():
    modules = {sys.modules[drill.start.__module__] for drill in CONTROLS}
    texts = [text for module in modules for text in vars(module).values() if isinstance(text, str)]
    plans = [text for text in texts if "phases:" in text]

    assert len(plans) >= len(CONTROLS)
    assert all(parse_plan(text).phases for text in plans)
