"""The thresholds of the diagnosis: numbers in capitals at the top of a module."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import ledgerops.diagnosis

DIAGNOSIS = Path(ledgerops.diagnosis.__file__).parent


def modules(folder: str) -> list[Path]:
    """The modules of a folder of the diagnosis, "**" for all of them."""
    return sorted(DIAGNOSIS.glob(f"{folder}/*.py"))


def imported(path: Path) -> list[str]:
    """What a module imports: the full names of modules and of what is taken from them."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{each.asname or each.name}" for each in node.names]
    return found


def thresholds(path: Path) -> Mapping[str, float]:
    """The numbers in capitals that a module defines, by name."""
    found = {}
    for name, value in _assigned(ast.parse(path.read_text())):
        try:
            number = eval(compile(ast.Expression(value), str(path), "eval"), {"__builtins__": {}})
        except NameError:
            continue  # made of other names: they are counted where they stand
        if isinstance(number, int | float) and not isinstance(number, bool) and name.isupper():
            found[name] = float(number)
    return found


def _assigned(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """What a module assigns to names at its top, several at once included."""
    for node in module.body:
        if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                named = zip(target.elts, node.value.elts, strict=True)
                yield from ((each.id, value) for each, value in named if isinstance(each, ast.Name))
