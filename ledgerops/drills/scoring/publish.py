"""Publishes how often the diagnosis is right, and saves the recordings as regression tests."""

import json
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import zstandard

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.scoring import report, sections
from ledgerops.drills.scoring.score import Scored

MEANING = "that these faults are told apart on this machine; not what to expect of other workloads"


def part(scored: Sequence[Scored], problems: Mapping[str, str], seed: int, note: str) -> sections.Part:
    """The scripted drills: sums, a row of the summary, and the rows drill by drill. `problems`: why a drill could not
    be run, by name."""
    totals = report.sums(scored)
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
    return sections.Part("scripted", "\n".join(text), row, report.by_drill(scored))


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


def _missed(scored: Sequence[Scored], problems: Mapping[str, str]) -> Sequence[str]:
    reasons = {True: "took no effect", False: "not understood yet"}
    rows = [(drill.name, reasons[found.void]) for drill, _, found in scored if not found.passed]
    rows += [(name, f"could not be run: {problem}") for name, problem in problems.items()]
    return ("Not reached:\n", report.table(("drill", "reason"), rows), "") if rows else ()


def machine() -> str:
    """The hardware and software of this machine, without its name."""
    memory = psutil.virtual_memory().total / 2**30
    return f"{psutil.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def today() -> str:
    """The date in UTC as YYYY-MM-DD."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def save(bundle: Bundle, folder: Path) -> None:
    """Saves what a replay needs, compressed, without paths of this machine."""
    target = folder / str(bundle.stored["drill"])
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
    (target / "drill.json").write_text(json.dumps(bundle.stored) + "\n", "utf-8")
    (target / "times.json").write_text(json.dumps(bundle.times) + "\n", "utf-8")
