"""What every rule owes its readers, and what all of them together must not do."""

import re
from pathlib import Path

import pytest

from ledgerops.diagnosis.batch_parts import PARTS
from ledgerops.diagnosis.causes import CAUSES
from ledgerops.diagnosis.rules import BY_SLUG, RULES
from ledgerops.diagnosis.runbook import evidence_of
from ledgerops.metrics import METRICS
from ledgerops.model.finding import SEVERITIES
from tests.diagnosis.thresholds import DIAGNOSIS, imported, modules, thresholds
from tests.tables import cases

TESTS = Path(__file__).parent.parent
ALONE = [path for kind in ("rules", "causes") for path in modules(kind) if path.stem != "__init__"]
CAUSE_SLUGS = {cause.slug for cause in CAUSES}
MAX_THRESHOLDS = 150  # fewer is better: lower it when one goes
MAX_LINES = 150  # of a rule or a cause
SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation")


of_rule = pytest.mark.parametrize("rule", RULES, ids=[rule.slug for rule in RULES])


@of_rule
def test_a_rule_has_a_module_a_test_and_a_runbook_that_quotes_metrics_that_exist(rule):
    module, kind = rule.slug.replace("-", "_"), "causes" if rule.slug in CAUSE_SLUGS else "rules"
    assert (DIAGNOSIS / kind / f"{module}.py").is_file()
    assert kind == "causes" or rule.check.__module__ == f"ledgerops.diagnosis.rules.{module}"
    assert (TESTS / kind / f"test_{module}.py").is_file()
    assert rule.title.endswith(".") and rule.title.lower().startswith(rule.slug.replace("-", " "))
    assert rule.severity in SEVERITIES

    places = [rule.runbook.find(f"\n{section}: ") for section in SECTIONS]
    assert -1 not in places and places == sorted(places)
    quoted = set(re.findall(r"ledgerops_\w+", rule.runbook))
    assert quoted, "a runbook without a query leaves the reader alone"
    assert quoted <= {metric.name for metric in METRICS}


@of_rule
def test_a_runbook_tells_of_its_evidence_last_with_a_formula_for_each_name(rule):
    formulas = evidence_of(rule.runbook)
    assert rule.runbook.find("\nEvidence:\n") > rule.runbook.find("\nMitigation: ")
    assert formulas and all(len(formula) > 10 for formula in formulas.values())


def test_what_is_explained_exists_and_no_rule_explains_itself():
    def reach(slug: str, seen: tuple[str, ...] = ()) -> None:
        assert slug not in seen, f"a circle: {' -> '.join((*seen, slug))}"
        for explained in BY_SLUG[slug].explains:
            reach(explained, (*seen, slug))

    assert len(BY_SLUG) == len(RULES), "slugs are unique"
    for rule in RULES:
        reach(rule.slug)


@of_rule
@cases(
    "case",
    ("no batch yet", {"warm": 0}),
    ("just begun", {}),
    ("healthy for long", {"seconds": [1] * 140}),
    ("idle", {"seconds": [1] * 40, "idle": True}),
    ("stopped", {"seconds": [1] * 40, "stopped": True}),
)
def test_a_rule_says_nothing_of_a_query_that_is_well(history, rule, case):
    assert list(rule.check(history(**case))) == []


def test_no_rule_and_no_cause_knows_another():
    """What is between them is for the arbiter: each can be read, changed and removed alone."""
    known = {
        f"{path.parent.name}/{path.name}": others
        for path in ALONE
        if (others := [name for name in imported(path) if re.search(r"diagnosis\.(rules|causes)(\.|$)", name)])
    }

    assert known == {}


def test_each_part_of_a_batch_has_one_owner_at_most_and_exists():
    for kind in ("parts", "born", "grown"):
        owned = [part for cause in CAUSES for part in getattr(cause, kind)]
        assert set(owned) <= set(PARTS) and len(owned) == len(set(owned))


def test_thresholds_are_few_each_is_defined_once_and_none_that_is_imported_is_defined_anew():
    places: dict[str, list[str]] = {}
    for path in modules("**"):
        for name in thresholds(path):
            places.setdefault(name, []).append(path.stem)
        assert not {name.rpartition(".")[2] for name in imported(path)} & thresholds(path).keys(), path

    assert {name: found for name, found in places.items() if len(found) > 1} == {}
    assert len(places) <= MAX_THRESHOLDS


def test_a_rule_is_short():
    lines = {path.name: len(path.read_text().splitlines()) for path in ALONE}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}
