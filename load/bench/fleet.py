"""Many drivers on one Prometheus with the shipped rules: series, memory, CPU, scrapes, and how long the rules take."""

import gzip
import math
import re
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from typing import Any

from ledgerops.errors import UserError
from ledgerops.mixin.site import Site
from ledgerops.runtime import exposition
from ledgerops.runtime.snapshot import published
from ledgerops.servers.background import Background, Quiet
from load.bench.fleet_table import MIN_SCRAPES, Watched, lines_of
from load.bench.growth import FedWorker
from load.bench.lines import Line
from load.bench.outage import peak_memory
from load.bench.servers import ASK_SECONDS, Prometheus

DRIVERS, QUERIES, PARTITIONS = 500, 20, 5
BATCHES = 30  # behind each query when it is scraped first
MAX_START_SECONDS = 900.0  # for the scrapes before
MEASURED_SECONDS, OUTAGE_SECONDS = 180.0, 150.0

SITE = Site(scrape_seconds=30.0)
SAMPLE = re.compile(r"^(\w+)(?:\{.*\})? (\S+)$", re.MULTILINE)
INSTANT = re.compile(r"^(\w+_timestamp_seconds(?:\{.*\})?) (\S+)$", re.MULTILINE)
APP = "the-application"


class Drivers:
    """Serves /N/metrics for each driver N. Those in `gone` answer 503."""

    def __init__(self, queries: int, partitions: int, folder: Path) -> None:
        self.gone: set[str] = set()
        self._fed = FedWorker(queries, partitions, folder).remember(BATCHES)
        self.advance()
        drivers = self

        class Handler(Quiet):
            def do_GET(self) -> None:
                driver = self.path.split("/")[1]
                text = drivers.text.replace(f'app="{APP}"', f'app="app-{driver}"')
                headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8", "Content-Encoding": "gzip"}
                self.reply(503 if driver in drivers.gone else 200, gzip.compress(text.encode(), 1), headers)

        self.server = Background(Handler)

    def advance(self) -> None:
        """Gives each query one more batch, which ended just now."""
        self._fed.spent.clear()
        self._fed.measure(1)
        families = published(self._fed.worker.snapshot, self._fed.stats.copy(), app=APP)
        text = exposition.render(families, self._fed.now).decode()
        ahead = self._fed.now - time.time()  # records have simulated times
        self.text = INSTANT.sub(lambda found: f"{found[1]} {float(found[2]) - ahead:.3f}", text)


class ManyDrivers(Prometheus):
    """A server that scrapes all drivers."""

    def __init__(self, folder: Path, address: str, drivers: int, site: Site) -> None:
        program = which("prometheus")
        if program is None:
            raise UserError("prometheus is absent; install it to measure many drivers")
        labels = [{"__metrics_path__": f"/{n:03}/metrics", "instance": f"driver-{n:03}:9464"} for n in range(drivers)]
        groups = [{"targets": [address], "labels": each} for each in labels]
        super().__init__(program, folder, site, {"ledgerops": groups})

    def value(self, expression: str) -> float:
        """The value of an expression that has one sample; 0 without a sample."""
        found = self.ask(expression)
        return float(found[0]["value"][1]) if found else 0.0

    def total(self, name: str) -> float:
        """The sum of one of Prometheus' own metrics; 0 before it has a sample."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=ASK_SECONDS) as answer:
            text = answer.read().decode()
        return sum(float(value) for found, value in SAMPLE.findall(text) if found == name)


def watch(prometheus: ManyDrivers, drivers: Drivers, is_over: Callable[[float], bool]) -> Watched:
    """Reads what scraping and evaluating cost while the drivers run, until `is_over` is true of the seconds so far."""
    found = Watched()
    missed = prometheus.total("prometheus_rule_group_iterations_missed_total")
    cpu = prometheus.total("process_cpu_seconds_total")
    appended = prometheus.total("prometheus_tsdb_head_samples_appended_total")
    began, since = time.monotonic(), datetime.now(UTC)
    while not is_over(found.seconds):
        _wait_an_interval(prometheus, drivers)
        for group in prometheus.get("rules")["groups"]:
            found.skipped.add(group["name"])
            _keep(found.groups, group, since)
            for rule in group["rules"]:
                _keep(found.rules, rule, since)
        found.seconds = time.monotonic() - began
    found.skipped -= found.groups.keys()
    took = max(found.seconds, 1e-9)
    found.cpu = (prometheus.total("process_cpu_seconds_total") - cpu) / took
    found.samples = (prometheus.total("prometheus_tsdb_head_samples_appended_total") - appended) / took
    found.missed = prometheus.total("prometheus_rule_group_iterations_missed_total") - missed
    job = f'{{job="{prometheus.site.job}"}}'
    found.answered = prometheus.value(f"sum(up{job})")
    found.median = prometheus.value(f"quantile(0.5, scrape_duration_seconds{job})")
    found.p99 = prometheus.value(f"quantile(0.99, scrape_duration_seconds{job})")
    found.longest = prometheus.value(f"max(max_over_time(scrape_duration_seconds{job}[{math.ceil(took)}s]))")
    found.series = prometheus.total("prometheus_tsdb_head_series")
    found.resident = prometheus.total("process_resident_memory_bytes")
    found.peak = peak_memory(prometheus.process.pid)
    found.firing = prometheus.value('count(ALERTS{alertstate="firing"})')
    return found


def _wait_an_interval(prometheus: ManyDrivers, drivers: Drivers) -> None:
    """Lets each query have a batch, and waits for the rest of an evaluation's interval."""
    began = time.monotonic()
    drivers.advance()
    time.sleep(max(0.0, prometheus.site.evaluation_seconds - (time.monotonic() - began)))


