"""Runs every method on the test cases of a data set, scores them, and writes the table into a page.

    python -m ledgerops.drills.benchmark DATA --environment .venv-benchmark --publish docs/benchmark.md

`make benchmark DATA=folder` makes the environment first. The answers of each method go to OUT/METHOD.jsonl, where a
second run finds them: --only runs some anew.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ledgerops.drills.benchmark import page, score
from ledgerops.drills.benchmark.baselines.data import cases
from ledgerops.drills.benchmark.methods import ABLATIONS, METHODS, DataSet, Method
from ledgerops.drills.benchmark.splits import SPLITS, TEST
from ledgerops.drills.scoring.report import machine, today
from ledgerops.drills.scoring.sections import put
from ledgerops.errors import UserError


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 2 when something could not be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="folder of the data set")
    add("--split", default=TEST, choices=SPLITS, help=f"cases that are answered and scored (default {TEST})")
    add("--environment", type=Path, default=Path(".venv-benchmark"), metavar="FOLDER", help="of the packages of others")
    add("--out", type=Path, default=Path("runs") / "benchmark-answers", metavar="FOLDER",
        help="answers and figures go there")  # fmt: skip
    add("--only", nargs="+", metavar="METHOD", help="run these, and take the others from OUT")
    add("--publish", type=Path, metavar="FILE", help="write the results between the marks of a page")
    args = parser.parse_args(arguments)
    try:
        _run(args)
    except (UserError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _run(args: argparse.Namespace) -> None:
    known = [method.slug for method in (*METHODS, *ABLATIONS)]
    if unknown := set(args.only or ()) - set(known):
        raise UserError(f"no method {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    data = DataSet(args.data, cases(args.data, args.split), args.environment)
    args.out.mkdir(parents=True, exist_ok=True)
    found = {}
    for number, method in enumerate((*METHODS, *ABLATIONS), 1):
        print(f"{number} of {len(known)}: {method.slug}", end="", file=sys.stderr, flush=True)
        if args.only is None or method.slug in args.only:
            answer(method, data, args.out)
        found[method.slug] = result(method, data.folder, args.out, args.split)
        every = found[method.slug].figures["all"]
        print(f", AC@1 {every['AC@1']['share']:.2f}" if every["AC@1"] else "", file=sys.stderr)
    truths = data.truths()
    answers = score.read(args.out / "recording.jsonl", truths, data.causes())
    ran = f"on {today()} by `make benchmark`, on {machine()}"
    results, ablations = ([found[method.slug] for method in some] for some in (METHODS, ABLATIONS))
    text = page.section(results, ablations, truths, answers, args.split, ran)
    print(text)
    if args.publish:
        put(args.publish, "benchmark", text)
        print(f"wrote {args.publish}")


def answer(method: Method, data: DataSet, out: Path) -> None:
    """Runs one method, and writes its answers with the CPU seconds that it and its processes took."""
    began = _cpu_seconds()
    with (out / f"{method.slug}.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(each) + "\n" for each in method.answers(data))
    (out / f"{method.slug}.json").write_text(json.dumps({"cpu_seconds": _cpu_seconds() - began}) + "\n", "utf-8")


def result(method: Method, data: Path, out: Path, split: str = TEST) -> page.Result:
    """The score of the answers of one method. Raises OSError when it was not run, and ValueError for a bad answer."""
    took = json.loads((out / f"{method.slug}.json").read_text("utf-8"))["cpu_seconds"]
    return page.Result(method, score.report(data, out / f"{method.slug}.jsonl", split)["figures"], took)


def _cpu_seconds() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


if __name__ == "__main__":
    sys.exit(main())
