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
    found: list[Change] = []
    given: dict[str, list[int]] = {name: [] for name in SECTIONS}
    for i, item in enumerate(entry.items()):
        section = item.section(("from", "to", *SECTIONS))
        change = _change(section, own_keys, own_partitions)
        for name in SECTIONS:
            if section.get(name) is None:
                continue
            for j in given[name]:
                if change.begin < found[j].end and found[j].begin < change.end:
                    raise section.need(name).error(f"{entry.path}[{j}] changes {name} in the same seconds")
            given[name].append(i)
        found.append(change)
    return tuple(found)


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
