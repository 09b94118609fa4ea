"""Fuzzes the readers of files: mutated recordings, event logs and zstd files, and bombs, under a limit of memory.

    python -m tests.fuzzing.files --lines 1000000 --seconds 3600

`ledgerops diagnose` reads each file in this process, whose address space is limited. It must end with an exit code of
its own, say at most one line on an error, and never raise. Exit code: 0 when all that held, 1 otherwise.
"""

import contextlib
import io
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from ledgerops.model.recording import load_json
from tests.fuzzing import options
from tests.fuzzing.mutated import with_broken_bytes, with_changes
from tests.paths import ROOT

MEMORY_BYTES = 300 * 1024 * 1024  # of address space
SAMPLES = (
    ROOT / "tests" / "recorded" / "spark-4.2.0.jsonl",
    ROOT / "tests" / "recorded" / "key-skew.jsonl",
    ROOT / "tests" / "recorded" / "eventlog" / "local-2",
)
LINES = 150  # of a file
ODD = (
    b"null", b"[]", b"{}", b"1e308", b"-1", b"9" * 400, b'"\\ud800"', b'""', b"true", b'"' + b"x" * 9000 + b'"',
    b'"9999-12-31T23:59:59Z"', b'"0001-01-01T00:00:00.000Z"', b"0.0", b"18446744073709551616", b'{"a":[{"b":null}]}',
)  # fmt: skip
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
    made = line
    for _ in range(draw.choice([1, 1, 3])):
        colon = made.find(b":", draw.randrange(len(made) + 1))
        ends = [at for at in (made.find(b",", colon), made.find(b"}", colon)) if at > 0]
        if colon > 0 and ends and made[colon + 1 : colon + 2] not in (b"{", b"["):
            made = made[: colon + 1] + draw.choice(ODD) + made[min(ends) :]
    try:
        load_json(made)
    except ValueError:
        return with_changes(draw, [line], 1.0)[0]
    return made


def fuzz(lines: int, seconds: float, seed: int) -> tuple[int, Counter[int], list[str]]:
    """Lines that were read, exit codes, and what went wrong."""
    from ledgerops.cli import main as command

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
