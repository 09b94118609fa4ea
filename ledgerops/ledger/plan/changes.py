"""Changes of a load plan: sections that hold for a while in place of the plan's own."""

import math
from dataclasses import dataclass

from ledgerops.ledger.plan import sections
from ledgerops.ledger.plan.partitioning import Partitions
from ledgerops.ledger.plan.sections import Duplicates, Future, Keys, Late, Poison
from ledgerops.ledger.plan.yaml_tree import Entry, Section

SECTIONS = ("keys", "partitions", "disorder", "duplicates", "poison")


@dataclass(frozen=True)
class Change:
    """Holds within [begin, end), in seconds after the plan's start. None: the plan's own section goes on."""

    begin: float
    end: float
    keys: Keys | None = None
    partitions: Partitions | None = None
    late: Late | None = None  # late and future are one section: both or none is given
    future: Future | None = None
    duplicates: Duplicates | None = None
    poison: Poison | None = None


def changes(entry: Entry, own_keys: Keys, own_partitions: Partitions) -> tuple[Change, ...]:
    """Raises UserError for two that give the same section at the same time."""
    found: list[tuple[Section, Change]] = []
    for item in entry.items():
        section = item.section(("from", "to", *SECTIONS))
        change = _change(section, own_keys, own_partitions)
        for other, earlier in found:
            twice = [name for name in SECTIONS if section.get(name) and other.get(name)]
            if twice and change.begin < earlier.end and earlier.begin < change.end:
                raise section.need(twice[0]).error(f"{other.entry.path} changes {twice[0]} in the same seconds")
        found.append((section, change))
    return tuple(change for _, change in found)


def _change(section: Section, own_keys: Keys, own_partitions: Partitions) -> Change:
    begin = section.need("from").seconds()
    end = given.seconds() if (given := section.get("to")) else math.inf
    if given and end <= begin:
        raise given.error(f"expected a time after from ({begin:g} s), got {end:g} s")
    if not any(section.get(name) for name in SECTIONS):
        raise section.entry.error(f"expected at least one of {', '.join(SECTIONS)}")
    late, future = sections.disorder(item) if (item := section.get("disorder")) else (None, None)
    return Change(
        begin,
        end,
        sections.keys(item, own_keys) if (item := section.get("keys")) else None,
        sections.partitions(item, own_partitions) if (item := section.get("partitions")) else None,
        late,
        future,
        sections.duplicates(item) if (item := section.get("duplicates")) else None,
        sections.poison(item) if (item := section.get("poison")) else None,
    )
