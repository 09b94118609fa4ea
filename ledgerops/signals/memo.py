"""Memoization: a function of a view is evaluated once for each view."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

Answer = TypeVar("Answer")


class Remembering(Protocol):
    """An object that stores the results of functions of it."""

    answers: dict[object, Any]


Asked = TypeVar("Asked", bound=Remembering)


def once(judge: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    """Evaluates a function at most once for each view: several rules need the same result."""

    @wraps(judge)
    def ask(view: Asked) -> Answer:
        if judge not in view.answers:
            view.answers[judge] = judge(view)
        answer: Answer = view.answers[judge]
        return answer

    return ask
