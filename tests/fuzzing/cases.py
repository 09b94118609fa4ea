"""One case of fuzzing by its number: the same number and seed make the same case on every machine."""

import random
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import orjson

from ledgerops.analysis import event_log
from ledgerops.errors import UserError
from ledgerops.model import recording
from tests.fuzzing import mutated
from tests.fuzzing.checks import compared, judged
from tests.fuzzing.made import application

KINDS = ("made", "wild", "mutated", "mutated", "junk", "event log")
CHUNK = 40  # cases a task: a few seconds, so that progress is seen
PAGES = 12  # one case in so many renders the HTML report, too: that is what takes longest


def run(seed: int, number: int, seen: Counter[str]) -> None:
    """Makes a case and puts it through; raises what is wrong."""
    chance = random.Random(seed * 1_000_003 + number)
    kind = KINDS[number % len(KINDS)]
    seen[f"case {kind}"] += 1
    pages, every = chance.randrange(PAGES) == 0, chance.choice((1, 1, 2, 5))
    if kind == "event log":
        _event_log(chance, seen, pages, every)
        return
    if kind in ("made", "wild"):
        lines = [orjson.dumps(line) + b"\n" for line in application(chance, chance.choice((20, 60, 150)))]
        lines = mutated.with_changes(chance, lines, chance.choice((0.01, 0.1, 0.5)) if kind == "wild" else 0.0)
    else:
        some = mutated.some(chance, chance.choice(mutated.recordings()), chance.choice((40, 150)))
        lines = mutated.with_changes(chance, some, chance.choice((0.05, 0.5, 1.0)))
    if kind == "junk":
        lines = mutated.with_junk(chance, lines)
    seen["lines"] += len(lines)
    try:
        judged(recording.read_lines(iter(lines), "fuzz"), seen, pages, every)
        if pages:
            compared(recording.read_lines(iter(lines), "fuzz"), seen)
    except UserError as error:
        assert "\n" not in str(error)
        seen["recordings refused"] += 1


def _event_log(chance: random.Random, seen: Counter[str], pages: bool, every: int) -> None:
    lines = mutated.some(chance, chance.choice(mutated.event_logs()), chance.choice((100, 400)))
    lines = mutated.with_changes(chance, lines, chance.choice((0.02, 0.3, 1.0)))
    if chance.random() < 0.2:
        lines = mutated.with_junk(chance, lines)
    seen["lines"] += len(lines)
    seen["line of an event log"] += len(lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "local-1"
        path.write_bytes(b"".join(lines))
        try:
            judged(event_log.read(path), seen, pages, every)
        except UserError as error:
            assert "\n" not in str(error)
            seen["event logs refused"] += 1


def chunk(job: tuple[int, int]) -> tuple[Counter[str], list[tuple[int, str]]]:
    """So many cases from a number on: what was seen, and what failed with its traceback."""
    seed, first = job
    seen: Counter[str] = Counter()
    failed = []
    for number in range(first, first + CHUNK):
        try:
            run(seed, number, seen)
        except Exception:
            failed.append((number, traceback.format_exc()))
    return seen, failed
