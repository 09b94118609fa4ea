"""Series as Prometheus would have scraped them, and what its own engine makes of an expression over them.

A recorded drill goes through the fleet, the diagnosis, the snapshot and the exporter's text, page by page at the times
of the recording. promtool evaluates expressions and the generated rules over the pages, so that a drill of minutes is
judged in a second, and without a clock.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ledgerops.metrics.self_watch import SelfStats
from ledgerops.mixin.rule_files import rule_files
from ledgerops.mixin.site import Site, duration
from ledgerops.model.recording import read
from ledgerops.runtime.exposition import render
from ledgerops.runtime.replay import JUDGED, Replay
from ledgerops.runtime.snapshot import QuerySnapshot, Snapshot, published
from tests.paths import RECORDED
from tests.promtool import refused
from tests.samples import Page, samples

DRILLS = RECORDED / "drills"
SCRAPE = 5.0  # seconds
INSTANT = "_timestamp_seconds"
# a second stands for half a minute, so that what alerts wait for fits into a drill
SITE = Site(scrape_seconds=SCRAPE, evaluation_seconds=SCRAPE, time_scale=1 / 30)
REAL = Site(scrape_seconds=SCRAPE, evaluation_seconds=SCRAPE)  # windows as people have them
BUDGET = 2000  # series of a query: all
EVERYTHING = {"__rate_interval": "20s", "__interval": "1m", "__range": "5m", "app": ".*"}
EVERYTHING |= dict.fromkeys(("job", "instance", "query", "plan"), ".+")


def of(name: str, value: float, **labels: str) -> Page:
    """A sample of the query `q`."""
    return {(name, tuple(sorted({"query": "q", **labels}.items()))): value}


def pages_of(recording: Path) -> Iterator[Page]:
    """What each scrape of the recorded driver would have shown, with the first at the instant 0, as for promtool."""
    first = None
    for now, text in scrapes(recording):
        first = now if first is None else first
        yield {
            (name, labels): value - first if name.endswith(INSTANT) else value
            for (name, labels), value in samples(text).items()
        }


def scrapes(recording: Path, app: str | None = None) -> Iterator[tuple[float, str]]:
    """(instant, text) of each scrape of the recorded driver of an application."""
    replay, due = Replay(counts=True), None
    for seen in read(recording):
        while due is not None and seen.at > due:
            yield due, _scraped(replay, due, app)
            due += SCRAPE
        due = due or seen.at + SCRAPE
        state = replay.take(seen)
        if state is not None and seen.kind in JUDGED:
            replay.registry.judge(state, max(seen.at, replay.at or seen.at))


def filled(expression: str, **variables: str) -> str:
    """An expression as Grafana would send it, with these variables of its page, and of everything without them."""
    for name, value in {**EVERYTHING, **variables}.items():
        expression = expression.replace(f"${name}", value)
    return expression


def _scraped(replay: Replay, now: float, app: str | None) -> str:
    """What the exporter of an application would have answered."""
    fleet = replay.registry
    queries = {}
    for name, state in fleet.queries.items():
        fleet.judge(state, now)
        queries[name] = QuerySnapshot(state, fleet.view(state, now), BUDGET, _raised)
    snapshot = Snapshot(now, queries, tuple(fleet.hosts), failed=_raised)
    return render(published(snapshot, SelfStats(), app=app), now).decode()


def _raised(metric: str, error: Exception) -> None:
    raise AssertionError(f"{metric} failed") from error


def evaluated(
    folder: Path, pages: Iterable[Page], expressions: Iterable[str], every: float = SCRAPE, site: Site = SITE
) -> set[str]:
    """Those of the expressions that return something at any moment of the scrapes, which are `every` seconds apart."""
    series: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    count = 0
    for count, page in enumerate(pages, 1):
        for key, value in {("up", ()): 1.0, **page}.items():
            past = series.setdefault(key, [])
            past += ["_"] * (count - 1 - len(past))
            past.append(repr(value))
    assert count > 3, "nothing was scraped"
    asked = sorted(set(expressions))
    rules = rule_files(site) if re.search(r"\bALERTS\b|\bquery:", " ".join(asked)) else {}
    for name, text in rules.items():
        (folder / name).write_text(text, "utf-8")
    span = f"[{duration(count * every)}:{duration(every)}]"
    tests = {f"(count(count_over_time(({each}){span})) > bool 0) or vector(0)": each for each in asked}
    test = {
        "interval": duration(every),
        "input_series": [
            {"series": _named(*key), "values": " ".join([*past, "stale"])} for key, past in series.items()
        ],
        "promql_expr_test": [
            {"expr": each, "eval_time": duration(count * every), "exp_samples": [{"labels": "{}", "value": 1}]}
            for each in tests
        ],
    }
    told = {"rule_files": sorted(rules), "evaluation_interval": duration(every), "tests": [test]}
    return set(asked) - {tests[each] for each in refused(folder, told)}


def _named(name: str, labels: tuple[tuple[str, str], ...]) -> str:
    given = {"job": SITE.job, "instance": "driver:9464", **dict(labels)}
    return f"{name}{{{', '.join(f'{label}={json.dumps(value)}' for label, value in given.items())}}}"
