"""Plain PySpark applications that the rules were not written for: recordings and event logs, each with the truth."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from ledgerops.analysis.session import Investigation
from tests.paths import needed_data


class Sample(NamedTuple):
    """Where the applications are, how they are read, and what they have: faults, healthy queries."""

    folder: str
    read: str
    faults: int
    healthy: int
    min_named_first: int


SAMPLES = (
    Sample("applications", "recording", 23, 14, 23),
    Sample("applications", "log/eventlog_v2_*", 23, 14, 22),
    Sample("eventlogs", "eventlog_v2_*", 20, 5, 19),
)


@pytest.fixture(scope="module", params=SAMPLES, ids=lambda sample: f"{sample.folder} by {sample.read}")
def queries(request, data_dir: Path) -> tuple[Sample, list[tuple[str, list[dict[str, str]], list[str]]]]:
    """Of each query its name, its incidents, and the rules of which one must be first."""
    sample: Sample = request.param
    found = []
    for truth in sorted(needed_data(data_dir / sample.folder).glob("*/truth.json")):
        [place] = truth.parent.glob(sample.read)
        incidents = Investigation(str(place)).diagnose()["incidents"]
        for query, expected in json.loads(truth.read_text()).items():
            own = [each for each in incidents if each["query"] == query]
            found.append((f"{truth.parent.name} {query}", own, expected))
    return sample, found


def test_the_cause_is_the_first_incident_of_its_query(queries):
    sample, found = queries
    faults = [(name, [each["rule"] for each in own], expected) for name, own, expected in found if expected]
    missed = [(name, rules, expected) for name, rules, expected in faults if not rules or rules[0] not in expected]

    assert len(faults) == sample.faults
    assert len(missed) <= sample.faults - sample.min_named_first, missed


def test_a_healthy_query_has_no_incident_at_warning(queries):
    sample, found = queries
    healthy = [(name, own) for name, own, expected in found if not expected]
    loud = [(name, each["rule"]) for name, own in healthy for each in own if each["severity"] != "info"]

    assert len(healthy) == sample.healthy
    assert loud == []
