"""Scores of scripted drills as text: the details of one, and over all of them the part of a page that is published."""

import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import NamedTuple

import psutil

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import Case
from ledgerops.drills.scoring import sections
from ledgerops.drills.scoring.score import Score, Scored

MEANING = "that these faults are told apart on this machine; not what to expect of other workloads"


class Sums(NamedTuple):
    """Over the fault drills that took effect; combined ones count once for each fault."""

    faults: int
    recall: float
    first: float  # root cause first
    seconds: float | None  # median from effect to finding
    worst: float | None
    controls: int
    alarms: int  # controls in which something was found


def sums(scored: Sequence[Scored]) -> Sums:
    """Counts, shares and seconds over `scored`. Void drills count neither as found nor as missed."""
    faults = [fault for _, _, score in scored if not score.void for fault in score.faults]
    times = [fault.seconds for fault in faults if fault.seconds is not None]
    controls = [score for drill, _, score in scored if drill.healthy]
    firsts = [score.faults[0].is_first for _, _, score in scored if score.faults and not score.void]
    return Sums(
        len(faults), mean([fault.seconds is not None for fault in faults] or [0]), mean(firsts or [0]),
        median(times) if times else None, max(times, default=None), len(controls),
        sum(bool(score.early or score.untrue) for score in controls),
    )  # fmt: skip


def details(drill: Case, bundle: Bundle, score: Score) -> str:
    """What was found when, in seconds from the origin, and how each fault was diagnosed."""
    origin, times = bundle.times["origin"], bundle.times
    roles = {name: role for role, name in bundle.names.items()}
    effect = f", effect {times['effect'] - origin:.1f} s" if "effect" in times else ""
    lines = [
        f"{drill.id} {drill.name}: {state(score)}",
        f"  injected {times['injected'] - origin:.1f} s{effect}, repaired {times['repaired'] - origin:.1f} s",
    ]
    for seen in score.sightings:
        lines.append(
            f"  {seen.first - origin:6.1f} to {seen.last - origin:6.1f} s  {seen.finding.severity:<8} {seen.rule:<22} "
            f"{roles.get(seen.query, seen.query)}  {seen.finding.summary}"
        )
    for fault in score.faults:
        what = " or ".join(fault.fault.rules)
        if fault.seconds is None:
            lines.append(f"  NOT found: {what} of {fault.fault.query}")
            continue
        met = {
            "not a root cause": fault.is_root, "not the first": fault.is_first, "wrong place": fault.in_place,
            "no fitting remedy": fault.has_remedy,
        }  # fmt: skip
        flaws = ", ".join(flaw for flaw, holds in met.items() if not holds)
        lines.append(f"  {what} found after {fault.seconds:.1f} s{flaws and ': '}{flaws}")
    if score.early:
        lines.append(f"  before the fault: {', '.join(score.early)}")
    if score.untrue:
        lines.append(f"  not true: {', '.join(score.untrue)}")
    if drill.recovers and not drill.healthy:
        gone = score.reset_seconds
        lines.append("  not gone by the end" if gone is None else f"  gone {gone:.0f} s after the repair")
    return "\n".join(lines) + "\n"


def state(score: Score) -> str:
    """`void`, `passed` or `FAILED`."""
    return "void" if score.void else "passed" if score.passed else "FAILED"


def by_drill(scored: Sequence[Scored]) -> str:
    """One line a drill."""
    rows = []
    for drill, _, score in scored:
        found = ", ".join("missed" if fault.seconds is None else f"{fault.seconds:.1f} s" for fault in score.faults)
        if drill.healthy:
            found = ", ".join(score.early + score.untrue) or "silent"
        firsts = "yes" if score.faults and score.faults[0].is_first else "no" if score.faults else ""
        gone = "not gone" if score.reset_seconds is None else f"{score.reset_seconds:.1f} s"
        reset = gone if score.faults and drill.recovers else ""
        wrong = ", ".join(score.early + score.untrue) if not drill.healthy else ""
        rows.append((drill.id, drill.name, state(score), found, firsts, reset, wrong))
    return table(("", "drill", "", "found after", "root first", "reset", "not true"), rows)


def part(scored: Sequence[Scored], problems: Mapping[str, str], seed: int, note: str) -> sections.Part:
    """The scripted drills: sums, a row of the summary, and the rows drill by drill. `problems`: why a drill could not
    be run, by name."""
    totals = sums(scored)
    text = [
        f"Run of {today()} on {machine()}, seed {seed}: {len(scored)} drills.{f' {note}' if note else ''}\n",
        _result(totals, sum(found.void for _, _, found in scored), len(problems)),
        "",
        *_missed(scored, problems),
    ]
    row = (
        "[scripted drills of the ledger](#scripted-drills-the-rules-were-tuned-on-them)",
        f"{totals.first:.0%}; found {totals.recall * totals.faults:.0f} of {totals.faults}",
        f"{totals.controls - totals.alarms} of {totals.controls}",
        MEANING,
    )
    return sections.Part("scripted", "\n".join(text), row, by_drill(scored))


def _result(totals: Sums, void: int, not_run: int) -> str:
    upper = 1 - 0.05 ** (1 / totals.controls) if totals.controls else 1.0
    rows = (
        (f"recall over {totals.faults} faults", f"{totals.recall:.2f}", ">= 0.95"),
        ("root cause first", f"{totals.first:.2f}", ">= 0.90"),
        ("median time from effect to finding", f"{totals.seconds or 0:.1f} s", "<= 15 s"),
        ("worst", f"{totals.worst or 0:.1f} s", ""),
        (
            f"controls with a finding, of {totals.controls}",
            str(totals.alarms),
            f"0 (of so many runs, 0 means under {upper:.0%} at 95 % confidence)",
        ),
        ("drills that could not be run to their end", str(not_run), "0"),
        ("drills whose fault took no effect (void)", str(void), "0"),
    )
    return table(("what", "value", "wanted"), rows)


def _missed(scored: Sequence[Scored], problems: Mapping[str, str]) -> Sequence[str]:
    rows = [
        (drill.name, "took no effect" if found.void else "not understood yet")
        for drill, _, found in scored
        if not found.passed
    ]
    rows += [(name, f"could not be run: {problem}") for name, problem in problems.items()]
    return ("Not reached:\n", table(("drill", "reason"), rows), "") if rows else ()


def machine() -> str:
    """The hardware and software of this machine, without its name."""
    memory = psutil.virtual_memory().total / 2**30
    return f"{psutil.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def today() -> str:
    """The date in UTC as YYYY-MM-DD."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table that is also readable as it is."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(head))]
    texts = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    return "\n".join([texts[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *texts[1:]])
