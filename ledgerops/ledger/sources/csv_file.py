"""Reading a CSV strictly: good rows go on, bad ones are kept aside with their line and the reason."""

import csv
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from ledgerops.common.files import write_text
from ledgerops.errors import UserError, os_reason
from ledgerops.input_files import open_regular, read_text

DATA = "LEDGEROPS_DATA"  # names the folder of transactions.csv, customers.csv and accounts.csv
REJECTS = "rejects.jsonl"

T = TypeVar("T")


@dataclass(frozen=True)
class Reject:
    """A row that was not taken: its line in the file (the header is line 1), why, and its text."""

    line: int
    reason: str
    text: str


def data_folder(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of the files to replay that the environment names; None if it names none."""
    return Path(environ[DATA]) if environ.get(DATA) else None


def read_rows(
    path: Path, columns: Sequence[str], parse: Callable[[Sequence[str]], T], rejects: list[Reject]
) -> Iterator[T]:
    """Each good row as `parse` makes it from the texts of `columns`; the others are appended to `rejects`.

    `parse` raises ValueError with the reason. Columns are found by name, so their order is free and more are allowed.
    A row is one line: a stray quote then spoils its own row and not all that follow. UserError for a file that cannot
    be read or lacks a column.
    """
    try:
        with open_regular(path) as file:
            header_text = file.readline().decode("utf-8-sig", errors="replace").rstrip("\r\n")
            header = _fields(header_text)
            pick = itemgetter(*_places(path, header, columns))
            for number, raw in enumerate(file, start=2):
                line = raw.rstrip(b"\r\n")
                if not line.strip():
                    continue  # a blank line is not a row
                try:
                    text = line.decode()
                    if text == header_text:
                        raise ValueError("repeated header")
                    fields = _fields(text)
                    if len(fields) != len(header):
                        raise ValueError(f"{len(fields)} columns, expected {len(header)}")
                    row = parse(pick(fields))
                except (ValueError, csv.Error) as problem:
                    reason = "not UTF-8" if isinstance(problem, UnicodeDecodeError) else str(problem)
                    rejects.append(Reject(number, reason, line.decode(errors="backslashreplace")))
                else:
                    yield row
    except csv.Error as problem:
        raise UserError(f"cannot read {path}:1: {problem}; expected {','.join(columns)}") from problem
    except OSError as problem:
        raise UserError(_unreadable(path, problem)) from problem


def _fields(text: str) -> list[str]:
    return next(csv.reader([text], strict=True)) if '"' in text else text.split(",")


def _places(path: Path, header: list[str], columns: Sequence[str]) -> list[int]:
    missing = [column for column in columns if column not in header]
    if missing:
        raise UserError(f"cannot read {path}:1: no column {', '.join(missing)}; expected {','.join(columns)}")
    twice = [column for column in columns if header.count(column) > 1]
    if twice:
        raise UserError(f"cannot read {path}:1: column {', '.join(twice)} occurs more than once")
    return [header.index(column) for column in columns]


def content_hash(path: Path) -> str:
    """Sixteen hexadecimal digits that stand for the bytes of a file; UserError when it cannot be read."""
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as problem:
        raise UserError(_unreadable(path, problem)) from problem


def _unreadable(path: Path, problem: OSError) -> str:
    return f"cannot read {path}: {os_reason(problem)}; {DATA} must name the folder that holds {path.name}"


def keep_rejects(folder: Path, name: str, content: str, rejects: Sequence[Reject]) -> None:
    """Write the rejects of file `name` to `folder`/rejects.jsonl, in place of what an earlier reading of it left.

    `content` is a hash of the file, by which a later run recognises them.
    """
    path = folder / REJECTS
    kept = [entry for entry in rejected(folder) if entry["file"] != name]
    if not kept and not rejects:
        path.unlink(missing_ok=True)
        return
    kept.extend({"file": name, "content": content, **asdict(reject)} for reject in rejects)
    write_text(path, "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in kept))


def rejected(folder: Path) -> list[dict[str, str | int]]:
    """The entries of `folder`/rejects.jsonl: `file`, `content`, `line`, `reason`, `text`; empty when there is none."""
    try:
        text = read_text(folder / REJECTS)
    except FileNotFoundError:
        return []
    try:
        return [json.loads(line) for line in text.split("\n") if line]
    except ValueError as error:
        raise UserError(f"cannot read {folder / REJECTS}: {error}; move it away") from None
