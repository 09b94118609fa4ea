"""Watches Spark Structured Streaming queries, says what is wrong with them and why, and proves it."""

__version__ = "0.1.0"
