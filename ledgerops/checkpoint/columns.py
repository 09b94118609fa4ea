"""How columns of the state are shown: times as they are, and what could identify a customer as a hash."""

import hashlib
import json
from collections.abc import Iterator, Set
from typing import Any

from ledgerops.model.observed_metrics import HASH_LENGTH

SparkType = Any  # pyspark is untyped here
TIMES = {"timestamp", "timestamp_ntz", "date"}


def time_like(data_type: SparkType) -> bool:
    """Whether a Spark type holds times only: an instant, a date, a window."""
    fields = getattr(data_type, "fields", None)
    return all(time_like(field.dataType) for field in fields) if fields else data_type.simpleString() in TIMES


def hashed(text: str) -> str:
    """As `ledgerops.instrument` hashes keys, so that a key has the same name in the diagnosis and here."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


def shown_key(text: str | None, data_type: SparkType, show: bool) -> str | None:
    """A column of a key as text, hashed unless `show`. Times come as JSON with one column and are always shown."""
    if text is None:
        return None
    if time_like(data_type):
        return _time(json.loads(text).get("c"))
    return text if show else hashed(text)


def names_in(data_type: SparkType) -> Iterator[str]:
    """The names of the fields in a Spark type, however deep, that are no times."""
    for field in getattr(data_type, "fields", ()):
        if not time_like(field.dataType):
            yield field.name
            yield from names_in(field.dataType)
    for part in ("elementType", "valueType"):
        if hasattr(data_type, part):
            yield from names_in(getattr(data_type, part))


def masked(value: Any, data_type: SparkType, secret: Set[str] | None, name: str = "") -> Any:
    """A value parsed from Spark's JSON, without texts and without what columns named in `secret` hold; of None nothing
    but times is shown."""
    if value is None or data_type.simpleString() in TIMES:
        return value
    kind = data_type.typeName()
    if kind == "struct":
        fields = data_type.fields
        return {each.name: masked(value.get(each.name), each.dataType, secret, each.name) for each in fields}
    if kind == "array":
        return [masked(item, data_type.elementType, secret, name) for item in value]
    if kind == "map":
        return {hashed(str(key)): masked(item, data_type.valueType, secret, name) for key, item in value.items()}
    if secret is None or name in secret or kind in ("string", "varchar", "char", "binary", "variant"):
        return hashed(value if isinstance(value, str) else json.dumps(value))
    return value


def _time(value: Any) -> str | None:
    if isinstance(value, dict):  # a window: from, to
        return " to ".join(str(_time(part)) for part in value.values())
    text = str(value)
    return text.replace(".000000Z", "Z") if value is not None else None
