"""Scores of scripted drills, as they are run or from their folders: printed, published and saved."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ledgerops.common.shutdown import Stop
from ledgerops.drills import BY_NAME
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import Case
from ledgerops.drills.harness.suite import perform
from ledgerops.drills.scoring import publish as page
from ledgerops.drills.scoring import report, sections
from ledgerops.drills.scoring.score import Score, score
from ledgerops.errors import UserError


class DrillResult(NamedTuple):
    """A drill that was run: its score, or why it could not be run."""

    drill: Case
    bundle: Bundle | None
    score: Score | None
    problem: str | None = None


def listed(drills: Sequence[Case]) -> str:
    """One line a drill."""
    wide, width = max(len(drill.id) for drill in drills), max(len(drill.name) for drill in drills)
    return "\n".join(
        f"{drill.id:<{wide}}  {drill.name:<{width}}  {drill.group:<8}  {drill.summary}" for drill in drills
    )


def perform_scripted(drills: Sequence[Case], out: Path, seed: int, lanes: int, stop: Stop) -> list[DrillResult]:
    """Runs the drills, each in a folder of its own, and scores them. Reports progress on stderr."""
    done: dict[str, DrillResult] = {}

    def scored(drill: Case, bundle: Bundle) -> str:
        found = score(drill, bundle)
        done[drill.name] = DrillResult(drill, bundle, found)
        return report.state(found)

    problems = perform(drills, out, lanes, stop, scored, seed)
    return [done.get(drill.name) or DrillResult(drill, None, None, problems[drill.name]) for drill in drills]


def score_again(folder: Path, drills: Sequence[Case]) -> list[DrillResult]:
    """Scores the bundles in a folder anew. Raises UserError when there is none."""
    found = [folder, *sorted(folder.glob("*"))] if folder.is_dir() else []
    bundles = [Bundle(place) for place in found if (place / "times.json").exists()]
    wanted = {drill.name for drill in drills}
    results = []
    for bundle in bundles:
        try:
            drill = BY_NAME.get(bundle.drill)
        except UserError:
            drill = BY_NAME.get(bundle.folder.name)  # its own file is damaged, which scoring reports
        if drill is None or drill.name not in wanted:
            continue
        try:
            if drill.effect is not None and (bundle.folder / "checkpoints").is_dir():
                bundle.times.pop("effect", None)  # the drill may define it otherwise now
                bundle.note(effect=drill.effect(bundle))
            results.append(DrillResult(drill, bundle, score(drill, bundle)))
        except KeyError as missing:
            results.append(DrillResult(drill, None, None, f"{bundle.folder} has no {missing}; run the drill again"))
        except (UserError, OSError) as error:
            results.append(DrillResult(drill, None, None, str(error)))
    if not results:
        raise UserError(f"no result of a drill in {folder}; run ledgerops drill first")
    if len(bundles) > 1:
        there = {result.drill.name for result in results}
        results += [DrillResult(drill, None, None, "it was not run") for drill in drills if drill.name not in there]
    return results


def finish(results: Sequence[DrillResult], publish: Path | None, save: Path | None, note: str = "") -> int:
    """Prints the details and the tables, writes what was asked for, and gives the exit code."""
    done = [(result.drill, result.bundle, result.score) for result in results if result.bundle and result.score]
    scored = [(drill, found) for drill, _, found in done]
    for drill, bundle, found in done:
        print(report.details(drill, bundle, found))
        if save is not None:
            page.save(bundle, save)
    if len(done) > 1:
        totals = report.sums(scored)
        print(
            f"{report.by_drill(scored)}\n\nrecall {totals.recall:.2f} of {totals.faults} faults, root cause first "
            f"{totals.first:.2f}, median time {totals.seconds or 0:.1f} s, findings in {totals.alarms} of "
            f"{totals.controls} controls"
        )
    problems = {result.drill.name: result.problem for result in results if result.problem is not None}
    if publish is not None and done:
        sections.publish(publish, page.part(scored, problems, done[0][1].seed, note))
        print(f"wrote {publish}")
    for name, problem in problems.items():
        print(f"{name} could not be run: {problem}")
    if problems:
        return 2
    return int(not all(found.passed for _, found in scored))
