"""Fuzzes the core with a million lines: stretches of real recordings and event logs, joined at random and mutated.

    python -m tests.fuzzing --lines 1000000 --processes 2
    python -m tests.fuzzing --case 1234        # one case again, with its traceback

Nothing but the core's own errors may leave it, no rule may raise, and every finding has finite evidence. Exit code: 0
when all that held, 1 otherwise. The same seed gives the same cases.
"""

import argparse
import multiprocessing
import sys
import time
from collections import Counter

from ledgerops.diagnosis.rules import RULES
from tests.fuzzing import options
from tests.fuzzing.cases import CHUNK, chunk, run

FAILURES = 12  # told in full
NO_CASE = -1


def main() -> int:
    args = options(__doc__, lines=1_000_000, processes=2, case=NO_CASE)
    if args.case != NO_CASE:
        seen: Counter[str] = Counter()
        run(args.seed, args.case, seen)
        print(dict(seen))
        return 0
    seen, failed = Counter(), list[tuple[int, str]]()
    began = shown = time.monotonic()
    jobs = ((args.seed, first) for first in range(0, sys.maxsize, CHUNK))
    with multiprocessing.get_context("spawn").Pool(args.processes) as pool:
        pending = [pool.apply_async(chunk, (next(jobs),)) for _ in range(2 * args.processes)]
        while pending:
            more, wrong = pending.pop(0).get()
            seen.update(more)
            failed += wrong
            for number, trace in wrong:
                print(f"case {number}: {trace.strip().splitlines()[-1][:200]}", file=sys.stderr, flush=True)
            if seen["lines"] < args.lines:
                pending.append(pool.apply_async(chunk, (next(jobs),)))
            if time.monotonic() - shown > 5:
                shown = time.monotonic()
                share = f"{seen['lines']:,} of {args.lines:,} lines"
                print(f"{share}, {seen['verdicts']:,} verdicts, {len(failed)} failures", file=sys.stderr, flush=True)
    tell(seen, failed, time.monotonic() - began, args)
    return int(bool(failed))


def tell(seen: Counter[str], failed: list[tuple[int, str]], seconds: float, args: argparse.Namespace) -> None:
    print(f"seed {args.seed}, {args.processes} processes, {seconds:.0f} s")
    for name, count in sorted(seen.items()):
        if not name.startswith("rule "):
            print(f"{name:<24} {count:>10,}")
    spoke = {name.removeprefix("rule ") for name in seen if name.startswith("rule ")}
    silent = [rule.slug for rule in RULES if rule.slug not in spoke]
    print(f"rules that spoke: {len(spoke)} of {len(RULES)}" + (f"; silent: {', '.join(silent)}" if silent else ""))
    print(f"failures: {len(failed)}")
    kinds: dict[str, list[tuple[int, str]]] = {}
    for number, trace in failed:
        lines = trace.strip().splitlines()
        kinds.setdefault("".join(lines[-3:-2]) + lines[-1][:60], []).append((number, trace))
    for same in list(kinds.values())[:FAILURES]:
        print(f"\n{len(same)} times, such as case {same[0][0]}:\n{same[0][1]}")


if __name__ == "__main__":
    sys.exit(main())
