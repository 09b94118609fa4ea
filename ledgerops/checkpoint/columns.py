"""How columns of the state are shown: times as they are, what could name a customer as a hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Set
from typing import Any

from ledgerops.model.observed_metrics import HASH_LENGTH

TimeLike = Any  # a Spark type; pyspark is untyped here
TIMES = {"timestamp", "timestamp_ntz", "date"}


def time_like(of: TimeLike) -> bool:
    """Whether a Spark type holds times only: an instant, a date, a window."""
    fields = getattr(of, "fields", None)
    return all(time_like(field.dataType) for field in fields) if fields else of.simpleString() in TIMES


def hashed(text: str) -> str:
    """As `ledgerops.instrument` hashes keys, so that a key has the same name in the diagnosis and here."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


def shown_key(text: str | None, of: TimeLike, show: bool) -> str | None:
    """A column of a key as text. Times come as JSON of one column and are always shown."""
    if text is None:
        return None
    if time_like(of):
        return _time(json.loads(text).get("c"))
    return text if show else hashed(text)


def masked(value: Any, of: TimeLike, secret: Set[str], name: str = "") -> Any:
    """A value parsed from Spark's JSON, without texts and without what columns named in `secret` hold."""
    if value is None or of.simpleString() in TIMES:
        return value
    kind = of.typeName()
    if kind == "struct":
        return {field.name: masked(value.get(field.name), field.dataType, secret, field.name) for field in of.fields}
    if kind == "array":
        return [masked(item, of.elementType, secret, name) for item in value]
    if kind == "map":
        return {hashed(str(key)): masked(item, of.valueType, secret, name) for key, item in value.items()}
    if name in secret or kind in ("string", "varchar", "char", "binary", "variant"):
        return hashed(value if isinstance(value, str) else json.dumps(value))
    return value


def _time(value: Any) -> str | None:
    if isinstance(value, dict):  # a window: from, to
        return " to ".join(str(_time(part)) for part in value.values())
    text = str(value)
    return text.replace(".000000Z", "Z") if value is not None else None
