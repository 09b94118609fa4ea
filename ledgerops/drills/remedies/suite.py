"""Runs applications with a fault, takes the steps that their verdicts advise, and runs them again."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ledgerops.common.shutdown import Stop
from ledgerops.drills.harness.case import Case
from ledgerops.drills.harness.suite import perform
from ledgerops.drills.remedies.step import AFTER, BEFORE, CONTROL, CONTROLS, Step, advised, treated
from ledgerops.errors import UserError


def perform_remedies(chosen: Sequence[Case], out: Path, lanes: int, stop: Stop) -> dict[str, str]:
    """Runs every case, then again with its step, then the controls; gives the problem of each that could not be run."""
    problems = perform(chosen, out / BEFORE, lanes, stop)
    steps: dict[str, Step] = {}
    for case in chosen:
        step = advised(case, out / BEFORE / case.name) if case.name not in problems else None
        if step is not None:
            step.save(out / BEFORE / case.name)
            steps[case.name] = step
    again = [_again(case, steps[case.name]) for case in chosen if case.name in steps]
    problems |= perform([case for case in again if case is not None], out / AFTER, lanes, stop)
    controls = list(_controls(chosen, steps))
    problems |= perform([case for case, _ in controls], out / CONTROL, lanes, stop)
    for case, step in controls:
        if case.name not in problems:
            step.save(out / CONTROL / case.name)
    return problems


def _again(case: Case, step: Step) -> Case | None:
    if not step.settings:
        return None
    try:
        return treated(case, step.settings)
    except UserError as error:
        print(error, file=sys.stderr)
        return None


def _controls(chosen: Sequence[Case], steps: dict[str, Step]) -> list[tuple[Case, Step]]:
    """A case of the second kind with the step of the first, for each pair of which there are both."""
    found = []
    for giver, taker in CONTROLS:
        given = next((steps[case.name] for case in chosen if case.kind == giver and case.name in steps), None)
        case = next((case for case in chosen if case.kind == taker), None)
        if given is not None and case is not None:
            made = _again(case, given)
            if made is not None:
                found.append((replace(made, name=f"{case.name}-with-{giver}"), given))
    return found
