"""Event logs of plain PySpark applications that the rules were not written for, each with the truth beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledgerops.analysis.session import Investigation
from tests.paths import needed_data

MIN_NAMED_FIRST = 19  # of 20 faults
FAULTS, HEALTHY = 20, 5


@pytest.fixture(scope="module")
def logs(data_dir: Path) -> list[tuple[dict[str, Any], list[str]]]:
    """Each query's part of the diagnosis of its log with its incidents, and the rules of which one must be first."""
    folder = needed_data(data_dir / "eventlogs")
    found = []
    for truth in sorted(folder.glob("*/truth.json")):
        [log] = truth.parent.glob("eventlog_v2_*")
        expected = json.loads(truth.read_text())
        document = Investigation(str(log)).diagnose()
        for query in document["queries"]:
            own = [each for each in document["incidents"] if each["query"] == query["query"]]
            found.append((query | {"incidents": own}, expected[query["query"]]))
    return found


def test_the_cause_is_named_first(logs):
    faults = [(query, expected) for query, expected in logs if expected]
    named = [[incident["rule"] for incident in query["incidents"]] for query, _ in faults]
    missed = [
        f"{query['query']}: {rules or 'nothing'} in place of {' or '.join(expected)}"
        for (query, expected), rules in zip(faults, named, strict=True)
        if not rules or rules[0] not in expected
    ]

    assert len(faults) == FAULTS
    assert len(missed) <= FAULTS - MIN_NAMED_FIRST, missed


def test_healthy_queries_get_no_warning(logs):
    healthy = [query for query, expected in logs if not expected]
    loud = [
        (query["query"], each["rule"]) for query in healthy for each in query["incidents"] if each["severity"] != "info"
    ]

    assert len(healthy) == HEALTHY
    assert loud == []