def _keep(known: dict[str, list[float]], evaluated: Mapping[str, Any], since: datetime) -> None:
    """Keeps how long the newest evaluation of a group or rule took, if it began after `since`."""
    if datetime.fromisoformat(evaluated["lastEvaluation"]) >= since:
        known.setdefault(evaluated["name"], []).append(evaluated["evaluationTime"])


def settled(prometheus: ManyDrivers, drivers: int, queries: int) -> Callable[[float], bool]:
    """Whether each driver was scraped MIN_SCRAPES times and the rules have seen all queries. Raises UserError late."""
    up = f'up{{job="{prometheus.site.job}"}}'
    scraped = f"count(sum_over_time({up}[{MAX_START_SECONDS:.0f}s]) >= {MIN_SCRAPES})"

    def is_over(seconds: float) -> bool:
        if seconds > MAX_START_SECONDS:
            raise UserError(f"not all drivers were scraped {MIN_SCRAPES} times within {MAX_START_SECONDS:.0f} s")
        judged = prometheus.value("count(query:freshness:seconds)")
        return judged >= drivers * queries and prometheus.value(scraped) >= drivers

    return is_over


def fleet(
    say: Callable[[str], None],
    drivers: int = DRIVERS,
    queries: int = QUERIES,
    partitions: int = PARTITIONS,
    seconds: tuple[float, float] = (MEASURED_SECONDS, OUTAGE_SECONDS),
    site: Site = SITE,
) -> Iterator[Line]:
    """Yields the lines of the part. `seconds`: measuring once the start is over, and with half of the drivers gone."""
    measured, outage = seconds
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        served = Drivers(queries, partitions, folder)
        stack.callback(served.server.close)
        prometheus = ManyDrivers(folder, served.server.address, drivers, site)
        stack.callback(prometheus.close)
        start = watch(prometheus, served, settled(prometheus, drivers, queries))
        say(f"each driver was scraped {MIN_SCRAPES} times after {start.seconds:.0f} s; {start.text}")
        steady = watch(prometheus, served, lambda so_far: so_far >= measured)
        say(f"measured for {steady.seconds:.0f} s; {steady.text}")
        served.gone = {f"{n:03}" for n in range(drivers // 2)}
        lost = watch(prometheus, served, lambda so_far: so_far >= outage)
        say(f"half of the drivers were gone for {lost.seconds:.0f} s; {lost.text}")
        what = f"{drivers} drivers of {queries} queries with {partitions} source partitions"
        each = f"{len(SAMPLE.findall(served.text)):,} in {len(served.text) / 1e6:.2f} MB a driver"
        yield from lines_of(what, each, drivers, start, steady, lost, site)
