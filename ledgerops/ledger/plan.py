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
```
"""

from __future__ import annotations

import difflib
import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import yaml

from ledgerops.errors import UserError
from ledgerops.ledger.layout import Partitions
from ledgerops.ledger.phases import Burst, Constant, Phase, Ramp, Sine
from ledgerops.ledger.schedule import Schedule
from ledgerops.ledger.yamltree import Entry, parse

# names of the plans that come with the package
PLANS = ("burst", "default", "idle", "late", "overload", "pinned", "whale")
_FOLDER = Path(__file__).parent / "plans"

DISTRIBUTIONS = ("uniform", "zipf", "whale")
DELAYS = ("uniform", "fixed", "exponential")
_SHAPES = {
    "constant": ("rate",),
    "ramp": ("from", "to"),
    "step": ("from", "to", "steps"),
    "sine": ("low", "high", "period"),
    "burst": ("base", "peak", "every", "length"),
}
_MOST_KEYS = 10_000_000  # ids have 8 digits; each worker keeps a table of the accounts


@dataclass(frozen=True)
class Keys:
    """Accounts are drawn; each belongs to one customer, and every customer has at least one."""

    customers: int = 4000
    accounts: int = 4500
    distribution: str = "uniform"
    exponent: float = 0.8  # of zipf: the k-th account's share is proportional to 1 / k^exponent
    share: float = 0.8  # of whale: what one account takes


@dataclass(frozen=True)
class Late:
    """`share` of the transactions happened `delay` seconds before they arrive."""

    share: float = 0.0
    delay: str = "uniform"
    low: float = 1.0
    high: float = 10.0


@dataclass(frozen=True)
class Duplicates:
    """`share` of the records repeat one that came at most `within` seconds before."""

    share: float = 0.0
    within: float = 5.0


@dataclass(frozen=True)
class Amounts:
    """Log-normal, in the bank's currency; cut at `most`."""

    median: float = 2100.0
    sigma: float = 1.6
    most: float = 90_000.0


@dataclass(frozen=True)
class Plan:
    name: str = field(compare=False)
    text: str = field(compare=False, repr=False)  # as read: this is what travels to the workers
    seed: int
    start: float | None  # None: when the run began
    repeat: bool
    phases: tuple[Phase, ...]
    keys: Keys = Keys()
    partitions: Partitions = field(default_factory=Partitions)
    late: Late = Late()
    duplicates: Duplicates = Duplicates()
    amounts: Amounts = Amounts()

    @property
    def digest(self) -> str:
        """Tells two plans apart, whatever their names: a checkpoint belongs to one of them."""
        return hashlib.sha256(repr(self).replace(f"name={self.name!r}, ", "", 1).encode()).hexdigest()[:16]

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(self.phases, self.repeat)


def load_plan(name_or_path: str | Path, scale: float | None = None) -> Plan:
    """A shipped plan by its name, or the plan in a file; `scale` replaces the plan's own.

    Raises UserError that names file, line and key.
    """
    name = str(name_or_path)
    file = _FOLDER / f"{name}.yaml" if name in PLANS else Path(name)
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        close = difflib.get_close_matches(name, PLANS, n=1)
        guess = f" (did you mean {close[0]}?)" if close else ""
        raise UserError(f"no plan {name}{guess}; give the path of a YAML file, or one of: {', '.join(PLANS)}") from None
    except UnicodeDecodeError:
        raise UserError(f"cannot read plan {name}: not UTF-8 text") from None
    except OSError as error:
        raise UserError(f"cannot read plan {name}: {(error.strerror or str(error)).lower()}") from None
    label = name if file.parent == _FOLDER else file.name
    plan = parse_plan(text, label)
    if scale is None:
        return plan
    scaled = yaml.safe_dump({**yaml.safe_load(text), "scale": scale}, sort_keys=False)
    return parse_plan(scaled, label)


@lru_cache(maxsize=64)
def parse_plan(text: str, name: str = "plan") -> Plan:
    """The plan of a YAML text. Raises UserError that names file, line and key."""
    file = name if name.endswith((".yaml", ".yml")) else f"{name}.yaml"
    top = parse(text, file).section(
        ("seed", "start", "scale", "repeat", "phases", "keys", "partitions", "disorder", "duplicates", "amounts")
    )
    start = top.get("start")
    repeat = (entry := top.get("repeat")) is not None and entry.boolean()
    scale = entry.number() if (entry := top.get("scale")) else 1.0
    return Plan(
        name=name,
        text=text,
        seed=entry.integer(0, 2**63 - 1) if (entry := top.get("seed")) else 1,
        start=start.instant() if start else None,
        repeat=repeat,
        phases=_phases(top.need("phases"), scale, repeat),
        keys=_keys(entry) if (entry := top.get("keys")) else Keys(),
        partitions=_partitions(entry) if (entry := top.get("partitions")) else Partitions(),
        late=_late(entry) if (entry := top.get("disorder")) else Late(),
        duplicates=_duplicates(entry) if (entry := top.get("duplicates")) else Duplicates(),
        amounts=_amounts(entry) if (entry := top.get("amounts")) else Amounts(),
    )


def _phases(entry: Entry, scale: float, repeat: bool) -> tuple[Phase, ...]:
    items = entry.items()
    phases: list[Phase] = []
    for i, item in enumerate(items):
        phases += _phase(item, scale, endless=not repeat and i == len(items) - 1)
    rates = (
        vars(phase)[name] for phase in phases for name in ("rate", "low", "high", "base", "peak") if name in vars(phase)
    )
    if not any(rates):
        raise entry.error("expected at least one phase with a rate above 0")
    return tuple(phases)


def _phase(entry: Entry, scale: float, endless: bool) -> list[Phase]:
    shape = entry.section(("shape", "duration", *sorted({key for keys in _SHAPES.values() for key in keys})))
    kind = shape.need("shape").choice(_SHAPES)
    section = entry.section(("shape", *_SHAPES[kind], "duration"))
    given = section.get("duration")
    forms_itself = kind in ("constant", "sine", "burst")
    duration = given.seconds(0.001) if given else math.inf
    if not given and not (endless and forms_itself):
        why = "only the last phase may leave it out, when it is constant, sine or burst and the plan does not repeat"
        raise entry.error(f"the key duration is missing ({why})")
    length = math.inf if endless else duration

    def rate(key: str) -> float:
        return section.need(key).number() * scale

    if kind == "constant":
        return [Constant(rate("rate"), length)]
    if kind == "sine":
        low, high = rate("low"), section.need("high").number(section.need("low").number()) * scale
        return [Sine(low, high, section.need("period").seconds(0.001), length)]
    if kind == "burst":
        every = section.need("every").seconds(0.001)
        burst = section.need("length").seconds(0.001)
        if burst > every:
            raise section.need("length").error(f"expected at most the {every:g} s of every, got {burst:g} s")
        return [Burst(rate("base"), rate("peak"), every, burst, length)]
    first, last = rate("from"), rate("to")
    hold: list[Phase] = [Constant(last, math.inf)] if endless else []
    if kind == "ramp":
        return [Ramp(first, last, duration), *hold]
    steps = section.need("steps").integer(2, 10_000)
    stairs = [first + (last - first) * i / (steps - 1) for i in range(steps)]
    return [*(Constant(stair, duration / steps) for stair in stairs), *hold]


def _keys(entry: Entry) -> Keys:
    section = entry.section(("customers", "accounts", "distribution", "exponent", "share"))
    customers = found.integer(1, _MOST_KEYS) if (found := section.get("customers")) else Keys.customers
    default = max(Keys.accounts, customers) if "customers" not in section.entries else customers + customers // 8
    accounts = found.integer(customers, _MOST_KEYS) if (found := section.get("accounts")) else default
    kind = found.choice(DISTRIBUTIONS) if (found := section.get("distribution")) else Keys.distribution
    for key, owner in (("exponent", "zipf"), ("share", "whale")):
        if kind != owner and (found := section.get(key)):
            raise found.error(f"belongs to the distribution {owner}, and this one is {kind}")
    return Keys(
        customers,
        accounts,
        kind,
        found.number(0.0, 10.0) if (found := section.get("exponent")) else Keys.exponent,
        found.number(0.0, 1.0) if (found := section.get("share")) else Keys.share,
    )


def _partitions(entry: Entry) -> Partitions:
    section = entry.section(("count", "idle", "pinned"))
    count = found.integer(1, 1000) if (found := section.get("count")) else Partitions.count
    idle = tuple(item.integer(0, count - 1) for item in found.items()) if (found := section.get("idle")) else ()
    if len(set(idle)) == count:
        raise section.need("idle").error("expected at least one partition that is not idle")
    found = section.get("pinned")
    if found is None:
        return Partitions(count, idle)
    pinned = found.section(("partition", "share"))
    partition = pinned.need("partition").integer(0, count - 1)
    if partition in idle:
        raise pinned.need("partition").error(f"partition {partition} is idle too")
    share = pinned.need("share").number(0.0, 1.0)
    if share < 1.0 and len(set(idle)) == count - 1:
        raise pinned.need("share").error("expected 1, as every other partition is idle")
    return Partitions(count, idle, partition, share)


def _late(entry: Entry) -> Late:
    found = entry.section(("late",)).need("late")
    section = found.section(("share", "delay", "low", "high", "mean"))
    share = section.need("share").number(0.0, 1.0)
    kind = item.choice(DELAYS) if (item := section.get("delay")) else Late.delay
    if kind == "fixed":
        low = high = found.section(("share", "delay", "low")).need("low").seconds()
    elif kind == "exponential":
        mean = found.section(("share", "delay", "mean")).need("mean").seconds()
        low, high = 0.0, mean
    else:
        section = found.section(("share", "delay", "low", "high"))
        low = item.seconds() if (item := section.get("low")) else Late.low
        high = item.seconds(low) if (item := section.get("high")) else max(Late.high, low)
    return Late(share, kind, low, high)


def _duplicates(entry: Entry) -> Duplicates:
    section = entry.section(("share", "within"))
    # above a half, most copies would be copies of copies
    share = section.need("share").number(0.0, 0.5)
    return Duplicates(share, item.seconds() if (item := section.get("within")) else Duplicates.within)


def _amounts(entry: Entry) -> Amounts:
    section = entry.section(("median", "sigma", "max"))
    median = item.number(0.01, 1e12) if (item := section.get("median")) else Amounts.median
    sigma = item.number(0.0, 10.0) if (item := section.get("sigma")) else Amounts.sigma
    most = item.number(median, 1e12) if (item := section.get("max")) else max(Amounts.most, median)
    return Amounts(median, sigma, most)
