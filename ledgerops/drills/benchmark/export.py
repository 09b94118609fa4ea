"""Writes drawn drills that were run as a data set on which any tool can be tested; card.md says what is in it."""

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import zstandard

from ledgerops.common.bounded_lines import numbered_lines
from ledgerops.drills.benchmark import score
from ledgerops.drills.benchmark.metrics import VERDICTS, samples, write_parquet
from ledgerops.drills.benchmark.splits import PUBLIC, Splits
from ledgerops.drills.drawn.faults import FAULTS
from ledgerops.drills.drawn.healthy import HEALTHY
from ledgerops.drills.harness.application import OUTSIDE, options
from ledgerops.drills.scoring.drawn import Truth, live, ranked, scored_truth, truth_of
from ledgerops.errors import UserError, os_reason
from ledgerops.metrics.cause_texts import FAMILIES
from ledgerops.version import __version__

FORMAT = 1
CARD = Path(__file__).with_name("card.md")
MANIFEST = "manifest.json"
PLACE = ("query", "component", "name", "detail")
DONE = ("options", "conf", "control", "changes", "actions")  # parts of a case that may hold its fault
OWN_ANSWERS = Path("answers/ledgerops.jsonl")
UNKNOWN = {"meaning": "Something is wrong, and no cause is named.", "family": "None"}
# what the event log says of places, and what stands for each in the data set
PLACES = (
    (r'"spark\.eventLog\.dir":"file:/+(/[^"]*)/eventlog"', "/drill"),
    (r'"spark\.driver\.host":"([^"]+)"', "driver.local"),
    (r'[\s":](/[^\s":]*)/lib/python3\.\d+/site-packages/pyspark', "/venv"),
    (r'[\s":](/[^\s":]*)/ledgerops/drills/applications/', "/app"),
    (r'"user\.home":"(/[^"]+)"', "/home/user"),
)
VERIFIED = {
    "time": "by the times of the batches in the checkpoint",
    "failure": "by the failures that the application logged",
    "given": "by construction: a fixed time after the onset",
}


