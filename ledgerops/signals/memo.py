"""Memoization: a function of a view, and a property of a signal, is evaluated once for each view."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, Protocol, TypeVar

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


class kept(Generic[Value]):  # noqa: N801 - a decorator
    """A property that is computed when it is first read, like functools.cached_property, which takes a lock each time:
    a view has one reader."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, signal: object, owner: type) -> Value:
        value = signal.__dict__[self.name] = self.compute(signal)
        return value
