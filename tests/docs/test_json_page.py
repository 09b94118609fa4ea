"""The page about the JSON of diagnose and status has every key that the documents have, and no other."""

import re
from collections.abc import Iterator
from typing import get_args

from ledgerops.analysis.inputs import open_source
from ledgerops.analysis.session import Investigation, Moment
from ledgerops.model.finding import SEVERITIES, Status
from ledgerops.runtime.replay import replay
from ledgerops.runtime.status import status_document
from tests.drills.saved import recording
from tests.paths import RECORDED, ROOT
from tests.runtime.test_status import NOW, demo_fleet

PAGE = (ROOT / "docs/json.md").read_text("utf-8")
DRILLS = ("slow-sink", "overload", "whale-key", "crash")
VALUES = {*get_args(Status), *SEVERITIES, "processing_time"}
OPEN = ("figures", "phases")  # whose keys are names, not words of the format
DIAGNOSIS, _, STATUS = PAGE.partition("## The status document")


def documents() -> Iterator[dict]:
    for name in DRILLS:
        place = str(recording(name))
        yield Investigation(place, with_timeline=True).diagnose()
        yield Investigation(place, live=True).diagnose()
        yield Investigation(place, since=Moment(ago=3600.0), live=True).diagnose()


def statuses() -> Iterator[dict]:
    yield status_document(demo_fleet(), NOW)
    for place in (*map(recording, DRILLS), RECORDED / "delta.jsonl.zst"):
        found = replay(seen for seen in open_source(str(place)).observations if seen.kind != "terminated")
        yield status_document(found.registry, found.at)


def keys(value: object) -> set[str]:
    if isinstance(value, list):
        return set().union(*(keys(each) for each in value))
    if isinstance(value, dict):
        return set(value) | set().union(*(keys(each) for name, each in value.items() if name not in OPEN))
    return set()


def shown(text: str) -> set[str]:
    """The keys in the tables of a part of the page: the words in code that are no values."""
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`([a-z_]+)`", row)} - VALUES


def test_the_page_has_every_key_of_a_diagnosis_and_no_other():
    found = set().union(*(keys(document) for document in documents()))
    assert found - shown(DIAGNOSIS) == set()
    assert shown(DIAGNOSIS) - found == {"app"}  # which only an exporter knows


def test_the_page_has_every_key_of_a_status_and_no_other():
    found = set().union(*(keys(document) for document in statuses()))
    assert found - shown(STATUS) - shown(DIAGNOSIS) == set()
    assert shown(STATUS) - found == set()
