"""The parts of a load plan: what each may say, and how it is read from YAML. `plan` shows them all."""

import math
from dataclasses import dataclass

from ledgerops.ledger.plan.partitioning import Partitions
from ledgerops.ledger.plan.phases import Burst, Constant, Phase, Ramp, Sine
from ledgerops.ledger.plan.yaml_tree import Entry

DISTRIBUTIONS = ("uniform", "zipf", "whale")
POISON_KINDS = ("invalid_json", "missing_field", "wrong_type", "oversized", "null_key", "tombstone")
_SHAPES = {
    "constant": ("rate",),
    "ramp": ("from", "to"),
    "step": ("from", "to", "steps"),
    "sine": ("low", "high", "period"),
    "burst": ("base", "peak", "every", "length"),
}
#: No machine sends so many, and sums over years of them are still numbers.
MAX_RECORDS_PER_SECOND = 1e9
_MAX_KEYS = 10_000_000  # ids have 8 digits; each worker keeps a table of the accounts
_MAX_FUTURE_ROWS = 1_000_000


@dataclass(frozen=True)
class Keys:
    """Accounts are drawn; each belongs to one customer, and every customer has at least one."""

    customers: int = 4000
    accounts: int = 4500
    distribution: str = "uniform"
    exponent: float = 0.8  # of zipf: the k-th account's share is proportional to 1 / k^exponent
    share: float = 0.8  # of whale: what one account takes
    rotate: float | None = None  # of whale: seconds until another customer's account takes it; None: never


@dataclass(frozen=True)
class Late:
    """`share` of the transactions happened `delay` seconds before they arrive."""

    share: float = 0.0
    delay: str = "uniform"  # or fixed (`low`), or exponential (of mean `high`)
    low: float = 1.0
    high: float = 10.0


@dataclass(frozen=True)
class Future:
    """`share` of the transactions, or the first `count`, are dated `ahead` seconds after they come."""

    share: float = 0.0
    count: int = 0
    ahead: float = 0.0


@dataclass(frozen=True)
class Duplicates:
    """`share` of the records repeat one that came at most `within` seconds before; `conflicting` of those with
    another amount."""

    share: float = 0.0
    within: float = 5.0
    conflicting: float = 0.0


@dataclass(frozen=True)
class Amounts:
    """Log-normal, in the bank's currency; cut at `most`."""

    median: float = 2100.0
    sigma: float = 1.6
    most: float = 90_000.0


@dataclass(frozen=True)
class Poison:
    """After `share` of the records comes one that no reader can take; the embedded source has none."""

    share: float = 0.0
    kinds: tuple[str, ...] = POISON_KINDS


def phases(entry: Entry, scale: float, repeat: bool) -> tuple[Phase, ...]:
    """The phases, their rates scaled; a step becomes several constants, and the last phase is made endless."""
    items = entry.items()
    found: list[Phase] = []
    for i, item in enumerate(items):
        found += _phase(item, scale, endless=not repeat and i == len(items) - 1)
    rates = (
        vars(phase)[name] for phase in found for name in ("rate", "low", "high", "base", "peak") if name in vars(phase)
    )
    most = max(rates, default=0.0)
    if not most:
        raise entry.error("expected at least one phase with a rate above 0")
    if most > MAX_RECORDS_PER_SECOND:
        raise entry.error(
            f"expected rates of at most {MAX_RECORDS_PER_SECOND:,.0f} per second, including scale, got {most:g}"
        )
    return tuple(found)


def _phase(entry: Entry, scale: float, endless: bool) -> list[Phase]:
    kind = entry.member("shape").choice(_SHAPES)
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
            raise section.need("length").error(f"expected at most the value of every ({every:g} s), got {burst:g} s")
        return [Burst(rate("base"), rate("peak"), every, burst, length)]
    first, last = rate("from"), rate("to")
    hold: list[Phase] = [Constant(last, math.inf)] if endless else []
    if kind == "ramp":
        return [Ramp(first, last, duration), *hold]
    steps = section.need("steps").integer(2, 10_000)
    stairs = [first + (last - first) * i / (steps - 1) for i in range(steps)]
    return [*(Constant(stair, duration / steps) for stair in stairs), *hold]


