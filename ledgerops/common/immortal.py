"""Objects that the interpreter frees at no time, not even when it ends."""

from typing import Any


def never_free(objects: list[Any]) -> None:
    """Keeps a list and what is in it."""
    try:
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(objects))
    except ImportError:
        pass
