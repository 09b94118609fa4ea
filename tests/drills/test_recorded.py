"""The recordings of the drills, each replayed once: a fault is named as the root cause, nothing is found that is not
true, no finding is without evidence, and every number can be recomputed from the recording."""

import re

import pytest

from ledgerops.diagnosis.facts.known_failures import KNOWN
from ledgerops.diagnosis.proof import proof
from ledgerops.diagnosis.report import finding_document
from ledgerops.diagnosis.rules import RULES
from ledgerops.drills.catalogue import BY_NAME
from ledgerops.drills.scoring.score import score
from ledgerops.metrics.first_steps import BY_LARGEST_PART, FIRST_STEPS, ONE_LONG_BATCH
from tests.diagnosis.contradictions import contradictions
from tests.drills.saved import NAMES, bundle, numbers, verdicts
from tests.evidence.numbers import blind, wrong

SAID = re.compile(r" (?P<value>[\d.,]+\S*(?: \S+)?) \((?:usually|at most|at least|expected) (?P<limit>.*)\)$")

drills = pytest.mark.parametrize("name", NAMES)


@drills
def test_a_drill_is_judged_as_it_was_published(name):
    found = score(BY_NAME[name], bundle(name), verdicts=verdicts(name))
    assert found.passed, (found.early, found.untrue, found.faults)


@drills
def test_no_finding_is_without_evidence_and_health_is_a_percentage(name):
    for verdict in verdicts(name):
        assert 0 <= verdict.health <= 100
        assert all(finding.evidence for finding in verdict.findings)


@drills
def test_status_findings_and_remedies_agree_with_the_figures(name):
    for verdict in verdicts(name):
        assert contradictions(verdict) == []


@drills
def test_every_number_of_every_finding_is_in_the_recording(name):
    assert wrong(numbers(name)) == ()


@drills
@pytest.mark.parametrize("changed", [0.8, 1.2])
def test_a_number_that_is_a_fifth_off_is_not_in_the_recording(name, changed):
    assert blind(numbers(name), changed) == ()


@drills
def test_a_number_that_is_told_does_not_read_as_what_is_expected(name):
    told = {
        each
        for verdict in verdicts(name)
        for finding in verdict.root_causes
        for each in proof(finding_document(finding)["evidence"]).split("; ")
    }

    assert [each for each in told if (same := SAID.search(each)) and same["value"] == same["limit"]] == []


@drills
def test_the_first_step_is_one_that_is_written_for_the_cause_and_can_be_undone(name):
    known = {step.general for steps in FIRST_STEPS.values() for step in steps.values()}
    known |= {*BY_LARGEST_PART.values(), ONE_LONG_BATCH, *(known.first_step.action for known in KNOWN)}
    roots = [root for verdict in verdicts(name) for root in verdict.root_causes]

    assert {root.rule for root in roots if not root.remedies} == set()
    assert {(root.rule, root.remedies[0].action) for root in roots if root.remedies[0].general not in known} == set()
    assert {(root.rule, root.remedies[0].action) for root in roots if not root.remedies[0].safe} == set()


def test_rows_that_are_about_to_be_deleted_are_kept_before_the_cap_is_raised():
    """The cap stays the root cause, as the drill's truth has it."""
    steps = {
        tuple(step.action for step in root.remedies)
        for verdict in verdicts("rate-limited")
        for root in verdict.root_causes[:1]
        if root.rule == "rate-limited" and any(each.rule == "retention-risk" for each in verdict.findings)
    }

    assert len(steps) > 1  # the number grows with the backlog
    for keep, cap in steps:
        assert keep == "raise retention.ms of transactions now, and retention.bytes if it is set"
        assert cap.startswith("raise maxOffsetsPerTrigger to about ")


def test_every_drill_has_a_recording():
    assert set(NAMES) == set(BY_NAME)


def test_what_no_drill_exercises_is_known():
    """Symptoms that no single fault must show, rules whose fault could not be produced on one machine, and notes that
    a query gets without a fault."""
    exercised = {rule for drill in BY_NAME.values() for fault in drill.faults for rule in fault.rules}

    assert {rule.slug for rule in RULES} - exercised == UNDRILLED


UNDRILLED = {
    "catching-up", "executor-lost", "falling-behind", "freshness-breach", "input-recomputed", "long-batches",
    "many-small-files", "memory-leak", "no-checkpoint", "partition-time-spread", "retention-risk", "rows-dropped",
    "statement-retries", "task-retries", "too-few-slots", "trigger-overrun",
}  # fmt: skip
