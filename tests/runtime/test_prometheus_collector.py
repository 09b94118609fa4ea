"""The library's way and ours give the same samples."""

import re

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.recording import read
from ledgerops.model.records import Host
from ledgerops.runtime import exposition
from ledgerops.runtime.prometheus_collector import Collector
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.snapshot import QuerySnapshot, Snapshot, published
from tests.paths import RECORDED
from tests.samples import samples
from tests.tables import cases


def fail(name, error):
    raise AssertionError(name) from error


@pytest.fixture(scope="module", params=["3.5.7", "4.2.0", "4.3.0"])
def snapshot(request) -> Snapshot:
    registry = QueryRegistry(Diagnoser)
    seen = [each for each in read(RECORDED / f"spark-{request.param}.jsonl") if each.kind != "terminated"]
    for each in seen:
        registry.ingest(each)
    now = seen[-1].at
    queries = {}
    for name, state in registry.queries.items():
        registry.judge(state, now)
        queries[name] = QuerySnapshot(state, registry.view(state, now), 500, fail)
    host = Host(now, 2, 0.5, 1000, 500, None, None)
    return Snapshot(now, queries, (host,), failed=fail)


@cases(
    "kind, library, parse",
    ("text", exposition.TEXT, generate_latest, parse_text),
    ("OpenMetrics", exposition.OPENMETRICS, generate_openmetrics, parse_openmetrics),
)
def test_both_ways_publish_the_same(snapshot, kind, library, parse):
    now = snapshot.at + 7
    registry = CollectorRegistry()
    expected = ["never_ran"]
    registry.register(Collector(lambda: published(snapshot, SelfStats(), expected, "ledger"), clock=lambda: now))
    ours = samples(exposition.render(published(snapshot, SelfStats(), expected, "ledger"), now, kind).decode(), parse)
    theirs = samples(library(registry).decode(), parse)
    assert len(ours) > 300
    assert ours == theirs
    names = {name for name, _ in ours}
    assert {"ledgerops_build_info", "ledgerops_host_cpus", "ledgerops_listener_dropped_total"} <= names
    assert ours["ledgerops_query_active", (("app", "ledger"), ("query", "never_ran"))] == 0.0
    assert ours["ledgerops_query_expected", (("app", "ledger"), ("query", "never_ran"))] == 1.0


def test_no_two_families_of_openmetrics_have_one_name(snapshot):
    page = exposition.render(published(snapshot, SelfStats(), (), "ledger"), snapshot.at, exposition.OPENMETRICS)
    names = re.findall(r"^# TYPE (\S+) ", page.decode(), re.MULTILINE)
    assert {"ledgerops_build", "ledgerops_root_cause", "ledgerops_root_cause_info"} <= set(names)
    assert len(names) == len(set(names))


def test_registering_collects_nothing():
    def never():
        raise AssertionError("collected at registration")

    CollectorRegistry(auto_describe=True).register(Collector(never))
