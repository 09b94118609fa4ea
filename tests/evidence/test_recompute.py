"""The numbers of findings are computed twice, by code that has nothing in common, and a wrong one is seen."""

import ast
from pathlib import Path

import pytest

import tests.evidence.recompute as recompute
from tests.evidence.recompute import Compared
from tests.tables import cases

PACKAGE = Path(recompute.__file__).parent
ALLOWED = ("tests.evidence.recompute", "tests.evidence.tape")


@pytest.mark.parametrize("file", [*PACKAGE.glob("*.py"), PACKAGE.parent / "tape.py"], ids=lambda file: file.stem)
def test_it_shares_nothing_with_what_it_checks(file):
    nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
    imported = [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    imported += [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]

    assert [name for name in imported if name.startswith(("ledgerops", "tests")) and not name.startswith(ALLOWED)] == []


@cases(
    "told, given, agrees",
    ("within one percent", 10.0, [10.05], True),
    ("two percent off", 10.0, [10.2], False),
    ("within a millisecond", 0.0, [0.001], True),
    ("more than a millisecond off", 0.002, [0.005], False),
    ("not in the recording", 3.0, [], False),
    ("of another sign", -5.0, [5.0], False),
    ("one of the choices that a rule has", 7.0, [3.0, 7.0], True),
)
def test_within_one_percent_is_the_same(told, given, agrees):
    assert Compared("x", told, given).agrees is agrees
