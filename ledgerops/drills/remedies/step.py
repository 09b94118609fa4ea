"""Takes the step that a verdict advises: which cases it is tried on, and how the application is started again.

Only what is set at the next start can be taken here: an option or a configuration, with the number that the verdict
gave. A step that is a look ("time one write") changes nothing and is counted apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from ledgerops.drills.drawn.draw import case_of
from ledgerops.drills.harness.case import Case
from ledgerops.errors import UserError
from ledgerops.model.finding import CORES, DELAY_SECONDS, REPARTITION, SHUFFLE, TRIGGER_SECONDS, Setting

BEFORE, AFTER, CONTROL = "before", "after", "control"  # folders of the runs
KINDS = (
    "binding-cap", "too-many-tasks", "planning", "overload", "python-udf", "partition-skew", "late-rows",
    "unbounded-state", "heap", "neighbour", "idle-branch", "slow-gateway", "slow-sink", "straggler",
)  # fmt: skip
LATER_KINDS = ("heap",)  # that are never there from birth
PER_KIND = 2  # cases of a kind
FIRST_STEPS = 2  # of a finding: what a person does before anything else
MIN_TRIGGERS = 8  # for which a run with a longer interval lasts
CATCH_UP = 1.5  # times as long as the run before: rows that piled up while the application started are read first
DEFAULT_DELAY_SECONDS = 10.0  # where the step names no number
# options of applications that are whole numbers, and what they are where the step names no number
WHOLE = {
    "maxOffsetsPerTrigger": ("cap", 0), "maxFilesPerTrigger": ("cap", 0), REPARTITION: ("repartition", 1),
    SHUFFLE: ("shuffle", 1),
}  # fmt: skip
# the step of one fault, taken on another: it must not end it
CONTROLS = (
    ("late-rows", "overload"), ("too-many-tasks", "slow-sink"), ("binding-cap", "late-rows"),
    ("heap", "binding-cap"), ("idle-branch", "slow-gateway"), ("partition-skew", "slow-sink"),
)  # fmt: skip


class Step(NamedTuple):
    """What the verdict on a case advised; `saving_seconds` is what it promised of a batch. No settings: only a look."""

    rule: str
    action: str
    settings: tuple[Setting, ...]
    saving_seconds: float | None

    def save(self, folder: Path) -> None:
        """Writes the step to `folder/step.json`."""
        (folder / "step.json").write_text(json.dumps(self._asdict(), indent=1) + "\n", "utf-8")

    @staticmethod
    def load(folder: Path) -> Step:
        """Raises OSError or ValueError when the folder has no step."""
        found = json.loads((folder / "step.json").read_text("utf-8"))
        return Step(**{**found, "settings": tuple(Setting(*setting) for setting in found["settings"])})


def remedy_cases(seed: int, kinds: Sequence[str] = KINDS) -> list[Case]:
    """The cases of a seed on which steps are taken: `PER_KIND` of every kind, all with a trigger, so that harm has a
    limit.

    Faults that can be there from birth are: the application is then in trouble for the whole run, as it is when it is
    started again without the step.
    """
    return [case for kind in kinds for case in _drawn(kind, seed)]


def _drawn(kind: str, seed: int) -> Iterator[Case]:
    drawn = ((number, case_of(kind, seed, number)) for number in count(1))
    fit = (
        replace(case, name=f"{kind}-{number}", query=case.query or "observed")
        for number, case in drawn
        if case.trigger and (case.onset == "birth" or kind in LATER_KINDS)
    )
    return islice(fit, PER_KIND)


def advised(case: Case, folder: Path) -> Step | None:
    """The step of the newest verdict that names the case's fault first; None when no verdict does. Of the first two
    things to do, it is the first one that can be set."""
    for line in reversed((folder / "live.jsonl").read_text("utf-8").splitlines()):
        for query in json.loads(line).get("diagnosis", {}).get("queries", ()):
            roots = query["root_causes"]
            if query["query"] == (case.blamed or case.query) and roots and roots[0]["rule"] in case.expected:
                return _step(roots[0])
    return None


def _step(finding: Mapping[str, Any]) -> Step:
    steps = finding["remedies"][:FIRST_STEPS]
    chosen = next((step for step in steps if step["settings"]), steps[0])
    settings = tuple(Setting(step["name"], step["value"]) for step in chosen["settings"])
    return Step(finding["rule"], chosen["action"], settings, finding["saving_seconds"])


def treated(case: Case, settings: Sequence[Setting]) -> Case:
    """The case as it is started again with these settings. Raises UserError for one that applications do not take."""
    options, conf = dict(case.options), dict(case.conf)
    changes: dict[str, Any] = {"seconds": CATCH_UP * case.seconds}
    for name, value in settings:
        if name == TRIGGER_SECONDS:
            seconds = float(value or 0.0)
            changes |= {"trigger": seconds, "seconds": max(changes["seconds"], MIN_TRIGGERS * seconds)}
        elif name == DELAY_SECONDS:
            options["delay"] = f"{value or DEFAULT_DELAY_SECONDS:g} seconds"
        elif name == CORES:
            changes["master"] = re.sub(r"\[\d+", f"[{value:.0f}", case.master)
        elif name in WHOLE:
            option, default = WHOLE[name]
            options[option] = int(value or default)
        elif name.startswith("spark."):
            conf[name] = str(value)
        else:
            raise UserError(f"drill {case.name}: no application takes {name}")
    return _with_what_it_holds(replace(case, options=options, conf=conf, **changes), case)


def _with_what_it_holds(after: Case, before: Case) -> Case:
    """A cache that fills the heap is as large in a larger heap."""
    name = "spark.driver.memory"
    if name not in before.conf or after.conf[name] == before.conf[name]:
        return after
    more = _mib(after.conf[name]) - _mib(before.conf[name])
    changes = tuple(
        (at, {**values, "heap_left": values["heap_left"] + more} if "heap_left" in values else values)
        for at, values in before.changes
    )
    return replace(after, changes=changes)


def _mib(text: str) -> int:
    number, unit = int(text[:-1]), text[-1]
    return number * 1024 if unit == "g" else number
