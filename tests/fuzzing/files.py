"""Fuzzes the readers of files: mutated recordings, event logs and zstd files, and bombs, under a limit of memory.

    python -m tests.fuzzing.files --lines 1000000 --seconds 3600

`ledgerops diagnose` reads each file in this process, whose address space is limited. It must end with an exit code of
its own, say at most one line on an error, and never raise. Exit code: 0 when all that held, 1 otherwise.
"""

import contextlib
import io
import json
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.fuzzing import options
from tests.fuzzing.mutated import STRANGE, change, with_broken_bytes
from tests.paths import ROOT

MEMORY_BYTES = 300 * 1024 * 1024  # of address space
SAMPLES = (
    ROOT / "tests" / "recorded" / "spark-4.2.0.jsonl",
    ROOT / "tests" / "recorded" / "key-skew.jsonl",
    ROOT / "tests" / "recorded" / "eventlog" / "local-2",
)
LINES = 150  # of a file
BOMBS = (b"\n" * 1024 * 1024, b" " * 1024 * 1024, b"x" * 1024 * 1024, b"[" * 1024 * 1024, b'{"a":' * 100_000)


def samples() -> list[list[bytes]]:
    """Lines of true files."""
    return [path.read_bytes().splitlines(keepends=True) for path in SAMPLES if path.is_file()]


def made(draw: random.Random, true: list[list[bytes]], folder: Path) -> tuple[Path, int]:
    """A file of mutated lines, plain or zstd, and how many lines it has."""
    import zstandard

    source = draw.choice(true)
    first = 0 if draw.random() < 0.7 else draw.randrange(len(source))
    change = odd if draw.random() < 0.7 else with_broken_bytes  # one line that is none ends the reading
    lines = [change(draw, line) if draw.random() < 0.1 else line for line in source[first : first + LINES]]
    content = b"".join(lines)
    if draw.random() < 0.02:
        content = content[: draw.randrange(len(content) + 1)] + draw.choice(BOMBS) * draw.choice([1, 20])
    path = folder / draw.choice(["file.jsonl", "recording-000001.jsonl", "local-1", "app-1.zstd", "file.jsonl.zst"])
    if path.suffix in (".zst", ".zstd") or draw.random() < 0.1:
        content = zstandard.ZstdCompressor(level=1).compress(content)
        if draw.random() < 0.2:
            content = with_broken_bytes(draw, content)
        if draw.random() < 0.01:
            content += zstandard.ZstdCompressor(level=1).compress(draw.choice(BOMBS) * 100)
    path.write_bytes(content)
    return path, len(lines)


def odd(draw: random.Random, line: bytes) -> bytes:
    """A line of which a few values are odd; it is JSON still, or the reading would end with it."""
    value = json.loads(line)
    for _ in range(draw.choice([1, 1, 3])):
        change(draw, value, STRANGE)
    return json.dumps(value).encode() + b"\n"


def fuzz(lines: int, seconds: float, seed: int) -> tuple[int, Counter[int], list[str]]:
    """Lines that were read, exit codes, and what went wrong."""
    from ledgerops.cli import _run as command  # which lets a defect through

    draw, true, codes, wrong, read = random.Random(seed), samples(), Counter[int](), list[str](), 0
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while read < lines and time.monotonic() < end and len(wrong) < 10:
            state = draw.getstate()
            path, count = made(draw, true, Path(folder))
            read += count
            errors = io.StringIO()
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
                    codes[code := command(["diagnose", "--from", str(path), "--json"])] += 1
            except BaseException:
                wrong.append(f"{path.name} {hash(state)}:\n{traceback.format_exc()[-1500:]}")
                path.rename(Path(tempfile.gettempdir()) / f"fuzzed-{seed}-{len(wrong)}-{path.name}")
                continue
            if code == 2 and len(errors.getvalue().splitlines()) > 3:
                wrong.append(f"{path.name}: {errors.getvalue()[:600]}")
            path.unlink()
    return read, codes, wrong


def main() -> int:
    args = options(__doc__, lines=1_000_000, seconds=3600.0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    began = time.monotonic()
    read, codes, wrong = fuzz(args.lines, args.seconds, args.seed)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{read:,} lines in {time.monotonic() - began:.0f} s; files by exit code {dict(codes)}; peak {peak:.0f} MB")
    for each in wrong:
        print(each, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
