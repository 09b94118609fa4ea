"""Every error message of the program, read from its source: with `…` where a value stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
RAISED = ("UserError", "ArgumentTypeError")
LOGGED = ("warning", "error")
LOGGERS = ("log", "logger")


class Message(NamedTuple):
    """A text, where it comes from, and whether it ends a command or is logged."""

    text: str
    module: str
    kind: str


def messages(package: Path = ROOT / "ledgerops") -> list[Message]:
    """All texts of errors that end a command, and of warnings that are logged; texts without any word are left out."""
    found = []
    for file in sorted(package.rglob("*.py")):
        module = file.relative_to(package.parent).as_posix()
        if module.startswith("ledgerops/drills/"):
            continue
        found += [Message(text, module, kind) for text, kind in _texts(ast.parse(file.read_text("utf-8")))]
    return found


def _texts(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and node.args):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        logs = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") in LOGGERS
        kind = "error" if name in RAISED else "log" if logs and name in LOGGED else ""
        text = _text(node.args[0]) if kind else ""
        if any(part.strip(" :;,.()") for part in text.split("…")):
            yield text, kind


def _text(node: ast.expr) -> str:
    """The literal text of an expression, `…` for each value in it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _filled(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = (value.value if isinstance(value, ast.Constant) else "…" for value in node.values)
        return "".join(str(part) for part in parts)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.IfExp):
        return "…"
    return "…"


def _filled(text: str) -> str:
    """A text for `%`: `port %d is taken` -> `port … is taken`."""
    out, rest = "", text
    while "%" in rest:
        before, _, rest = rest.partition("%")
        out += before + "…"
        rest = rest.lstrip("0123456789.").removeprefix(rest.lstrip("0123456789.")[:1])
    return out + rest


def page() -> str:
    """The page of all messages, by room."""
    rooms: dict[str, list[Message]] = {}
    for each in messages():
        rooms.setdefault(each.module.split("/")[1].removesuffix(".py"), []).append(each)
    parts = [
        "# All error messages\n\nEvery message that ends a command or is logged, by the part that it comes "
        "from. `…` stands for a value. [Error messages](error-messages.md) says what to do about each kind.\n"
    ]
    for room, found in sorted(rooms.items()):
        rows = "".join(f"- {'(log) ' if each.kind == 'log' else ''}`{each.text}`\n" for each in sorted(set(found)))
        parts.append(f"\n## {room}\n\n{rows}")
    return "".join(parts)
