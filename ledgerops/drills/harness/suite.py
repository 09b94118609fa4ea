"""Runs several drills, in sequence or in parallel, and reports their scores."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ledgerops.common.format import duration
from ledgerops.common.shutdown import Stop
from ledgerops.drills import BY_NAME
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.runner import run_drill
from ledgerops.drills.scoring import drawn_page, report
from ledgerops.drills.scoring import publish as page
from ledgerops.drills.scoring.score import Score, score
from ledgerops.errors import UserError


class DrillResult(NamedTuple):
    """A drill that was run: its score, or why it could not be run."""

    drill: Drill
    bundle: Bundle | None
    score: Score | None
    problem: str | None = None


def listed(drills: Sequence[Drill]) -> str:
    """One line a drill."""
    wide, width = max(len(drill.id) for drill in drills), max(len(drill.name) for drill in drills)
    return "\n".join(f"{drill.id:<{wide}}  {drill.name:<{width}}  {drill.kind:<8}  {drill.summary}" for drill in drills)


def perform(drills: Sequence[Drill], out: Path, seed: int, lanes: int, stop: Stop) -> list[DrillResult]:
    """Runs the drills; light ones `lanes` at a time, heavy ones alone. Reports progress on stderr.

    On a stop request running drills end as soon as they can, and no others start.
    """
    began = time.monotonic()
    # the longest first, so that no lane is left with one at the end
    light = sorted((drill for drill in drills if not drill.heavy), key=lambda drill: -drill.seconds)
    heavy = [drill for drill in drills if drill.heavy]
    done: list[DrillResult] = []

    def one(drill: Drill) -> DrillResult:
        if stop.asked:
            return DrillResult(drill, None, None, stop.reason)
        result = _one(drill, out / drill.name, seed, 1 if drill.heavy else lanes, stop)
        done.append(result)
        progress = f"{len(done)} of {len(drills)} after {duration(time.monotonic() - began)}"
        print(f"{_line(result)}  ({progress})", file=sys.stderr, flush=True)
        return result

    with ThreadPoolExecutor(lanes) as pool:
        results = list(pool.map(one, light))
    results += [one(drill) for drill in heavy]
    order = {drill.name: place for place, drill in enumerate(drills)}
    return sorted(results, key=lambda result: order[result.drill.name])


def score_again(folder: Path, drills: Sequence[Drill]) -> list[DrillResult]:
    """Scores the bundles in a folder anew. Raises UserError when there is none."""
    found = [folder, *sorted(folder.glob("*"))] if folder.is_dir() else []
    bundles = [Bundle(each) for each in found if (each / "times.json").exists()]
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
            if drill.effect is not None and (bundle.folder / "work").is_dir():
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
    for drill, bundle, each in done:
        print(report.details(drill, bundle, each))
        if save is not None:
            page.save(bundle, save)
    if len(done) > 1:
        scored = [(drill, each) for drill, _, each in done]
        print(report.by_drill(scored), "", report.by_rule(scored), "", sep="\n")
        totals = report.sums(scored)
        print(
            f"recall {totals.recall:.2f} of {totals.faults} faults, root cause first {totals.first:.2f}, "
            f"median time {totals.seconds or 0:.1f} s, findings in {totals.alarms} of {totals.controls} controls"
        )
    if publish is not None and done:
        problems = {result.drill.name: result.problem for result in results if result.problem is not None}
        text = page.page(done, problems, page.today(), page.machine(), done[0][1].seed, note)
        publish.write_text(drawn_page.keep_section(publish, text), "utf-8")
        print(f"wrote {publish}")
    for result in results:
        if result.problem is not None:
            print(f"{result.drill.name} could not be run: {result.problem}")
    if any(result.problem is not None for result in results):
        return 2
    return int(not all(each.passed for _, _, each in done))


def _one(drill: Drill, folder: Path, seed: int, lanes: int, stop: Stop) -> DrillResult:
    try:
        bundle = run_drill(drill, folder, seed, lanes, stop)
        return DrillResult(drill, bundle, score(drill, bundle))
    except (UserError, OSError, KeyError) as error:
        return DrillResult(drill, None, None, f"{type(error).__name__}: {error}" if not str(error) else str(error))


def _line(result: DrillResult) -> str:
    if result.score is None:
        return f"{result.drill.name}: could not be run: {result.problem}"
    return f"{result.drill.name}: {report.state(result.score)}, {result.score.points:.0f} points"
