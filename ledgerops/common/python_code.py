"""Which Python code is an application's own."""

import re

SPARKS = re.compile(r"\bpyspark(?:\.zip)?/|\bpy4j\b")
LIBRARY = re.compile(rf"^<|/(?:site|dist)-packages/|/lib/python[\d.]+/|{SPARKS.pattern}")
PACKAGE = re.compile(r"/(?:site|dist)-packages/(?!pyspark\b|py4j\b)(\w+)")


def is_library(file: str) -> bool:
    """Whether a file of Python code belongs to Python, to Spark or to an installed package."""
    return LIBRARY.search(file) is not None


def is_sparks(file: str) -> bool:
    """Whether it belongs to PySpark, or to Py4J, by which that calls the JVM."""
    return SPARKS.search(file) is not None


def package_of(file: str) -> str:
    """The installed package that a file of Python code belongs to; empty for Spark's and any other."""
    found = PACKAGE.search(file)
    return found[1] if found else ""
