"""Which Python code is an application's own."""

import re

LIBRARY = re.compile(r"^<|/(?:site|dist)-packages/|/lib/python[\d.]+/|\bpyspark(?:\.zip)?/|\bpy4j\b")
PACKAGE = re.compile(r"/(?:site|dist)-packages/(?!pyspark\b|py4j\b)(\w+)")


def is_library(file: str) -> bool:
    """Whether a file of Python code belongs to Python, to Spark or to an installed package."""
    return LIBRARY.search(file) is not None


def package_of(file: str) -> str:
    """The installed package that a file of Python code belongs to; empty for Spark's and any other."""
    found = PACKAGE.search(file)
    return found[1] if found else ""
