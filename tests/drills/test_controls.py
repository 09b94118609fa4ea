"""The healthy controls: each of the catalogue is there, breaks nothing, and has a load plan that can be read."""

import pytest

from ledgerops.drills import DRILLS
from ledgerops.ledger.plan.plan import parse_plan

CONTROLS = [drill for drill in DRILLS if drill.healthy]


def test_every_control_of_the_catalogue_is_run():
    covered = {each for drill in CONTROLS for each in drill.id.split()}

    assert {f"H{number}" for number in range(1, 16)} | {"F22"} <= covered


@pytest.mark.parametrize("drill", CONTROLS, ids=lambda drill: drill.name)
def test_a_control_has_nothing_to_be_found(drill):
    assert drill.faults == drill.expected == drill.may == drill.elsewhere == ()
    assert drill.effect is None


class Plans:
    """Collects the load plans of a drill instead of starting its queries."""

    def __init__(self):
        self.found, self.each_turn, self.spark, self.origin, self.kept = [], [], None, 0.0, {}

    def rows(self, plan, **options):
        self.found.append(plan)
        return plan

    def job(self, name, rows, **options):
        self.found.append(rows)


@pytest.mark.parametrize("drill", CONTROLS, ids=lambda drill: drill.name)
def test_every_plan_of_a_control_is_read(drill):
    app = Plans()
    drill.start(app)

    assert app.found
    assert all(parse_plan(text).phases for text in app.found)
