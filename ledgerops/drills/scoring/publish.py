"""Publishes how often the diagnosis is right, and saves the recordings as regression tests."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import zstandard

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import Case
from ledgerops.drills.scoring import baselines, report
from ledgerops.drills.scoring.score import Score, score
from ledgerops.model.records import ObservationKind

Done = Sequence[tuple[Case, Bundle, Score]]
SIGNALS: tuple[tuple[str, tuple[ObservationKind, ...]], ...] = (
    ("task summaries (REST)", ("tasks",)),
    ("the watchdog on running batches", ("batch_running",)),
    ("machine, processes and executors", ("host",)),
    ("the query's plan", ("plan",)),
    ("the broker's offsets", ("offsets",)),
)
HEAD = """# How often the diagnosis is right

Real queries are broken on purpose, and what `ledgerops diagnose` reports is compared with what was done. Drills drawn
by seed are plain applications; seeds that the rules have never seen say what to expect of applications like these.
Scripted drills are of the ledger, and the rules were tuned on them: they say that these faults are distinguished on
this machine, and do not predict other workloads.
"""
METHOD = """\
`make drills` runs the scripted drills. Each is a Spark driver of its own that runs queries of the ledger under random
names: warm-up and baseline of 45 s, then the fault, then the repair. A fault counts from its effect, which is judged
from the files of the checkpoint or from the workload, never from what the diagnosis reads. The diagnosis sees the
recording only. Controls are healthy: they must have no finding at warning or above at any time. Only findings at
warning or above count.

A drill passes when every fault is found within its deadline (30 s unless the drill says otherwise), in the right place,
as the first root cause in most verdicts from then to the repair, and without any finding that is not true.

Points, of 100: detection 35 (less when later), precision 20 (less 5 for each finding that is not true), place 20,
cause 20, remedy and reset 5; 0 when nothing is found, or something before the fault. Reset: from the repair until there
are no findings.

Light drills run three at a time. If the diagnosis of a fault then also says that other processes use the cores, that is
true and not counted against it; in controls it is. The recordings are kept in `tests/recorded/drills`. The tests replay
them, and recompute every number of every finding from them with separate code (`tests/evidence`)."""


def page(done: Done, problems: Mapping[str, str], date: str, machine: str, seed: int, note: str = "") -> str:
    """The whole page in Markdown. `problems`: why a drill could not be run, by name."""
    scored = [(drill, found) for drill, _, found in done]
    answers = [baselines.thresholds(drill, bundle) for drill, bundle, _ in done]
    parts = [
        HEAD,
        "## Scripted drills: the rules were tuned on them\n",
        f"Run of {date} on {machine}, seed {seed}: {len(done)} drills.{f' {note}' if note else ''}\n",
        _result(report.sums(scored), sum(found.void for _, found in scored), len(problems)),
        "",
        report.folded("How a scripted drill is judged", METHOD),
        report.folded("The scripted drills one by one", report.by_drill(scored)),
        "## What is not reached, and why\n",
        _missed(done, problems),
        "",
        "## Rules\n",
        "Recall: found in the drills whose fault it must name. Precision: drills in which it was found and true."
        " The times are from effect to finding, and from repair until nothing is found.\n",
        report.folded("The rules one by one", report.by_rule(scored)),
        "",
        "## Other diagnosers\n",
        report.compare_baselines(scored, answers),
        "",
        "## What each signal is worth\n",
        "The same recordings without one kind of record: which drills no longer pass.\n",
        ablation(done),
    ]
    return "\n".join(parts) + "\n"


def _result(totals: report.Sums, void: int, not_run: int) -> str:
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
    return report.table(("what", "value", "wanted"), rows)


def ablation(done: Done) -> str:
    """Which drills no longer pass without one of the signals."""
    rows = []
    for what, kinds in SIGNALS:
        lost = [
            drill.name
            for drill, bundle, found in done
            if found.passed and not score(drill, bundle, without=kinds).passed
        ]
        rows.append((what, str(len(lost)), ", ".join(lost)))
    return report.table(("without", "lost", "drills"), rows)


def _missed(done: Done, problems: Mapping[str, str]) -> str:
    rows = [
        (drill.name, "took no effect" if found.void else drill.limit or "not understood yet")
        for drill, _, found in done
        if not found.passed
    ]
    rows += [(name, f"could not be run: {problem}") for name, problem in problems.items()]
    return report.table(("drill", "reason"), rows) if rows else "Every drill passes."


def machine() -> str:
    """The hardware and software of this machine, without its name."""
    memory = psutil.virtual_memory().total / 2**30
    return f"{psutil.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def today() -> str:
    """The date in UTC as YYYY-MM-DD."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def save(bundle: Bundle, folder: Path) -> None:
    """Saves what a replay needs, compressed, without paths of this machine."""
    target = folder / bundle.drill
    if target.resolve() == bundle.folder.resolve():
        return  # already saved
    (target / "recording").mkdir(parents=True, exist_ok=True)
    for old in (target / "recording").glob("*"):
        old.unlink()
    own = str(bundle.folder.resolve())
    replaced = [(own, "/drill"), (sys.prefix, "/venv"), (str(Path.cwd()), "/app"), (str(Path.home()), "/home/user")]
    lines = b"".join(file.read_bytes() for file in sorted(bundle.recording.glob("recording-*.jsonl")))
    for path, name in replaced:
        lines = lines.replace(path.encode(), name.encode())
    packed = zstandard.ZstdCompressor(level=19).compress(lines)
    (target / "recording" / "recording-000001.jsonl.zst").write_bytes(packed)
    stored = {"drill": bundle.drill, "seed": bundle.seed, "names": bundle.names, "lanes": bundle.lanes}
    (target / "drill.json").write_text(json.dumps(stored) + "\n", "utf-8")
    (target / "times.json").write_text(json.dumps(bundle.times) + "\n", "utf-8")
