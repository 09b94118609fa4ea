"""The load plan: one YAML file that says how many records come when, with which keys, disorder and faults.

```yaml
seed: 7                     # same plan, same seed: the same rows, byte for byte
start: now                  # event time of the first record: now (when the run began) or an instant
scale: 1                    # multiplies every rate
repeat: false               # true: after the last phase comes the first again
phases:                     # one after the other; without repeat the last one goes on for ever,
                            # ramp and step at the rate they ended with, and may leave out its duration
  - {shape: constant, rate: 800, duration: 10 minutes}
  - {shape: ramp, from: 800, to: 4000, duration: 60s}
  - {shape: step, from: 800, to: 4000, steps: 5, duration: 5m}
  - {shape: sine, low: 200, high: 1400, period: 2m, duration: 10m}
  - {shape: burst, base: 500, peak: 8000, every: 60s, length: 5s, duration: 10m}
keys: {customers: 4000, accounts: 4500, distribution: zipf, exponent: 0.8}   # or uniform, or whale with its share
partitions: {count: 5, idle: [3], pinned: {partition: 2, share: 0.8}}
disorder: {late: {share: 0.01, delay: uniform, low: 1s, high: 10s}}         # or delay: fixed, exponential
duplicates: {share: 0.01, within: 5s}
amounts: {median: 2100, sigma: 1.6, max: 90000}
poison: {share: 0.001, kinds: [invalid_json, tombstone]}    # records besides the good ones that no reader can take;
                            # kinds (all unless given): invalid_json, missing_field, wrong_type, oversized, null_key,
                            # tombstone. For `ledgerops load` only: the embedded source ignores it
changes:                    # within [from, to) of plan time (since the start, also of a plan that repeats; without `to`
                            # for ever) these sections replace the plan's own: keys, partitions, disorder, duplicates,
                            # poison. A section may be changed once at a time, several sections together or apart
  - {from: 45s, to: 90s, keys: {distribution: whale, share: 0.6}}
  - {from: 45s, to: 90s, duplicates: {share: 0.02, within: 5s}, disorder: {future: {count: 1, ahead: 1h}}}
```

A phase may have the rate 0, for silence; when the last one has, the stream ends. More of the sections, in a plan or in
its changes:

- `keys.rotate: 30s`: of a whale, and which customer's account it is changes every 30 s after the beginning of the plan
  or of the change.
- `disorder.future: {share: 0.001, ahead: 1h}` dates that share of the transactions an hour after they come, and
  `{count: 1, ahead: 1h}` the first one of the plan or of the change. With `count`, those first records are no copies
  and none is copied, so it is exactly as many records.
- `duplicates.conflicting: 0.25`: that share of the duplicates carries another amount than the original. A duplicate is
  one in the sense of the section that holds when it comes, whenever the original came.
- `customers`, `accounts` and the `count` of partitions are the plan's own where a change does not say them. Partitions
  that only a change has appear with its first record (to Kafka's topic they belong from the beginning); those that it
  lacks get nothing meanwhile. With another number of customers an account may belong to another one.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import yaml

from ledgerops.errors import UserError, cannot_read
from ledgerops.input_files import read_text
from ledgerops.ledger.plan import sections
from ledgerops.ledger.plan.changes import Change, changes
from ledgerops.ledger.plan.partitioning import Partitions
from ledgerops.ledger.plan.phases import Phase
from ledgerops.ledger.plan.schedule import Schedule
from ledgerops.ledger.plan.sections import Amounts, Duplicates, Future, Keys, Late, Poison
from ledgerops.ledger.plan.yaml_tree import guess, parse

# names of the plans that come with the package
PLANS = (
    *("burst", "conflicting", "default", "diurnal", "future", "idle", "late", "late-flood", "overload", "pinned"),
    *("rotating", "whale", "zipf"),
)
_FOLDER = Path(__file__).parent / "plans"


@dataclass(frozen=True)
class LoadPlan:
    """A load plan, read and checked. Its `repr` decides its digest."""

    name: str = field(compare=False, repr=False)
    text: str = field(compare=False, repr=False)  # as read: this is what travels to the workers
    seed: int
    start: float | None  # None: when the run began
    repeat: bool
    phases: tuple[Phase, ...]
    keys: Keys
    partitions: Partitions
    late: Late
    duplicates: Duplicates
    amounts: Amounts
    poison: Poison
    future: Future
    changes: tuple[Change, ...] = ()

    @property
    def digest(self) -> str:
        """Tells two plans apart, whatever their names: a checkpoint belongs to one of them."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    @cached_property
    def schedule(self) -> Schedule:
        """When records are due: all phases in order, repeated without end if `repeat` is set."""
        return Schedule(self.phases, self.repeat)

    @property
    def all_keys(self) -> Keys:
        """As many customers and accounts as ever occur."""
        known = [self.keys, *(each.keys for each in self.changes if each.keys)]
        return Keys(max(each.customers for each in known), max(each.accounts for each in known))


