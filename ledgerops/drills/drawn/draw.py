"""Draws the cases of a seed: which faults and which healthy runs, and how each of them is made.

The kinds are dealt like cards: four seeds in a row (1 to 4, 5 to 8) meet nearly every kind. Everything else about a
case comes from its seed and number alone.
"""

import random
from collections.abc import Mapping

from ledgerops.drills.drawn.faults import FAULTS, Chance, Draw
from ledgerops.drills.drawn.healthy import HEALTHY
from ledgerops.drills.harness.case import WORDS, Case

DEFAULT_DRILLS = 20
# the most frequent faults in practice, which are dealt twice as often
OFTEN = (
    "slow-sink", "python-udf", "overload", "key-skew", "too-many-tasks", "binding-cap", "idle-branch", "straggler",
    "late-rows", "planning", "stuck-sink",
)  # fmt: skip
HEALTHY_OF_FIVE = 2  # of five cases
SEEDS_A_ROUND = 4
FAULT_SECONDS = 50.0  # for which a fault lasts, at least


def cases(seed: int, count: int = DEFAULT_DRILLS) -> list[Case]:
    """The cases of a seed, in the order in which they are run."""
    healthy = count * HEALTHY_OF_FIVE // 5
    drawn = [(kind, FAULTS) for kind in _dealt("faults", FAULTS, seed, count - healthy)]
    drawn += [(kind, HEALTHY) for kind in _dealt("healthy", HEALTHY, seed, healthy)]
    random.Random(f"order {seed}").shuffle(drawn)
    return [_case(kind, pool, seed, number) for number, (kind, pool) in enumerate(drawn, 1)]


def _dealt(what: str, pool: Mapping[str, Draw], seed: int, count: int) -> list[str]:
    """So many kinds: those that the seeds of the same round before this one were not dealt come first."""
    turn, place = divmod(seed - 1, SEEDS_A_ROUND)
    kinds: list[str] = []
    chance = random.Random(f"{what} {turn}")
    while len(kinds) < count * (place + 1):
        more = [*pool, *(kind for kind in OFTEN if kind in pool)]
        chance.shuffle(more)
        kinds += more
    return kinds[count * place : count * (place + 1)]


def case_of(kind: str, seed: int, number: int) -> Case:
    """The case of one kind of fault that a seed draws under this number."""
    return _case(kind, FAULTS, seed, number)


def _case(kind: str, pool: Mapping[str, Draw], seed: int, number: int) -> Case:
    chance = Chance(f"{seed} {number} {kind}")
    parts = dict(pool[kind](chance))
    healthy = pool is HEALTHY
    name = parts.pop("query", None) or "_".join(chance.pick(*words) for words in WORDS)
    named = chance.random.random() < 0.75 or parts["app"] in ("totals", "reports")
    later = parts.pop("later", None)
    if later is not None:
        parts["changes"] = tuple((later, change) for _, change in parts.get("changes", ()))
    source = chance.source if parts["app"] != "ledger_job" else "ledger"
    onset = 0.0 if healthy or chance.onset == "birth" else (later or chance.onset_seconds)
    options = {"rate": 100, **parts.pop("options", {})}
    rate = parts.pop("load", options["rate"])
    control = dict(parts.pop("control", {}))
    if source in ("files", "kafka", "delta", "ledger"):
        control.setdefault("load", {"rate": rate})
    if parts.get("two_inputs"):
        control.setdefault("load2", {"rate": rate})
    lasts = max(parts.pop("after", FAULT_SECONDS), 4.5 * (chance.trigger or 0.0) + 15.0)
    return Case(
        **{
            "name": f"{number:02}-{kind}",
            "kind": kind,
            "seed": seed,
            "healthy": healthy,
            "source": source,
            "trigger": chance.trigger,
            "onset": "" if healthy else chance.onset,
            "onset_seconds": onset,
            "strength": "" if healthy else chance.strength,
            "query": name if named else "",
            "seconds": 65.0 if healthy else onset + lasts,
            "harm": "none" if healthy else "given" if "harm_after" in parts else "time",
            "kafka_watched": chance.random.random() < 0.5,
            **parts,
            "options": options,
            "control": control,
        }
    )
