"""Scores of scripted drills, as they are run or from their folders: printed, published and saved."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ledgerops.common.shutdown import Stop
from ledgerops.drills.catalogue import BY_NAME
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import Case
from ledgerops.drills.harness.suite import perform
from ledgerops.drills.scoring import report, sections
from ledgerops.drills.scoring.score import Scored, score
from ledgerops.errors import UserError


def listed(drills: Sequence[Case]) -> str:
    """One line a drill."""
    wide, width = max(len(drill.id) for drill in drills), max(len(drill.name) for drill in drills)
    return "\n".join(
        f"{drill.id:<{wide}}  {drill.name:<{width}}  {drill.group:<8}  {drill.summary}" for drill in drills
    )


def perform_scripted(
    drills: Sequence[Case], out: Path, seed: int, lanes: int, stop: Stop
) -> tuple[list[Scored], dict[str, str]]:
    """Runs the drills, each in a folder of its own, and scores them; also gives why a drill could not be run, by name.
    Reports progress on stderr."""
    done: dict[str, Scored] = {}

    def scored(drill: Case, bundle: Bundle) -> str:
        done[drill.name] = Scored(drill, bundle, score(drill, bundle))
        return report.state(done[drill.name].score)

    problems = perform(drills, out, lanes, stop, scored, seed)
    return [done[drill.name] for drill in drills if drill.name in done], problems


def score_again(folder: Path, drills: Sequence[Case]) -> tuple[list[Scored], dict[str, str]]:
    """Scores the bundles in a folder anew; also gives why a drill could not be scored, by name. Raises UserError when
    there is none."""
    found = [folder, *sorted(folder.glob("*"))] if folder.is_dir() else []
    bundles = [Bundle(place) for place in found if (place / "times.json").exists()]
    wanted = {drill.name for drill in drills}
    done, problems = list[Scored](), dict[str, str]()
    for bundle in bundles:
        try:
            drill = BY_NAME.get(bundle.stored["drill"])
        except UserError:
            drill = BY_NAME.get(bundle.folder.name)  # its own file is damaged, which scoring reports
        if drill is None or drill.name not in wanted:
            continue
        try:
            if drill.effect is not None and (bundle.folder / "checkpoints").is_dir():
                bundle.times.pop("effect", None)  # the drill may define it otherwise now
                bundle.note(effect=drill.effect(bundle))
            done.append(Scored(drill, bundle, score(drill, bundle)))
        except KeyError as missing:
            problems[drill.name] = f"{bundle.folder} has no {missing}; run the drill again"
        except (UserError, OSError) as error:
            problems[drill.name] = str(error)
    there = {each.drill.name for each in done} | problems.keys()
    if not there:
        raise UserError(f"no result of a drill in {folder}; run ledgerops drill first")
    if len(bundles) > 1:
        problems |= {drill.name: "it was not run" for drill in drills if drill.name not in there}
    return done, problems


def finish(
    scored: Sequence[Scored], problems: Mapping[str, str], publish: Path | None, save: Path | None, note: str = ""
) -> int:
    """Prints the details and the tables, writes what was asked for, and gives the exit code."""
    for drill, bundle, found in scored:
        print(report.details(drill, bundle, found))
        if save is not None:
            bundle.save(save)
    if len(scored) > 1:
        totals = report.sums(scored)
        print(
            f"{report.by_drill(scored)}\n\nrecall {totals.recall:.2f} of {totals.faults} faults, root cause first "
            f"{totals.first:.2f}, median time {totals.seconds or 0:.1f} s, findings in {totals.alarms} of "
            f"{totals.controls} controls"
        )
    part = report.part(scored, problems, scored[0].bundle.stored["seed"], note) if scored and publish else None
    sections.conclude(part, publish, problems)
    if problems:
        return 2
    return int(not all(each.score.passed for each in scored))