def load_plan(name_or_path: str | Path, scale: float | None = None) -> LoadPlan:
    """A shipped plan by its name, or the plan in a file; `scale` replaces the plan's own.

    Raises UserError that names file, line and key.
    """
    name = str(name_or_path)
    file = _FOLDER / f"{name}.yaml" if name in PLANS else Path(name)
    try:
        text = read_text(file)
    except FileNotFoundError:
        hint = f"{guess(name, PLANS)}; give the path of a YAML file, or one of: {', '.join(PLANS)}"
        raise UserError(f"no plan {name}{hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise cannot_read(f"plan {name}", error) from None
    label = name if file.parent == _FOLDER else str(file)
    plan = parse_plan(text, label)
    if scale is None:
        return plan
    scaled = yaml.safe_dump({**yaml.safe_load(text), "scale": scale}, sort_keys=False)
    try:
        return parse_plan(scaled, label)
    except UserError:
        # lines of this text are not the file's; and what could be read before can only be too fast now
        most = f"{sections.MAX_RECORDS_PER_SECOND:,.0f} records per second"
        raise UserError(
            f"at {scale:g} times its rates plan {name} sends more than {most}; give a smaller factor"
        ) from None


@lru_cache(maxsize=64)
def parse_plan(text: str, name: str = "plan") -> LoadPlan:
    """The plan of a YAML text. Raises UserError that names file, line and key."""
    file = name if name.endswith((".yaml", ".yml")) else f"{name}.yaml"
    top = parse(text, file).section(
        (
            *("seed", "start", "scale", "repeat", "phases", "keys", "partitions", "disorder", "duplicates", "amounts"),
            *("poison", "changes"),
        )
    )
    start = top.get("start")
    repeat = (entry := top.get("repeat")) is not None and entry.boolean()
    scale = entry.number() if (entry := top.get("scale")) else 1.0
    keys = sections.keys(entry) if (entry := top.get("keys")) else Keys()
    partitions = sections.partitions(entry) if (entry := top.get("partitions")) else Partitions()
    late, future = sections.disorder(entry) if (entry := top.get("disorder")) else (Late(), Future())
    return LoadPlan(
        name=name,
        text=text,
        seed=entry.integer(0, 2**63 - 1) if (entry := top.get("seed")) else 1,
        start=start.instant() if start else None,
        repeat=repeat,
        phases=sections.phases(top.need("phases"), scale, repeat),
        keys=keys,
        partitions=partitions,
        late=late,
        duplicates=sections.duplicates(entry) if (entry := top.get("duplicates")) else Duplicates(),
        amounts=sections.amounts(entry) if (entry := top.get("amounts")) else Amounts(),
        poison=sections.poison(entry) if (entry := top.get("poison")) else Poison(),
        future=future,
        changes=changes(entry, keys, partitions) if (entry := top.get("changes")) else (),
    )
