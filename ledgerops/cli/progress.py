"""Bars on stderr while a command works."""

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn


def bar(*columns: ProgressColumn, console: Console | None = None) -> Progress:
    """A bar with its description before it and `columns` after it, gone when the work is done; a terminal shows it.
    What is printed meanwhile goes above it, unless it has a `console` of its own."""
    apart, console = console is not None, console or Console(stderr=True, soft_wrap=True)
    description = TextColumn("{task.description}")
    return Progress(
        description, BarColumn(30), *columns, console=console, transient=True, disable=not console.is_terminal,
        redirect_stdout=not apart, redirect_stderr=not apart,
    )  # fmt: skip
