"""Breaks real queries on purpose and scores the diagnosis.

Each drill starts a Spark driver with queries of the ledger under random names, lets them run undisturbed, breaks one
thing, repairs it, and compares the diagnosis of the recording with the truth. Healthy controls must have no finding at
warning or above. With --seed and no names, drills are drawn at random: plain PySpark applications with a fault, or
with something unusual that does no harm. The same seed draws the same ones. Each is scored live, from its recording
and from its event log. With --remedies the steps that the verdicts advise are taken, with the numbers that they say,
and the harm is measured before and after; names are then kinds of faults. With --export the drawn drills that were run
become a data set on which any tool can be tested; with --held-back some seeds are left out until a result is in.
Drills are part of a checkout, not of an installed package.

Exit code: 0 every drill passed, 1 at least one failed, 2 at least one could not be run, or exported.

Examples:
    ledgerops drill --list
    ledgerops drill slow-sink
    ledgerops drill --score runs/drills
    ledgerops drill --seed 1 --out runs --publish docs/diagnosis.md
    ledgerops drill --seed 31 --remedies overload binding-cap --lanes 2
    ledgerops drill --export runs/benchmark --score runs/seed-18 runs/seed-19
"""

import argparse
from collections.abc import Collection, Sequence
from pathlib import Path
from tempfile import TemporaryFile

from ledgerops.cli.arg_types import whole
from ledgerops.common.shutdown import ended_in_order
from ledgerops.errors import UserError, did_you_mean, writing_to

OUT = Path("runs/drills")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="drills to run (default: all)")
    add("--list", action="store_true", help="list the drills and exit")
    add("--out", type=Path, default=OUT, metavar="FOLDER", help=f"folder of the results (default {OUT})")
    add("--seed", type=int, metavar="N",
        help="seed for drawing drills; with NAME, for their random names (default 1)")  # fmt: skip
    add("--count", type=whole, default=20, metavar="M", help="how many drills to draw (default 20)")
    add("--remedies", action="store_true",
        help="with --seed: take the steps that verdicts advise, and measure again")  # fmt: skip
    add("--lanes", type=whole, default=1, metavar="N", help="number of light drills to run in parallel (default 1)")
    add("--score", type=Path, nargs="+", metavar="FOLDER", help="run no drill: score folders of results again")
    add("--export", type=Path, metavar="FOLDER", help="write the drawn drills in the folders of --score as a data set")
    add("--held-back", type=Path, metavar="FILE",
        help="with --export: lines of a seed and a salt, to be named by their SHA-256 only")  # fmt: skip
    add("--reveal", action="store_true",
        help="with --held-back: write these seeds and no others, and name them with their salts")  # fmt: skip
    add("--publish", type=Path, metavar="FILE", help="write the score tables to a Markdown file")
    add("--note", default="", metavar="TEXT", help="a note on this run for readers of the page")
    add("--save", type=Path, metavar="FOLDER", help="save the recordings there, compressed, as test cases")


def run(args: argparse.Namespace) -> int:
    from ledgerops.drills.catalogue import BY_NAME, DRILLS
    from ledgerops.drills.scoring import results

    if args.export:
        return _export(args)
    if args.held_back or args.reveal:
        raise UserError("--held-back and --reveal need --export")
    if args.list:
        print(results.listed(DRILLS))
        return 0
    if args.save and (args.remedies or (args.seed is not None and not args.names)):
        raise UserError("--save is for the fixed drills, by name or all: without --seed and --remedies")
    if args.remedies:
        return _remedies(args)
    _must_be_known(args.names, BY_NAME, "ledgerops drill --list names them")
    for place in (args.publish and args.publish.parent, args.save, args.score is None and args.out):
        if place:
            _must_take_files(place)
    if (args.seed is not None and not args.names) or any(
        any(folder.glob("**/case.json")) for folder in args.score or ()
    ):
        return _drawn(args)
    chosen = [BY_NAME[name] for name in args.names] or list(DRILLS)
    if args.score is not None:
        found, problems = results.score_again(_one(args.score), chosen)
    else:
        with ended_in_order() as stop:
            found, problems = results.perform_scripted(chosen, args.out, args.seed or 1, args.lanes, stop)
    return results.finish(found, problems, args.publish, args.save, args.note)


def _drawn(args: argparse.Namespace) -> int:
    """Runs the cases of a seed below `--out`, or scores those in a folder."""
    from ledgerops.drills.drawn.draw import cases
    from ledgerops.drills.harness.suite import perform
    from ledgerops.drills.scoring import drawn_page

    problems: dict[str, str] = {}
    folders: list[Path] | None = args.score
    if folders is None:
        [folder] = folders = [args.out / f"seed-{args.seed}"]
        with ended_in_order() as stop:
            chosen = cases(args.seed, args.count)
            problems = perform(chosen, folder, args.lanes, stop, lambda _, bundle: drawn_page.one_line(bundle.folder))
    return drawn_page.finish(folders, problems, args.publish, args.note)


def _export(args: argparse.Namespace) -> int:
    """Writes the drawn drills in the folders of --score as a data set."""
    from ledgerops.drills.benchmark.export import export
    from ledgerops.drills.benchmark.splits import splits

    if not args.score:
        raise UserError("--export needs --score with the folders of drills that were run")
    problems = export(args.export, args.score, splits(args.held_back, args.reveal))
    print(f"wrote {args.export}")
    for folder, problem in problems.items():
        print(f"{folder} was left out: {problem}")
    return 2 if problems else 0


def _remedies(args: argparse.Namespace) -> int:
    """Takes the advised steps on the cases of a seed, or scores those in a folder, and prints or publishes them."""
    from ledgerops.drills.remedies import page
    from ledgerops.drills.remedies.step import KINDS, remedy_cases
    from ledgerops.drills.remedies.suite import perform_remedies
    from ledgerops.drills.scoring import sections

    _must_be_known(args.names, KINDS, f"there are {', '.join(KINDS)}")
    if args.publish:
        _must_take_files(args.publish.parent)
    problems: dict[str, str] = {}
    folder = _one(args.score) if args.score else None
    if folder is None:
        folder = args.out / f"remedies-{args.seed or 1}"
        _must_take_files(folder)
        with ended_in_order() as stop:
            chosen = remedy_cases(args.seed or 1, kinds=args.names or KINDS)
            problems = perform_remedies(chosen, folder, args.lanes, stop)
    found = page.all_taken(folder)
    part = page.part(found, args.note)
    print(part.text, part.drills, sep="\n\n")
    sections.conclude(part, args.publish, problems)
    return 2 if problems else int(any(each.kind == "did not help" for each in found if not each.control))


def _must_be_known(names: Sequence[str], known: Collection[str], hint: str) -> None:
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"no drill {unknown[0]!r}; {did_you_mean(unknown[0], known, hint)}")


def _one(folders: Sequence[Path]) -> Path:
    """The folder of --score. Raises UserError for several, which only drawn drills may have."""
    if len(folders) > 1:
        raise UserError("--score cannot be several folders, except of drawn drills")
    return folders[0]


def _must_take_files(folder: Path) -> None:
    """Raises UserError before the run, not after it, when the folder cannot be written."""
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