def export(target: Path, sources: Sequence[Path], parts: Splits = PUBLIC) -> Mapping[str, str]:
    """Writes the data set of all drawn drills below the sources to `target`, in place of an older one, and reports each
    on stderr. Gives why a drill could not be exported, by its folder.

    Drills whose seed is in another part are passed over. Raises UserError when there is nothing to export, or nowhere
    to put it.
    """
    folders, left_out = _folders(sources), dict[str, str]()
    done: dict[str, Truth] = {}
    given: dict[str, str] = {}  # our own answers, by case
    try:
        if target.exists() and any(target.iterdir()) and not (target / MANIFEST).exists():
            raise UserError(f"{target} contains files that do not belong to a data set; choose another folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent, prefix=".export-") as place:
            new = Path(place)
            for part in ("cases", "truth", "answers"):
                (new / part).mkdir()
            for number, folder in enumerate(folders, 1):
                try:
                    truth = truth_of(folder)
                    outcome = "not held back" if parts.reveal else "held back"
                    if parts.takes(truth.case.seed):
                        name = _name(truth, done)
                        given[name] = "".join(_case(new, name, folder, truth, parts.of(truth.case.seed)))
                        done[name], outcome = truth, "exported"
                except UserError as error:
                    left_out[str(folder)] = outcome = str(error)
                print(f"{folder}: {outcome}  ({number} of {len(folders)})", file=sys.stderr, flush=True)
            if not done:
                raise UserError(f"no drill could be exported: {next(iter(left_out.values()), outcome)}")
            (new / OWN_ANSWERS).write_text("".join(given[name] for name in sorted(given)), "utf-8")
            _about(new, done, parts)
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            for path in new.iterdir():
                path.rename(target / path.name)
    except OSError as error:
        raise UserError(f"cannot write {target}: {os_reason(error)}") from None
    return left_out


def _folders(sources: Sequence[Path]) -> list[Path]:
    """The drawn drills below the folders, by their paths. Raises UserError for a folder without one."""
    found: set[Path] = set()
    for source in sources:
        below = [file.parent for file in source.glob("**/case.json")]
        if not below:
            raise UserError(f"no drawn drill in {source}; run ledgerops drill --seed N --out {source}")
        found.update(below)
    return sorted(found)


def _name(truth: Truth, done: Mapping[str, Truth]) -> str:
    """`seed-number`. Raises UserError for a drill without these, and one that was there."""
    seed, number = truth.case.seed, truth.case.name.partition("-")[0]
    if not (seed and number.isdecimal()):
        raise UserError(f"{truth.case.name} was not drawn by a seed")
    if (name := f"{seed}-{number}") in done:
        raise UserError(f"case {name} is there twice")
    return name


def _case(new: Path, name: str, folder: Path, truth: Truth, split: str) -> Iterator[str]:
    """Writes one case and its truth; gives the lines of our own answers."""
    log = {file: _lines(file) for file in sorted(folder.glob("eventlog/eventlog_v2_*/events_*"))}
    clean = _cleaner("".join(log.values()), truth.case.name)
    into = new / "cases" / name
    found = list(samples(folder, clean))
    if not log:
        raise UserError(f"{folder} has no event log; run the drill again")
    recording = "".join(_lines(file) for file in sorted(folder.glob("recording/recording-*.jsonl")))
    answers = [answer for answer in live(folder) if answer.at <= truth.ended]
    into.mkdir()
    write_parquet(found, into / "metrics.parquet")
    _pack(clean(recording), into / "recording" / "recording-000001.jsonl.zst")
    for file, text in log.items():
        packed = into / "eventlog" / file.parent.name / f"{file.name.removesuffix('.zstd')}.zstd"
        _pack(clean(text), packed)
        (packed.parent / f"appstatus_{file.parent.name.removeprefix('eventlog_v2_')}").touch()
    for source, copy in ((f"{truth.case.app}.py", "application.py"), (OUTSIDE.name, OUTSIDE.name)):
        shutil.copyfile(folder / "application" / source, into / copy)
    _write(into / "case.json", _about_case(name, truth))
    case = truth.case
    place = () if case.healthy else (case.blamed or case.query, *case.place)
    _write(
        new / "truth" / f"{name}.json",
        {
            "case": name,
            "seed": case.seed,
            "split": split,
            "void": truth.void,
            "kind": case.kind,
            "what": ({**FAULTS, **HEALTHY}[case.kind].__doc__ or "").strip(),
            "strength": case.strength,
            "source": case.source,
            "trigger_seconds": case.trigger,
            "harm": truth.harm.what if truth.harm else "",
            "verified": VERIFIED[case.harm] if truth.harm else "",
            "place": dict(zip(PLACE, place, strict=False)),
            "true_too": list(case.may),
            "started": truth.began,
            "ended": truth.ended,
            "done": {part: getattr(case, part) for part in DONE},
            **scored_truth(case, truth.harm, truth.onset, answers, truth.others),
        },
    )
    return (json.dumps({"case": name, **answer}) + "\n" for answer in ranked(answers))


def _about_case(name: str, truth: Truth) -> dict[str, Any]:
    """What everybody may know of a case: nothing about its fault."""
    case = truth.case
    return {
        "case": name,
        "application": case.app,
        "options": options(case, "broker:9092" if case.source == "kafka" else ""),
        "source": case.source,
        "trigger_seconds": case.trigger if (case.trigger or 1.0) > 0 else None,
        "once": case.trigger == -1.0,
        "master": case.master,
        "started": truth.began,
        "ended": truth.ended,
    }


def _about(new: Path, done: Mapping[str, Truth], parts: Splits) -> None:
    """Writes what belongs to no case: causes, scorer, card and, last, the manifest of all files."""
    causes = {
        rule: {"meaning": meaning, "family": family}
        for family, rules in FAMILIES.items()
        for rule, meaning in rules.items()
    }
    _write(new / "causes.json", causes | {"unknown": UNKNOWN})
    shutil.copyfile(score.__file__, new / "score.py")
    seeds = [truth.case.seed for truth in done.values()]
    faults = [truth for truth in done.values() if not truth.case.healthy]
    figures = {
        "cases": len(done),
        "faults": len(faults),
        "healthy": len(done) - len(faults),
        "void": sum(bool(truth.void) for truth in done.values()),
        "kinds": len({truth.case.kind for truth in faults}),
        "splits": parts.summary(seeds),
        "verdicts": ", ".join(f"`{name}`" for name in VERDICTS),
        "version": __version__,
    }
    (new / "README.md").write_text(CARD.read_text("utf-8").format(**figures), "utf-8")
    files = sorted(file for file in new.rglob("*") if file.is_file())
    _write(
        new / MANIFEST,
        {
            "format": FORMAT,
            "ledgerops": __version__,
            "seeds": [{"seed": seed, "split": parts.of(seed)} for seed in sorted({*seeds})],
            "held_back": parts.named(),
            "files": {
                str(file.relative_to(new)): {
                    "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
                    "bytes": file.stat().st_size,
                }
                for file in files
            },
        },
    )


def _cleaner(log: str, name: str) -> Callable[[str], str]:
    """What replaces the places that Spark's event log names, and the name of the drill, which would tell the fault."""
    found = {place: shown for pattern, shown in PLACES for place in re.findall(pattern, log)}
    # the longest first: one may lie within another
    known = [*sorted(found.items(), key=lambda pair: (-len(pair[0]), pair)), (name, "drill")]

    def clean(text: str) -> str:
        for place, shown in known:
            text = text.replace(place, shown)
        return text

    return clean


def _lines(file: Path) -> str:
    return b"".join(line for _, line in numbered_lines(file)).decode("utf-8")


def _pack(text: str, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(zstandard.ZstdCompressor(level=19).compress(text.encode()))


def _write(file: Path, document: Any) -> None:
    file.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
