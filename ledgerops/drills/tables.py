"""Scores as text: what happened in one drill, and the tables over all."""

from __future__ import annotations

from collections.abc import Sequence

from ledgerops.drills.bundle import Bundle
from ledgerops.drills.drill import Drill
from ledgerops.drills.score import Score


def details(drill: Drill, bundle: Bundle, score: Score) -> str:
    """What was found when, in seconds from the origin, and how the faults were met."""
    origin, times = bundle.times["origin"], bundle.times
    roles = {name: role for role, name in bundle.names.items()}
    effect = f", effect {times['effect'] - origin:.1f} s" if "effect" in times else ""
    lines = [
        f"{drill.id} {drill.name}: {'void' if score.void else 'passed' if score.passed else 'FAILED'}, "
        f"{score.points:.0f} points",
        f"  injected {times['injected'] - origin:.1f} s{effect}, repaired {times['repaired'] - origin:.1f} s",
    ]
    for each in score.sightings:
        lines.append(
            f"  {each.first - origin:6.1f} to {each.last - origin:6.1f} s  {each.finding.severity:<8} {each.rule:<22} "
            f"{roles.get(each.query, each.query)}  {each.finding.summary}"
        )
    for named in score.named:
        what = " or ".join(named.fault.rules)
        if named.seconds is None:
            lines.append(f"  NOT found: {what} of {named.fault.query}")
            continue
        flaws = [
            text
            for holds, text in (
                (named.root, "not a root cause"),
                (named.first, "not the first"),
                (named.place, "wrong place"),
                (named.remedy, "no fitting remedy"),
            )
            if not holds
        ]
        lines.append(f"  {what} found after {named.seconds:.1f} s{': ' + ', '.join(flaws) if flaws else ''}")
    if score.early:
        lines.append(f"  before the fault: {', '.join(score.early)}")
    if score.untrue:
        lines.append(f"  not true: {', '.join(score.untrue)}")
    if drill.recovers and drill.kind != "control":
        gone = "not gone by the end" if score.reset_seconds is None else f"gone {score.reset_seconds:.0f} s after"
        lines.append(f"  {gone} the repair" if score.reset_seconds is not None else f"  {gone}")
    return "\n".join(lines) + "\n"


def summary(scored: Sequence[tuple[Drill, Score]]) -> str:
    """One line a drill."""
    lines = []
    for drill, score in scored:
        times = ", ".join("missed" if each.seconds is None else f"{each.seconds:.1f} s" for each in score.named)
        state = "void" if score.void else "passed" if score.passed else "FAILED"
        lines.append(f"{drill.id:<4} {drill.name:<24} {state:<7} {score.points:5.1f}  {times}")
    return "\n".join(lines)
