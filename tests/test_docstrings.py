"""Every public function and method of the package has a docstring, or a conventional name that needs none."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

import pytest

from tests.paths import ROOT

PACKAGE = ROOT / "ledgerops"
ROOMS = sorted(each.parent.name for each in PACKAGE.glob("*/__init__.py"))


class Conventional(NamedTuple):
    """A name (or a pattern of names) that needs no docstring in the files under `where`, of a class or at the top of
    the module."""

    where: str
    name: str
    in_class: bool
    reason: str


CONVENTIONAL = (
    Conventional("cli/", "run", False, "executes the command; the module's docstring is the help of the command"),
    Conventional("cli/", "add_arguments", False, "each argument has its help"),
    Conventional("common/http.py", "redirect_request", True, "called by urllib; the class says why it follows nothing"),
    *(
        Conventional("common/http.py", name, True, "called by urllib for a request of this scheme")
        for name in ("http_open", "https_open")
    ),
    *(
        Conventional("common/http_handler.py", name, True, "called by http.server for a request of this method")
        for name in ("do_GET", "do_HEAD", "do_POST")
    ),
    Conventional("servers/risk.py", "do_POST", True, "called by http.server; the module's docstring has the request"),
    *(
        Conventional("agent/listener.py", name, True, "a callback of Spark's StreamingQueryListener, named by it")
        for name in ("onQueryStarted", "onQueryProgress", "onQueryIdle", "onQueryTerminated")
    ),
    *(
        Conventional(f"agent/{file}.py", name, True, "a method of SparkStatus, which says what it returns")
        for file, own in (("driver_status", "executions"), ("spark_rest", "tasks"))
        for name in (own, "job", "stage", "metrics", "executors")
    ),
    Conventional("diagnosis/rules/", "check", False, "yields the findings of the rule; the runbook says which"),
    Conventional("diagnosis/rules/", "ruled_out", False, "why the rule is not the cause, or None; as `Rule` says"),
    *(
        Conventional("ledger/jobs/", name, True, "a method of Spark's StatefulProcessor, named by it")
        for name in ("init", "handleInputRows", "handleExpiredTimer")
    ),
    Conventional("ledger/jobs/operation_words.py", "eval", True, "a method of Spark's table functions, named by it"),
    *(
        Conventional(where, name, True, "a method of Spark's Python data sources, named by it")
        for where, names in {
            "ledger/sources/": (
                *("name", "schema", "reader", "streamReader", "partitions", "initialOffset", "latestOffset"),
                *("getDefaultReadLimit", "prepareForTriggerAvailableNow", "reportLatestOffset"),
            ),
            "drills/": ("name", "schema", "streamReader", "partitions", "read", "initialOffset", "latestOffset"),
        }.items()
        for name in names
    ),
    *(
        Conventional("drills/scenarios/", name, False, "a step of the drill that it names, whose entry describes it")
        for name in ("prepare_*", "start_*")
    ),
    Conventional("drills/applications/", "begin", False, "starts the query that the module's docstring describes"),
)


class Function(NamedTuple):
    """A function of a file (relative to the package), with the class that it belongs to, if any."""

    file: str
    line: int
    owner: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {f'{self.owner}.' if self.owner else ''}{self.name}"


def undocumented(tree: ast.AST, file: str, owner: str | None = None) -> Iterator[Function]:
    """Public functions without a docstring, also under `if` and `try`; none within functions and private classes."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_") and not (ast.get_docstring(node) or "").strip():
                yield Function(file, node.lineno, owner, node.name)
        elif isinstance(node, ast.ClassDef):
            if not node.name.startswith("_"):
                yield from undocumented(node, file, f"{owner}.{node.name}" if owner else node.name)
        else:
            yield from undocumented(node, file, owner)


def all_undocumented() -> list[Function]:
    """Those of all rooms, in the order of their files."""
    files = [file for room in ROOMS for file in sorted((PACKAGE / room).rglob("*.py"))]
    return [
        found
        for file in files
        for found in undocumented(ast.parse(file.read_text("utf-8")), file.relative_to(PACKAGE).as_posix())
    ]


def covers(convention: Conventional, function: Function) -> bool:
    """Whether the function may stay without a docstring by this convention."""
    return (
        function.file.startswith(convention.where)
        and fnmatchcase(function.name, convention.name)
        and (function.owner is not None) == convention.in_class
    )


def test_every_public_function_has_a_docstring() -> None:
    offenders = [str(each) for each in all_undocumented() if not any(covers(one, each) for one in CONVENTIONAL)]
    assert not offenders, f"{len(offenders)} without a docstring:\n" + "\n".join(offenders)


def test_every_conventional_name_is_still_needed() -> None:
    found = all_undocumented()
    unused = [f"{one.where} {one.name}" for one in CONVENTIONAL if not any(covers(one, each) for each in found)]
    assert not unused, f"no function is without a docstring by these: {unused}"


def test_every_room_has_modules() -> None:
    empty = [room for room in ROOMS if not any((PACKAGE / room).rglob("*.py"))]
    assert not empty, f"no modules in {empty}"


@pytest.mark.parametrize(
    "source",
    [
        "def shown(): pass",
        "async def shown(): pass",
        'def shown():\n    """ """',
        "class Seen:\n    def shown(self): pass",
        "class Seen:\n    @property\n    def shown(self): return 1",
        "class Seen:\n    class Inner:\n        def shown(self): pass",
        "if True:\n    def shown(): pass",
        "try:\n    pass\nexcept ImportError:\n    def shown(): pass",
    ],
)
def test_a_public_function_without_a_docstring_is_found(source: str) -> None:
    assert [each.name for each in undocumented(ast.parse(source), "room/module.py")] == ["shown"]


@pytest.mark.parametrize(
    "source",
    [
        'def shown():\n    """What it returns."""',
        "def _hidden(): pass",
        "class _Hidden:\n    def method(self): pass",
        "class Seen:\n    def __len__(self): return 0",
        'def shown():\n    """What it returns."""\n    def inner(): pass',
        "shown = lambda: None",
    ],
)
def test_documented_private_and_inner_functions_are_silent(source: str) -> None:
    assert not list(undocumented(ast.parse(source), "room/module.py"))


@pytest.mark.parametrize(
    "function",
    [
        Function("model/recording.py", 1, None, "run"),
        Function("cli/drill.py", 1, "Drill", "run"),
        Function("notify/service.py", 1, "Handler", "do_GET"),
    ],
    ids=str,
)
def test_a_conventional_name_covers_no_other_place(function: Function) -> None:
    assert not any(covers(one, function) for one in CONVENTIONAL)
