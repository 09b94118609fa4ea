"""Memoization: a function of a view is evaluated once for each view."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

Value = TypeVar("Value")


class Remembering(Protocol):
    """An object that stores the results of functions of it."""

    answers: dict[object, Any]


Asked = TypeVar("Asked", bound=Remembering)


def once(judge: Callable[[Asked], Value]) -> Callable[[Asked], Value]:
    """Evaluates a function at most once for each view: several rules need the same result."""

    @wraps(judge)
    def ask(view: Asked) -> Value:
        answers = view.answers
        if judge not in answers:
            answers[judge] = judge(view)
        answer: Value = answers[judge]
        return answer

    return ask
