"""Scores the answers of any tool on the cases of this data set. Needs Python 3.10 and nothing else.

    python score.py DATASET ANSWERS.jsonl [--json]

A line of ANSWERS: {"case": "18-07", "at": epoch seconds, "causes": [{"cause": "slow-sink", "place": "orders"}, ...]}.
Causes are ranked, their names are in causes.json. A tool that watches answers many times a case, one that looks back
once. `place`, a query, and `severity` may be left out. A cause placed in another query of the case than the broken one
takes no rank. A cause of severity info is no alarm, and names only a fault that is due at info.

recall  share of the faults that an answer after their start names, anywhere among its causes
AC@k    share of the faults that the first k causes name in most answers, from the first that names the fault on; of
        answers before the harm only where none names it later
time    median seconds from the start of the harm to the first answer that names the fault, 0 before the harm; only of
        tools that answer more than once
silent  share of the healthy cases without an alarm. An alarm is a run of answers with a cause, in a healthy case or
        before the fault; causes that were true of the machine (`also_true`) are none. alarms/hour: by healthy hour
Void cases, whose fault did no harm, are left out. [low, high] is Wilson's interval of 95 % of a share.
"""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

LEVELS = {"info": 0, "warning": 1, "critical": 2}
RANKS = (1, 3, 5)
Json = Mapping[str, Any]


class Judged(NamedTuple):
    seconds: float | None  # from the harm to the first answer that names the fault; None: never
    leads: Mapping[int, bool]  # by k: whether the first k causes name it in most answers
    alarms: Sequence[set[str]]  # the causes of each


def judge(truth: Json, answers: Sequence[Json]) -> Judged:
    """Compares the answers to one case, in order of time, with its truth."""
    alarms, silent = list[set[str]](), True
    for answer in answers:
        if truth["healthy"] or (truth["onset"] == "later" and answer["at"] < truth["fault_at"]):
            said = {cause["cause"] for cause in answer["causes"] if cause["severity"] != "info"} - {*truth["also_true"]}
            if said:
                alarms[len(alarms) - (not silent) :] = [said if silent else alarms[-1] | said]
            silent = not said
    right, others, harm = {*truth["accepted"]}, truth["elsewhere"], truth["harm_at"]
    seconds, leads = None, dict.fromkeys(RANKS, False)
    ranked = [(each["at"], [cause for cause in each["causes"] if cause.get("place") not in others]) for each in answers]
    loud = [name for name, rank in LEVELS.items() if harm is not None and rank >= LEVELS[truth["due"]]]
    named = [at for at, causes in ranked if any(each["cause"] in right and each["severity"] in loud for each in causes)]
    if hits := [at for at in named if at >= truth["fault_at"]]:
        seconds, since = max(0.0, hits[0] - harm), max(hits[0], min(harm, hits[-1]))
        after = [[each["cause"] for each in causes] for at, causes in ranked if at >= since]
        leads = {k: 2 * sum(not right.isdisjoint(causes[:k]) for causes in after) > len(after) for k in RANKS}
    return Judged(seconds, leads, alarms)


def share(count: int, total: int) -> Json | None:
    """A share with Wilson's interval of 95 %; None of nothing."""
    if not total:
        return None
    part, z2 = count / total, 1.96**2 / total
    middle, half = part + z2 / 2, math.sqrt(z2 * part * (1 - part) + z2 * z2 / 4)
    low, high = max(0.0, (middle - half) / (1 + z2)), min(1.0, (middle + half) / (1 + z2))
    return {"share": part, "low": low, "high": high, "count": count, "of": total}


def figures(cases: Sequence[tuple[Json, Judged]], watched: bool) -> Json:
    """All figures of some cases. `watched`: whether the tool answers more than once."""
    faults = [judged for truth, judged in cases if not truth["healthy"]]
    healthy = [judged for truth, judged in cases if truth["healthy"]]
    times = [judged.seconds for judged in faults if judged.seconds is not None]
    well = sum(max(0.0, truth["ended" if truth["healthy"] else "fault_at"] - truth["started"]) for truth, _ in cases)
    return {
        "faults": len(faults),
        "recall": share(len(times), len(faults)),
        **{f"AC@{k}": share(sum(judged.leads[k] for judged in faults), len(faults)) for k in RANKS},
        "time": median(times) if times and watched else None,
        "healthy": len(healthy),
        "silent": share(sum(not judged.alarms for judged in healthy), len(healthy)),
        "alarms/hour": sum(len(judged.alarms) for _, judged in cases) * 3600 / well if well else None,
    }


def read(file: Path, cases: Iterable[str], causes: Json) -> dict[str, list[Any]]:
    """The answers by case, in order of time. Raises ValueError with the number of a line that is not an answer."""
    answers: dict[str, list[Any]] = {case: [] for case in cases}
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            answer = json.loads(line)
            answers[answer["case"]].append(answer | {"at": (at := float(answer["at"]))})
            if not 0 <= at < math.inf:
                raise ValueError(f"{at} is no time: expected seconds since the epoch")
            for cause in answer["causes"]:
                if cause["cause"] not in causes or cause.setdefault("severity", "warning") not in LEVELS:
                    raise ValueError(f"unknown cause or severity in {cause}")
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
            why = f"missing or unknown {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"{file}:{number}: not an answer: {why}") from None
    return {case: sorted(given, key=lambda answer: answer["at"]) for case, given in answers.items()}


def report(dataset: Path, file: Path, split: str = "") -> Json:
    """The figures of all cases, or of those of a split, and of each group."""
    truths = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted((dataset / "truth").glob("*.json"))}
    answers = read(file, truths, json.loads((dataset / "causes.json").read_text("utf-8")))
    truths = {case: truth for case, truth in truths.items() if split in ("", truth["split"])}
    judged = [(truth, judge(truth, answers[case])) for case, truth in truths.items() if not truth["void"]]
    watched = any(len(given) > 1 for given in answers.values())
    found = {"all": figures(judged, watched)}
    for group in ("split", "kind", "onset", "strength", "source"):
        for value in sorted({truth[group] for truth, _ in judged} - {""}):
            found[f"{group}: {value}"] = figures([each for each in judged if each[0][group] == value], watched)
    unanswered = sum(not answers[truth["case"]] for truth, _ in judged)
    return {"cases": len(truths), "void": len(truths) - len(judged), "unanswered": unanswered, "figures": found}


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return "{share:.2f} [{low:.2f}, {high:.2f}]".format(**value)
    return "" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)


def _main(arguments: Sequence[str]) -> int:
    words = [word for word in arguments if word != "--json"]
    try:
        if len(words) != 2:
            raise ValueError("usage: python score.py DATASET ANSWERS.jsonl [--json]")
        found = report(Path(words[0]), Path(words[1]))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    if "--json" in arguments:
        print(json.dumps(found, indent=1))
        return 0
    print(f"{found['cases']} cases; {found['void']} void, left out; {found['unanswered']} without an answer\n")
    rows = [("", *found["figures"]["all"])]
    rows += [(group, *map(_cell, values.values())) for group, values in found["figures"].items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
