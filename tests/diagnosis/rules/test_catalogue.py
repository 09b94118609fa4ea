"""What every rule owes its readers, and what all of them together must not do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ledgerops.diagnosis.rules import BY_SLUG, RULES
from ledgerops.diagnosis.runbook import evidence_of
from ledgerops.metrics import METRICS
from ledgerops.model.finding import SEVERITIES

TESTS = Path(__file__).parent
SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation")


def test_a_rule_has_a_runbook_a_module_and_a_test(subtests: pytest.Subtests):
    for rule in RULES:
        with subtests.test(rule.slug):
            module = rule.slug.replace("-", "_")

            assert rule.check.__module__ == f"ledgerops.diagnosis.rules.{module}"
            assert (TESTS / f"test_{module}.py").is_file()
            places = [rule.runbook.find(f"\n{section}: ") for section in SECTIONS]
            assert -1 not in places and places == sorted(places)
            assert rule.title.endswith(".") and rule.title.lower().startswith(rule.slug.replace("-", " "))
            assert rule.severity in SEVERITIES


def test_a_runbook_that_tells_of_its_evidence_does_so_last_with_a_formula_for_each_name(subtests: pytest.Subtests):
    for rule in [each for each in RULES if "Evidence:" in each.runbook]:
        with subtests.test(rule.slug):
            formulas = evidence_of(rule.runbook)

            assert rule.runbook.find("\nEvidence:\n") > rule.runbook.find("\nMitigation: ")
            assert formulas and all(len(formula) > 10 for formula in formulas.values())


def test_a_runbook_quotes_metrics_that_exist(subtests: pytest.Subtests):
    for rule in RULES:
        with subtests.test(rule.slug):
            known = {metric.name for metric in METRICS}
            quoted = set(re.findall(r"ledgerops_\w+", rule.runbook))

            assert quoted, "a runbook without a query leaves the reader alone"
            assert quoted <= known


def test_what_is_explained_exists_and_no_rule_explains_itself():
    for rule in RULES:
        assert set(rule.explains) <= BY_SLUG.keys()

    def reach(slug: str, seen: tuple[str, ...] = ()) -> None:
        assert slug not in seen, f"a circle: {' -> '.join((*seen, slug))}"
        for explained in BY_SLUG[slug].explains:
            reach(explained, (*seen, slug))

    for rule in RULES:
        reach(rule.slug)


def test_slugs_are_unique():
    assert len(BY_SLUG) == len(RULES)
