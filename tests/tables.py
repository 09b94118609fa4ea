"""A table of cases, a line for each that begins with what it is about."""

from typing import Any

import pytest


def cases(names: str, *told: tuple[Any, ...]) -> pytest.MarkDecorator:
    """A test for each case: what it is about, then the values of these names."""
    return pytest.mark.parametrize(names, [pytest.param(*values, id=words) for words, *values in told])
