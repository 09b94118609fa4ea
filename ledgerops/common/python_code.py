"""Which Python code is an application's own."""

import re

LIBRARY = re.compile(r"^<|/(?:site|dist)-packages/|/lib/python[\d.]+/|\bpyspark(?:\.zip)?/|\bpy4j\b")


def is_library(file: str) -> bool:
    """Whether a file of Python code belongs to Python, to Spark or to an installed package."""
    return LIBRARY.search(file) is not None
