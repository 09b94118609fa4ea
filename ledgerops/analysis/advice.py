"""What was advised before a change, and whether the harm has ended since: a part of a comparison."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from ledgerops.analysis.batch_samples import BatchSample
from ledgerops.analysis.session import DEFAULTS, Investigation
from ledgerops.config import Config
from ledgerops.model.spark_progress import format_instant

FIRST_STEPS = 2  # of a finding: what a person does before anything else
Causes = dict[str, list[Mapping[str, Any]]]  # of each query, the worst first


def harms(place: str, at: float | None = None, config: Config = DEFAULTS) -> Causes:
    """The root causes at warning or above: of a file those that lasted to its end or to `at`, of an exporter those of
    now. Raises UserError when the place cannot be read."""
    investigation = Investigation(place, at=at, config=config)
    document = investigation.diagnose()
    found: Causes = {query["query"]: [] for query in document["queries"]}
    now = ({**cause, "query": query["query"]} for query in document["queries"] for cause in query["root_causes"])
    for cause in document.get("incidents", now):
        ended = investigation.replay.registry.queries[cause["query"]].history.ended
        last = None if ended is None else format_instant(ended.at)
        # with a run after which another began, it did not last
        lasted = cause.get("ended") != "with the run" or (last is not None and cause["until"] >= last)
        if cause["severity"] != "info" and cause.get("ended") != "by itself" and lasted:
            found[cause["query"]].append(cause)
    return found


def advice(before: Causes, after: Causes, samples: tuple[Mapping[str, Sequence[BatchSample]], ...]) -> dict[str, Any]:
    """By query: what was wrong before the change, the step that was advised for it, and what became of the harm.
    Seconds are of the median batch with rows. A query has an entry where something that can be set was advised for its
    worst cause, and where it was seen after the change. `still` are the root causes after it."""
    found = {}
    for query, causes in before.items():
        steps = causes[0]["remedies"][:FIRST_STEPS] if causes and query in after else []
        step = next((each for each in steps if each["settings"]), None)
        if step is None:
            continue
        worst, still = causes[0], [each["rule"] for each in after[query]]
        found[query] = {
            "rule": worst["rule"], "action": step["action"], "settings": step["settings"],
            "promised_seconds": worst["saving_seconds"], "before_seconds": _batch_seconds(samples[0].get(query, ())),
            "after_seconds": _batch_seconds(samples[1].get(query, ())), "ended": worst["rule"] not in still,
            "still": still,
        }  # fmt: skip
    return found


def _batch_seconds(samples: Sequence[BatchSample]) -> float | None:
    worked = [each.seconds for each in samples if each.rows > 0]
    return round(median(worked), 3) if worked else None
