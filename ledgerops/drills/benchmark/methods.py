"""Every method that is compared: what it is given, and how it answers the cases of a data set."""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ledgerops.drills.benchmark.baselines import log_reader, ours, packages, ranking, thresholds
from ledgerops.drills.benchmark.baselines.data import Answer, BenchmarkCase, answered

METRICS = "the scraped metrics"
CHANCE_RANKS = 3
TOLD = "the scraped metrics, and when the fault began"


class DataSet(NamedTuple):
    """A data set with the cases of one split, and the environment of the packages of others (a folder with `bin`)."""

    folder: Path
    cases: list[BenchmarkCase]
    environment: Path

    def truths(self) -> dict[str, dict[str, Any]]:
        """The truth of each case."""
        return {
            case.name: json.loads((self.folder / "truth" / f"{case.name}.json").read_text("utf-8"))
            for case in self.cases
        }

    def causes(self) -> dict[str, Any]:
        """The causes that an answer may name."""
        return dict(json.loads((self.folder / "causes.json").read_text("utf-8")))


class Method(NamedTuple):
    """One row of the table."""

    slug: str
    name: str
    given: str
    answers: Callable[[DataSet], Iterable[Answer]]


def _each(look: Callable[[BenchmarkCase], Iterable[Answer]]) -> Callable[[DataSet], Iterator[Answer]]:
    return lambda data: (answer for case in data.cases for answer in look(case))


def _package(method: str) -> Callable[[DataSet], Iterator[Answer]]:
    def answers(data: DataSet) -> Iterator[Answer]:
        for answer, error in packages.by_package(data.environment / "bin" / "python", method, data.cases):
            if error:
                print(f"{method} gave no answer to {answer['case']}: {error}", file=sys.stderr)
            yield answer

    return answers


def _log_reader(data: DataSet) -> Iterator[Answer]:
    return _each(partial(log_reader.by_log_reader, program=data.environment / "bin" / "ignis"))(data)


def _live(data: DataSet) -> Iterator[Answer]:
    names = {case.name for case in data.cases}
    return (answer for answer in ours.live(data.folder) if answer["case"] in names)


def most_frequent(truths: Iterable[Mapping[str, Any]]) -> str:
    """The cause that most faults accept. It is taken from the truth, which is generous."""
    return str(Counter(cause for truth in truths for cause in truth["accepted"]).most_common(1)[0][0])


def _always(data: DataSet) -> Iterator[Answer]:
    cause = most_frequent(data.truths().values())
    return (answered(case.name, case.ended, (cause,)) for case in data.cases)


def chance(case: BenchmarkCase, causes: Collection[str]) -> Answer:
    """Three of the causes, drawn at random; the same ones in each run."""
    drawn = random.Random(case.name).sample(sorted(causes), min(CHANCE_RANKS, len(causes)))
    return answered(case.name, case.ended, drawn)


def _chance(data: DataSet) -> Iterator[Answer]:
    causes = data.causes()
    return (chance(case, causes) for case in data.cases)


def _replay(place: str, keep: ours.Filter = ours.everything) -> Callable[[DataSet], Iterator[Answer]]:
    return _each(lambda case: ours.replayed(case, place, keep))


METHODS = (
    Method("live", "ledgerops, live", "the running driver", _live),
    Method("recording", "ledgerops, recording", "its recording", _replay("recording")),
    Method("event-log", "ledgerops, event log", "Spark's event log", _replay("eventlog")),
    Method(
        "spark-only", "ledgerops, Spark's metrics only", "of its recording what Spark exports itself",
        _replay("recording", ours.spark_only),
    ),
    Method("thresholds", "fixed thresholds", METRICS, _each(thresholds.by_thresholds)),
    Method("backlog", "backlog alone", "the backlog in offsets", _each(thresholds.by_backlog)),
    Method("z-score", "z-score ranking", TOLD, _each(partial(ranking.answer, score=ranking.z_score))),
    Method("change-point", "change-point ranking", TOLD, _each(partial(ranking.answer, score=ranking.change_point))),
    Method("baro", "BARO (fse-baro)", TOLD, _package("baro")),
    Method("n-sigma", "n-sigma (fse-baro)", TOLD, _package("nsigma")),
    Method("log-reader", "spark-ignis", "Spark's event log", _log_reader),
    Method("most-frequent", "always the most frequent cause", "the truth of the data set", _always),
    Method("chance", "three causes at random", "nothing", _chance),
)  # fmt: skip
ABLATIONS = (
    Method("without-tasks", "tasks", "", _replay("recording", ours.without("tasks"))),
    Method("without-broker", "the broker's offsets", "", _replay("recording", ours.without("offsets"))),
    Method("without-machine", "machine, processes, executors", "", _replay("recording", ours.without("host"))),
    Method("without-past", "the time before the fault", "", _replay("recording", ours.without_past)),
    Method("without-trigger", "the trigger interval", "", _replay("recording", ours.without_trigger)),
)
