"""Plain PySpark applications that the rules were not written for: their recordings and event logs, with the truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledgerops.analysis.session import Investigation
from tests.paths import needed_data

FAULTS, HEALTHY = 23, 14
MIN_NAMED_FIRST = {"recording": 23, "log/eventlog_v2_*": 22}


@pytest.fixture(scope="module", params=list(MIN_NAMED_FIRST))
def applications(request, data_dir: Path) -> tuple[str, list[tuple[str, list[dict[str, str]], list[str]]]]:
    """Where they are read from; of each query its name, its incidents, and the rules of which one must be first."""
    folder = needed_data(data_dir / "applications")
    found = []
    for truth in sorted(folder.glob("*/truth.json")):
        [place] = truth.parent.glob(request.param)
        incidents = Investigation(str(place)).diagnose()["incidents"]
        for query, expected in json.loads(truth.read_text()).items():
            own = [each for each in incidents if each["query"] == query]
            found.append((f"{truth.parent.name} {query}", own, expected))
    return request.param, found


def test_the_cause_of_an_application_is_its_first_incident(applications):
    read, found = applications
    faults = [(name, [each["rule"] for each in own], expected) for name, own, expected in found if expected]
    missed = [(name, rules) for name, rules, expected in faults if not rules or rules[0] not in expected]

    assert len(faults) == FAULTS
    assert len(missed) <= FAULTS - MIN_NAMED_FIRST[read], missed


def test_a_healthy_application_has_no_incident_at_warning(applications):
    _, found = applications
    healthy = [(name, own) for name, own, expected in found if not expected]
    loud = [(name, each["rule"]) for name, own in healthy for each in own if each["severity"] != "info"]

    assert len(healthy) == HEALTHY
    assert loud == []