def keys(entry: Entry, own: Keys | None = None) -> Keys:
    """`own`: the plan's, which say how many there are where a change does not."""
    own = own or Keys()
    section = entry.section(("customers", "accounts", "distribution", "exponent", "share", "rotate"))
    customers = found.integer(1, _MAX_KEYS) if (found := section.get("customers")) else own.customers
    default = own.accounts if customers == own.customers else customers + customers // 8
    accounts = found.integer(customers, _MAX_KEYS) if (found := section.get("accounts")) else default
    kind = found.choice(DISTRIBUTIONS) if (found := section.get("distribution")) else Keys.distribution
    for key, owner in (("exponent", "zipf"), ("share", "whale"), ("rotate", "whale")):
        if kind != owner and (found := section.get(key)):
            raise found.error(f"belongs to the distribution {owner}, and this one is {kind}")
    return Keys(
        customers,
        accounts,
        kind,
        found.number(0.0, 10.0) if (found := section.get("exponent")) else Keys.exponent,
        found.number(0.0, 1.0) if (found := section.get("share")) else Keys.share,
        found.seconds(0.001) if (found := section.get("rotate")) else None,
    )


def partitions(entry: Entry, own: Partitions | None = None) -> Partitions:
    """`own`: the plan's, which say how many there are where a change does not."""
    section = entry.section(("count", "idle", "pinned"))
    count = found.integer(1, 1000) if (found := section.get("count")) else (own or Partitions()).count
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
        raise pinned.need("share").error("expected 1, because there is no other busy partition")
    return Partitions(count, idle, partition, share)


def disorder(entry: Entry) -> tuple[Late, Future]:
    """Reads `disorder`: the shares of late and future transactions. Raises UserError on bad keys or values."""
    section = entry.section(("late", "future"))
    if not section.entries:
        raise entry.error("expected late or future, or both")
    return (
        _late(found) if (found := section.get("late")) else Late(),
        _future(found) if (found := section.get("future")) else Future(),
    )


def _late(late: Entry) -> Late:
    kinds = {"uniform": ("low", "high"), "fixed": ("low",), "exponential": ("mean",)}
    found = late.section(("share", "delay", "low", "high", "mean")).get("delay")
    kind = found.choice(kinds) if found else Late.delay
    section = late.section(("share", "delay", *kinds[kind]))
    share = section.need("share").number(0.0, 1.0)
    if kind == "exponential":
        return Late(share, kind, 0.0, section.need("mean").seconds())
    low = found.seconds() if (found := section.get("low")) else Late.low
    if kind == "fixed":
        return Late(share, kind, low, low)
    return Late(share, kind, low, found.seconds(low) if (found := section.get("high")) else max(Late.high, low))


def _future(entry: Entry) -> Future:
    section = entry.section(("share", "count", "ahead"))
    share, count = section.get("share"), section.get("count")
    if (share is None) == (count is None):
        raise entry.error("expected either share or count")
    return Future(
        share.number(0.0, 1.0) if share else 0.0,
        count.integer(0, _MAX_FUTURE_ROWS) if count else 0,
        section.need("ahead").seconds(0.001),
    )


def duplicates(entry: Entry) -> Duplicates:
    """Reads `duplicates`: the share of copies, at most 0.5, and their delay. Raises UserError on bad keys or values."""
    section = entry.section(("share", "within", "conflicting"))
    # above a half, most copies would be copies of copies
    share = section.need("share").number(0.0, 0.5)
    return Duplicates(
        share,
        item.seconds() if (item := section.get("within")) else Duplicates.within,
        item.number(0.0, 1.0) if (item := section.get("conflicting")) else 0.0,
    )


def amounts(entry: Entry) -> Amounts:
    """Reads `amounts`: median, spread and upper limit of an amount of money. Raises UserError on bad keys or values."""
    section = entry.section(("median", "sigma", "max"))
    median = item.number(0.01, 1e12) if (item := section.get("median")) else Amounts.median
    sigma = item.number(0.0, 10.0) if (item := section.get("sigma")) else Amounts.sigma
    most = item.number(median, 1e12) if (item := section.get("max")) else max(Amounts.most, median)
    return Amounts(median, sigma, most)


def poison(entry: Entry) -> Poison:
    """Reads `poison`: the share of records followed by a bad one, at most 0.5, and the kinds. Raises UserError."""
    section = entry.section(("share", "kinds"))
    share = section.need("share").number(0.0, 0.5)
    found = section.get("kinds")
    if found is None:
        return Poison(share)
    kinds = tuple(item.choice(POISON_KINDS) for item in found.items())
    if not kinds:
        raise found.error("expected at least one kind")
    if len(set(kinds)) < len(kinds):
        raise found.error("expected each kind once")
    return Poison(share, kinds)
