"""The page about the Python interface has each public name with its signature, and examples that fit them."""

import ast
import inspect
import re
from types import FunctionType

import pytest

import ledgerops
from ledgerops.agent.watch import Watch
from tests.paths import ROOT

PAGE = (ROOT / "docs/api.md").read_text("utf-8")
PUBLIC = {
    name: value
    for name, value in vars(ledgerops).items()
    if isinstance(value, FunctionType) and value.__module__ == "ledgerops" and not name.startswith("_")
}
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE)
EXAMPLES = [block for block in BLOCKS if "->" not in block]


def test_every_function_has_its_signature_on_the_page():
    shown = dict(re.findall(r"(?m)^ledgerops\.(\w+)(\(.*)$", PAGE))
    assert shown == {name: str(inspect.signature(function)).replace("'", "") for name, function in PUBLIC.items()}


def test_the_table_has_what_a_watch_has():
    names = {name for name in (*vars(Watch), *vars(Watch())) if not name.startswith("_")}
    assert set(re.findall(r"(?m)^\| `(\w+)(?:\(\))?`", PAGE)) == names


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_calls_functions_as_they_are(example):
    calls = [node for node in ast.walk(ast.parse(example)) if isinstance(node, ast.Call)]
    for call in calls:
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "ledgerops":
            keywords = {each.arg: None for each in call.keywords}
            inspect.signature(PUBLIC[call.func.attr]).bind(*call.args, **keywords)


def test_every_function_has_an_example():
    assert {name for name in PUBLIC if any(f"ledgerops.{name}(" in example for example in EXAMPLES)} == set(PUBLIC)
