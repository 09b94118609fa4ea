"""Where the observer's time goes, for the two costliest paths, an event and a scrape.

The steps are timed by the worker itself; the shares of functions come from cProfile, which makes small calls look
dearer than they are.
"""

import cProfile
import pstats
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from load.bench.core import scraped
from load.bench.growth import FedWorker
from load.bench.lines import Line

ROOT = Path(__file__).resolve().parents[2]
QUERIES, PARTITIONS = 50, 5
EVENTS = 1500
TOP = 6
STEPS = {"parse": "decode and take in", "record": "record", "judge": "signals and all rules", "snapshot": "copy"}


def profile(say: Callable[[str], None], queries: int = QUERIES, events: int = EVENTS) -> Iterator[Line]:
    """Yields the lines of the part: shares of time over `events` events and five scrapes with `queries` queries."""
    with tempfile.TemporaryDirectory() as name:
        fed = FedWorker(queries, PARTITIONS, Path(name)).remember(60)
        before = dict(fed.stats.worker_seconds)
        fed.measure(events)
        spent = {step: seconds - before.get(step, 0.0) for step, seconds in fed.stats.worker_seconds.items()}
        yield Line(f"an event, {queries} queries: its steps", shares({STEPS[step]: spent[step] for step in STEPS}))
        fed.spent.clear()
        found = _profiled(lambda: fed.measure(events))
        yield Line("an event: modules, by profile", shares(by_module(found)))
        yield Line("an event: functions, by profile", shares(by_function(found)))
        say("events profiled")
        found = _profiled(*(partial(scraped, fed.feed()) for _ in range(5)))
        yield Line("a scrape: functions, by profile", shares(by_function(found)))


Stats = Mapping[tuple[str, int, str], tuple[int, int, float, float, object]]


def shares(spent: Mapping[str, float], top: int = TOP) -> str:
    """The largest as shares of the whole."""
    whole = sum(spent.values()) or 1.0
    ordered = sorted(spent.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {seconds / whole:.0%}" for name, seconds in ordered[:top])


def by_module(stats: Stats) -> dict[str, float]:
    """Own time by module of ours; what is built in or of a library counts as `built-in`."""
    spent: dict[str, float] = defaultdict(float)
    for (file, _, _), (_, _, own, _, _) in stats.items():
        spent[_module(file) or "built-in"] += own
    return spent


def by_function(stats: Stats) -> dict[str, float]:
    """Own time by function; of what is built in, by its name."""
    spent: dict[str, float] = defaultdict(float)
    for (file, _, name), (_, _, own, _, _) in stats.items():
        module = _module(file)
        spent[f"{module}.{name}" if module else name.strip("<>").removeprefix("built-in method ")] += own
    return spent


def _module(file: str) -> str:
    path = Path(file)
    if not path.is_relative_to(ROOT / "ledgerops"):
        return ""
    return ".".join(path.relative_to(ROOT / "ledgerops").with_suffix("").parts)


def _profiled(*work: Callable[[], object]) -> Stats:
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        for each in work:
            each()
    finally:
        profiler.disable()
    stats: Stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    return stats
