"""Whatever dashboards, alerts and documents ask for is exported, with the labels that they name."""

import re

import pytest

from ledgerops.metrics import METRICS, VERDICT_METRICS
from ledgerops.metrics import QUERY_METRICS as OF_QUERIES
from ledgerops.mixin.rule_files import FILES, groups
from ledgerops.mixin.site import Site
from ledgerops.notify import metrics as notify_metrics
from tests.paths import ROOT

FAMILIES = {metric.name: metric for metric in METRICS}
# ledgerops notify serves a page of its own
NOTIFY = {metric.name: metric for metric in notify_metrics.METRICS.values()}
KNOWN = {**FAMILIES, **NOTIFY}
RULES = [rule for name in FILES for group in groups(name, Site()) for rule in group["rules"]]
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
OURS = re.compile(r"\bledgerops_[a-z0-9_]+(?![a-z0-9_*])")  # `ledgerops_executor_*` names a group
SELECTOR = re.compile(r"\b(ledgerops_[a-z0-9_]+)\{([^}]*)\}")
# what people read and Prometheus evaluates; of docs/metrics.md everything is in the catalogue by its making
WRITTEN = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("alerts/**/*.*"))]
WRITTEN += [*sorted(ROOT.glob("dashboards/**/*.json"))]


def family(name):
    """The metric that a series belongs to; None when nothing exports it."""
    names = (name, *(name.removesuffix(part) for part in ("_bucket", "_sum", "_count")))
    return next((KNOWN[each] for each in names if each in KNOWN), None)


def unknown(text):
    return sorted({name for name in OURS.findall(text) if family(name) is None})


def labels(text):
    """(series, label) of each matcher of a label that the metric does not have."""
    wrong = []
    for name, matchers in SELECTOR.findall(text.replace("\\", "")):
        metric = family(name)
        if metric is not None:
            more = ("query",) if metric in (*OF_QUERIES, *VERDICT_METRICS) else ()
            known = {"job", "app", "instance", "le", *metric.labels, *more}
            wrong += [(name, label) for label in re.findall(r"(\w+) ?[!=]", matchers) if label not in known]
    return wrong


def test_whatever_is_asked_for_is_exported_with_the_labels_that_are_named(subtests: pytest.Subtests):
    for path in WRITTEN:
        with subtests.test(str(path)):
            text = path.read_text("utf-8")

            assert unknown(text) == []
            assert set(re.findall(r"\bquery:[a-z_]+:\w+", text)) <= RECORDED
            assert labels(text) == []


def test_a_series_that_nothing_exports_and_a_label_that_it_lacks_would_be_found():
    text = 'rate(ledgerops_input_rows{query="q"}[5m]) + ledgerops_state_rows{partition="1"} + ledgerops_busy_ratio'

    assert unknown(text) == ["ledgerops_input_rows"]
    assert labels(text) == [("ledgerops_state_rows", "partition")]
