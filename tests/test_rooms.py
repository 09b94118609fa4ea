"""The rooms of the package: imports go down the list, never up, and no two modules import each other."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from xml.etree import ElementTree

from tests.paths import ROOT

PACKAGE = ROOT / "ledgerops"
# Each room may import those before it. The public API ("") stands where the workload begins, which uses that alone.
ROOMS = (
    *("errors", "version", "input_files", "config", "common", "servers", "model", "signals", "metrics", "diagnosis"),
    *("runtime", "checkpoint", "agent", "analysis", "mixin", "notify", "", "ledger", "load", "drills", "cli"),
    "__main__",
)
WORKLOAD = ("ledger", "load", "drills")
OPEN_TO_WORKLOAD = ("errors", "version", "input_files", "common", "servers", "checkpoint", "")
# they judge recordings, as any reader of one may
JUDGES = ("ledgerops.load.test", "ledgerops.drills.scoring", "ledgerops.drills.remedies", "ledgerops.drills.benchmark")


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package, parsed, by its dotted name."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        parts = ("ledgerops", *file.relative_to(PACKAGE).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(file.read_text("utf-8"))
    return found


def imports(tree: ast.Module, known: dict[str, ast.Module]) -> Iterator[str]:
    """Modules of the package that a module imports, at its top or within a function; also those for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ledgerops":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "ledgerops")


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def allowed(importer: str, imported: str) -> bool:
    here, there = room(importer), room(imported)
    if here == there or here in ("cli", "", "__main__"):
        return True
    if here in WORKLOAD and not importer.startswith(JUDGES) and there not in (*OPEN_TO_WORKLOAD, *WORKLOAD):
        return False
    return ROOMS.index(there) < ROOMS.index(here)


def test_every_module_stands_in_a_known_room():
    assert {room(module) for module in modules()} == set(ROOMS)


def test_the_picture_shows_rooms_that_there_are_and_an_arrow_only_where_one_imports_the_other():
    known, picture = modules(), ElementTree.parse(ROOT / "docs" / "architecture.svg")
    shown = [box.attrib["data-room"].replace("/", ".") for box in picture.iter() if "data-room" in box.attrib]
    arrows = [
        {arrow.attrib["data-from"].replace("/", "."), arrow.attrib["data-to"].replace("/", ".")}
        for arrow in picture.iter()
        if "data-from" in arrow.attrib
    ]
    linked = [
        {importer, imported}
        for module, tree in known.items()
        for importer in within(module, shown)
        for target in imports(tree, known)
        for imported in within(target, shown)
    ]

    assert [name for name in shown if f"ledgerops.{name}" not in known] == []
    assert [arrow for arrow in arrows if arrow not in linked] == []


def within(module: str, parts: list[str]) -> list[str]:
    return [part for part in parts if f"{module}.".startswith(f"ledgerops.{part}.")]


def test_no_import_goes_up():
    known = modules()
    pairs = [(module, target) for module, tree in known.items() for target in imports(tree, known)]
    assert {f"{module} imports {target}" for module, target in pairs if not allowed(module, target)} == set()


def test_no_two_modules_import_each_other():
    known = modules()
    graph = {module: set(imports(tree, known)) - {module} for module, tree in known.items() if module != "ledgerops"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None
