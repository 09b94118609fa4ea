"""Every public function and method of the package has a docstring, or a conventional name that needs none."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

import pytest

from tests.paths import ROOT

PACKAGE = ROOT / "ledgerops"
ROOMS = sorted(each.parent.name for each in PACKAGE.glob("*/__init__.py"))


# where -> names (or patterns of names) that need no docstring there; with a dot those of methods
CONVENTIONAL = {
    "cli/": "run add_arguments",  # the docstring of the module is the help of the command; each argument has help
    "common/http.py": ".redirect_request",  # called by urllib
    "common/http_handler.py": ".do_GET .do_HEAD .do_POST",  # called by http.server for a request of this method
    "servers/risk.py": ".do_POST",  # the same; the docstring of the module has the request
    "agent/listener.py": ".onQueryStarted .onQueryProgress .onQueryIdle .onQueryTerminated",  # callbacks of Spark's
    # methods of SparkStatus, which says what they return
    "agent/driver_status.py": ".executions .job .stage .metrics .executors",
    "agent/spark_rest.py": ".tasks .job .stage .metrics .executors",
    # yields the findings of the rule; why the rule is not the cause, or None, as `Rule` says
    "diagnosis/rules/": "check ruled_out",
    "ledger/jobs/": ".init .handleInputRows .handleExpiredTimer",  # methods of Spark's StatefulProcessor
    "ledger/jobs/operation_words.py": ".eval",  # a method of Spark's table functions
    # methods of Spark's Python data sources
    "ledger/sources/": ".name .schema .reader .streamReader .partitions .initialOffset .latestOffset "
    ".getDefaultReadLimit .prepareForTriggerAvailableNow .reportLatestOffset",
    "drills/": ".name .schema .streamReader .partitions .read .initialOffset .latestOffset",
    "drills/scenarios/": "prepare_* start_*",  # a step of the drill that it names, whose entry describes it
    "drills/applications/": "begin",  # starts the query that the docstring of the module describes
}
CONVENTIONS = [(where, name) for where, names in CONVENTIONAL.items() for name in names.split()]


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
    files = {file.relative_to(PACKAGE).as_posix(): file for room in ROOMS for file in (PACKAGE / room).rglob("*.py")}
    trees = {name: ast.parse(files[name].read_text("utf-8")) for name in sorted(files)}
    return [found for name, tree in trees.items() for found in undocumented(tree, name)]


def covers(convention: tuple[str, str], function: Function) -> bool:
    """Whether the function may stay without a docstring by this convention."""
    where, name = convention
    own = f".{function.name}" if function.owner else function.name
    return function.file.startswith(where) and fnmatchcase(own, name)


def test_every_public_function_has_a_docstring() -> None:
    offenders = [str(each) for each in all_undocumented() if not any(covers(one, each) for one in CONVENTIONS)]
    assert not offenders, f"{len(offenders)} without a docstring:\n" + "\n".join(offenders)


def test_every_conventional_name_is_still_needed() -> None:
    found = all_undocumented()
    unused = [" ".join(one) for one in CONVENTIONS if not any(covers(one, each) for each in found)]
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
    assert not any(covers(one, function) for one in CONVENTIONS)
