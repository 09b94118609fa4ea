"""Whether the steps that verdicts advise help: each case before and after, and the table that is published."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ledgerops.common.format import duration
from ledgerops.drills.harness.case import Case
from ledgerops.drills.remedies.harm import Harm, measure
from ledgerops.drills.remedies.step import AFTER, BEFORE, CONTROL, Step
from ledgerops.drills.scoring import sections
from ledgerops.drills.scoring.report import table
from ledgerops.errors import UserError


class Taken(NamedTuple):
    """A step that was taken on a case. `after` is None where there was nothing to set, or no step was advised."""

    case: Case
    step: Step | None
    before: Harm
    after: Harm | None
    control: str = ""  # the kind of fault whose step it is, where it is another's

    @property
    def kind(self) -> str:
        """How it is counted: "no harm", "not named", "look", "helped" or "did not help"."""
        if self.before.ended:
            return "no harm"
        if self.step is None:
            return "not named"
        if self.after is None:
            return "look"
        return "helped" if self.after.ended else "did not help"


def taken(folder: Path, before: Path, control: str = "") -> Taken:
    """The step of one case. `before` is the run without it, `folder` that with it, which need not exist. Raises
    UserError when a run cannot be read."""
    case = Case.load(before)
    try:
        step = Step.load(folder if control else before)
    except OSError:
        step = None
    after = measure(Case.load(folder), folder) if (folder / "times.json").exists() else None
    return Taken(case, step, measure(case, before), after, control)


MEANING = "whether the advice helps: the step was taken, with the number that the verdict gave"


def part(found: Sequence[Taken], note: str = "") -> sections.Part:
    """The Markdown of the steps that were taken, with their sums in front, and a note on the runs."""
    own, controls = ([taken for taken in found if bool(taken.control) is control] for control in (False, True))
    counted = Counter(taken.kind for taken in own)
    helped, tried = counted["helped"], counted["helped"] + counted["did not help"]
    text = (
        f"The step ended the harm in {helped} of {tried} cases in which it could be set. In "
        f"{counted['look']} cases the first two steps were only a look, in {counted['not named']} the fault was not "
        f"named first, and in {counted['no harm']} it did no harm on this machine."
    )
    row = "[steps that were taken](#steps-that-were-taken)", f"harm ended in {helped} of {tried}", "", MEANING
    drills = f"{_cases(own)}\n\nControls, with the step of another fault:\n\n{_cases(controls)}"
    return sections.Part("steps", f"{note}\n\n{text}" if note else text, row, drills)


def _cases(some: Sequence[Taken]) -> str:
    head = ("case", "step", "harm before", "after", "outcome", "saved (promised)", "advised")
    return table(head, map(_row, some))


def _row(taken: Taken) -> tuple[str, ...]:
    case, step = taken.case, taken.step
    name = f"{case.name} of seed {case.seed}, {case.source}, {case.trigger:g} s"
    if step is None or taken.after is None:
        return name, step.action if step else "", f"{taken.before.what} {taken.before.text}", "", taken.kind, "", ""
    saved = ""
    if taken.after.unit == taken.before.unit == "s" and taken.after.what == "batch" and not taken.control:
        promised = f" ({duration(step.saving_seconds)})" if step.saving_seconds is not None else ""
        saved = f"{duration(max(0.0, taken.before.value - taken.after.value))}{promised}"
    numbers = ", ".join(f"{name.removeprefix('spark.').removeprefix('sql.')} {value}" for name, value in step.settings)
    of = f" (of {taken.control})" if taken.control else ""
    before, after = f"{taken.before.what} {taken.before.text}", taken.after.text
    return name, f"{step.action}{of}", before, after, taken.kind, saved, numbers


def all_taken(folder: Path) -> list[Taken]:
    """Every step that was taken below a folder of runs. Raises UserError when there is none, or one cannot be read."""
    found = [taken(folder / AFTER / run.name, run) for run in _runs(folder / BEFORE)]
    for run in _runs(folder / CONTROL):
        name, _, giver = run.name.partition("-with-")
        found.append(taken(run, folder / BEFORE / name, control=giver))
    if not found:
        raise UserError(f"{folder} has no runs of ledgerops drill --remedies")
    return found


def _runs(folder: Path) -> list[Path]:
    return sorted(run.parent for run in folder.glob("*/times.json"))
