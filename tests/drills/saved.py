"""The saved recordings of the drills, each replayed once for all tests of a process."""

from functools import cache
from pathlib import Path

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.scoring.score import replay
from ledgerops.model.finding import Verdict
from tests.evidence.numbers import Number, compare
from tests.paths import RECORDED

FOLDER = RECORDED / "drills"
NAMES = sorted(each.name for each in FOLDER.iterdir() if (each / "drill.json").exists())


def bundle(name: str) -> Bundle:
    return Bundle(FOLDER / name)


def recording(name: str) -> Path:
    return bundle(name).recording


@cache
def verdicts(name: str) -> tuple[Verdict, ...]:
    return tuple(replay(bundle(name)))


@cache
def numbers(name: str) -> tuple[Number, ...]:
    """Every number of its findings, beside what its recording gives."""
    return tuple(compare(recording(name), verdicts(name)))
