"""The samples of a page of metrics."""

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

Page = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str, parse: Callable[[str], Iterable[Any]] = text_string_to_metric_families) -> Page:
    """The value of each name with its labels; without help and exemplars."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }
