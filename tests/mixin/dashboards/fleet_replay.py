"""Recorded drills as drivers that a real Prometheus scrapes at their own pace, and the pages' tables as text.

Each drill is an application of its own, with the label `app` in every series. When its recording is over, its endpoint
goes on with the last page, or stops answering where it is to be lost.
"""

import re
import time
from pathlib import Path

from ledgerops.mixin.dashboards.model import ELAPSED, Column, Panel
from ledgerops.mixin.dashboards.panels import expression, lettered
from tests.mixin.dashboards.replayed import DRILLS, SCRAPE, SITE, filled, scrapes
from tests.monitoring import Prometheus
from tests.serving import Background, Quiet

SETTLED = 1.0  # seconds until a scrape can be asked for
INSTANT = re.compile(r"^(\w+_timestamp_seconds(?:\{.*\})?) (\S+)$", re.MULTILINE)


class Driver:
    """One recording behind an HTTP endpoint; lost after `lost_after` seconds, if that is given."""

    def __init__(self, drill: str, lost_after: float | None = None) -> None:
        self.drill, self.lost_after, self.began = drill, lost_after, time.time()
        self.pages = list(scrapes(DRILLS / drill / "recording", drill))
        driver = self

        class Handler(Quiet):
            def do_GET(self) -> None:
                body = driver.page(time.time()).encode()
                self.reply(200 if body else 503, body, {"Content-Type": "text/plain; version=0.0.4"})

        self._server = Background(Handler)
        self.address = self._server.address

    def page(self, now: float) -> str:
        """What the driver would answer; nothing once it is lost. Instants of the recording become instants of today."""
        if self.lost_after is not None and now - self.began > self.lost_after:
            return ""
        first = self.pages[0][0]
        _, text = self.pages[min(int((now - self.began) / SCRAPE), len(self.pages) - 1)]
        shift = self.began - first
        return INSTANT.sub(lambda found: f"{found[1]} {float(found[2]) + shift!r}", text)

    def close(self) -> None:
        self._server.close()


class Fleet:
    """Drivers and the Prometheus that scrapes them, with the generated rules."""

    def __init__(self, folder: Path, drills: tuple[str, ...], lost: str, lost_after: float) -> None:
        self.drivers = [Driver(drill, lost_after if drill == lost else None) for drill in drills]
        now = time.time()
        for driver in self.drivers:
            driver.began = now
        self.prometheus = Prometheus(folder, [driver.address for driver in self.drivers], SITE)

    def close(self) -> None:
        self.prometheus.close()
        for driver in self.drivers:
            driver.close()


def shown(prometheus: Prometheus, panel: Panel, **variables: str) -> list[dict[str, str]]:
    """The rows that a stat, a bar gauge or a table shows, as text: by column for a table, else by name.

    All targets are asked for one instant, as a page does, and for one whose scrapes have been taken in.
    """
    at = time.time() - SETTLED
    rows: list[tuple[dict[str, str], dict[str, str], dict[str, float]]] = []  # labels, texts, numbers
    for _, target in lettered(panel):
        for each in prometheus.ask(filled(expression(target, SITE), **variables), at):
            value = float(each["value"][1])
            labels = {name: text for name, text in each["metric"].items() if name != "__name__"}
            if panel.kind != "table":
                name = re.sub(r"\{\{(\w+)\}\}", lambda label, given=labels: given.get(label[1], ""), target.legend)
                rows.append((labels, {"name": name.strip(), "value": _word(target, panel, value)}, {}))
                continue
            row = next((row for row in rows if target.legend not in row[2] and _same(row[0], labels)), None)
            if row is None:
                rows.append(row := (labels, {}, {}))
            row[0].update(labels)
            row[1].update({label.title: labels[label.name] for label in panel.labels if label.name in labels})
            row[1][target.legend] = _word(target, panel, value)
            row[2][target.legend] = value
    rows.sort(key=lambda row: [-row[2].get(title, float("-inf")) for title in panel.order])
    return [texts for _, texts, _ in rows]


def _same(one: dict[str, str], other: dict[str, str]) -> bool:
    """Whether Grafana joins them to one row: labels that both have are equal."""
    return all(one[name] == other[name] for name in one.keys() & other.keys())


def _word(target, panel: Panel, value: float) -> str:
    names = dict(target.names if isinstance(target, Column) else panel.names)
    unit = target.unit if isinstance(target, Column) else panel.unit
    word = names.get(f"{value:g}")
    if word is not None:
        return word.partition(":")[2]
    if unit == "percentunit":
        return f"{value:.0%}"
    return f"{value:.0f} s" if unit in ("s", ELAPSED) else f"{value:g}"
