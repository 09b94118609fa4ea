"""Memoization: a function of a view is evaluated once for each view."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

Value = TypeVar("Value")
MISSING = object()


class Remembering(Protocol):
    """An object that stores the results of functions of it."""

    answers: dict[object, Any]


Asked = TypeVar("Asked", bound=Remembering)


def once(judge: Callable[[Asked], Value]) -> Callable[[Asked], Value]:
    """Evaluates a function at most once for each view: several rules need the same result."""

    @wraps(judge)
    def ask(view: Asked) -> Value:
        answer: Any = view.answers.get(judge, MISSING)
        if answer is MISSING:
            answer = view.answers[judge] = judge(view)
        found: Value = answer
        return found

    return ask
