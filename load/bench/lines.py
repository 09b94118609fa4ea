"""The bench's figures: lines with their noise floor and budget, kept as JSON, and the page that is made of them."""

import json
import os
import platform
import random
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ledgerops.version import __version__

KEPT = Path("load") / "bench" / "figures"  # in the repository, so that one part measured anew leaves the page whole
RESAMPLES = 2000
YES, NO, UNKNOWN = "yes", "**no**", "within noise"


@dataclass(frozen=True)
class Line:
    """One row of a table. `holds` is YES, NO, UNKNOWN, or empty where there is no budget."""

    what: str
    figure: str
    noise: str = ""
    budget: str = ""
    holds: str = ""


@dataclass(frozen=True)
class Measured:
    """What one part gave, when (ISO date and time, UTC), and how long it took in seconds."""

    part: str
    at: str
    seconds: float
    machine: str
    lines: list[Line] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Writes the figures to `folder` as PART.json, and creates the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.part}.json").write_text(json.dumps(asdict(self), indent=1) + "\n", "utf-8")


def machine() -> str:
    """What it was measured on and with; Spark's version where Spark was at work."""
    python = f"Python {platform.python_version()}, ledgerops {__version__}"
    text = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, {python}"
    spark = sys.modules.get("pyspark")
    return text if spark is None else f"{text}, Spark {spark.__version__}"


def read(folder: Path, part: str) -> Measured | None:
    """What was kept of a part; None when it was never measured."""
    try:
        found = json.loads((folder / f"{part}.json").read_text("utf-8"))
    except FileNotFoundError:
        return None
    return Measured(**{**found, "lines": [Line(**line) for line in found["lines"]]})


def limit(what: str, value: float, figure: str, most: float, budget: str) -> Line:
    """A line whose budget is an upper bound."""
    return Line(what, figure, "", budget, YES if value <= most else NO)


def least(what: str, value: float, figure: str, fewest: float, budget: str) -> Line:
    """A line whose budget is a lower bound."""
    return Line(what, figure, "", budget, YES if value >= fewest else NO)


@dataclass(frozen=True)
class Compared:
    """A ratio of interleaved runs, and that of equal runs in the same rounds: medians over the rounds.

    `spread` is half the 90 % interval of the median noise, which more rounds make narrower: a difference smaller than
    that means nothing.
    """

    ratio: float
    noise: float
    spread: float

    @property
    def floor(self) -> str:
        """The noise floor as text: the ratio of equal runs and its spread."""
        return f"{self.noise:.3f} ± {self.spread:.3f}"

    @property
    def uncertainty(self) -> float:
        """How far the median of equal runs may be from 1: differences below it mean nothing."""
        return max(self.spread, abs(1 - self.noise))

    def at_most(self, bound: float) -> str:
        """Whether the ratio is at most `bound`: YES, NO, or UNKNOWN if the noise is greater than the difference."""
        missing = self.ratio - bound
        return YES if missing <= 0 else UNKNOWN if missing <= self.uncertainty else NO


def compare(bare: Sequence[float], again: Sequence[float], other: Sequence[float]) -> Compared:
    """By round: `other` over the mean of the two bare runs, and the second bare run over the first.

    Comparing within a round takes away what the machine does slowly (its clock, its neighbours).
    """
    ratios = [each / ((one + two) / 2) for one, two, each in zip(bare, again, other, strict=True)]
    noises = [two / one for one, two in zip(bare, again, strict=True)]
    draw = random.Random(1)  # the interval of the median, by drawing as many values again and again (bootstrap)
    medians = sorted(statistics.median(draw.choices(noises, k=len(noises))) for _ in range(RESAMPLES))
    spread = (medians[RESAMPLES * 95 // 100] - medians[RESAMPLES * 5 // 100]) / 2
    return Compared(statistics.median(ratios), statistics.median(noises), spread)


def say(text: str) -> None:
    """Reports progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


def table(lines: Sequence[Line]) -> str:
    """A Markdown table; columns that no line uses are left out."""
    heads = {"what": "what", "figure": "measured", "noise": "noise floor", "budget": "budget", "holds": "holds"}
    used = [name for name in heads if any(getattr(line, name) for line in lines)]
    return markdown([heads[name] for name in used], ([getattr(line, name) for name in used] for line in lines))


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))
