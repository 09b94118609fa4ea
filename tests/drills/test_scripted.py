"""The catalogue of scripted drills: each has its times in order and a truth that a diagnosis can name."""

import re

import pytest

from ledgerops.diagnosis.rules import RULES
from ledgerops.drills.catalogue import BY_NAME, DRILLS
from ledgerops.ledger.plan.plan import parse_plan

each_drill = pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.name)


@each_drill
def test_a_drill_is_repaired_after_its_onset_and_before_its_end(drill):
    assert 0 < drill.onset_seconds < drill.repair_seconds <= drill.seconds
    assert drill.start is not None


@each_drill
def test_a_fault_has_an_effect_and_known_rules_that_name_it_and_a_healthy_run_has_none(drill):
    named = {rule for fault in drill.faults for rule in fault.rules} | {*drill.may, *drill.elsewhere}

    assert (drill.effect is None) is drill.healthy
    assert bool(drill.faults and drill.faults[0].rules) is not drill.healthy
    assert named <= {rule.slug for rule in RULES}
    assert not (drill.healthy and named)


@each_drill
def test_a_place_and_a_remedy_are_patterns_and_name_only_queries_of_the_drill(drill):
    for fault in drill.faults:
        assert fault.query in drill.roles
        for pattern in (*fault.component, fault.remedy):
            re.compile(pattern.format(**dict.fromkeys(drill.roles, "name")))


def test_no_two_drills_have_the_same_name_or_place_in_the_catalogue():
    names = [drill.name for drill in DRILLS]
    ids = [part for drill in DRILLS for part in drill.id.split()]

    assert len(names) == len(set(names))
    assert len(ids) == len(set(ids))
    assert BY_NAME.keys() == {drill.name for drill in DRILLS}


def test_every_control_of_the_catalogue_is_run():
    covered = {each for drill in DRILLS if drill.healthy for each in drill.id.split()}
    assert {f"H{number}" for number in range(1, 16)} | {"F22"} <= covered


class Plans:
    """Collects the load plans of a drill instead of starting its queries."""

    def __init__(self):
        self.found, self.each_turn, self.spark, self.origin, self.kept = [], [], None, 0.0, {}

    def rows(self, plan, **options):
        self.found.append(plan)
        return plan

    def job(self, name, rows, **options):
        self.found.append(rows)


@pytest.mark.parametrize("drill", [drill for drill in DRILLS if drill.healthy], ids=lambda drill: drill.name)
def test_every_plan_of_a_control_is_read(drill):
    app = Plans()
    drill.start(app)

    assert app.found
    assert all(parse_plan(text).phases for text in app.found)
