"""Records as our own writers make them, which need not be parsed: `{"a":"x","b":1.00}`.

All fields are there in their order, without blanks, escapes, commas in a text or further fields. One regular expression
recognises such a record, and no other: what matches is a row by the rules of `decoding`. Then it is cut at its commas.
"""

import re
from collections.abc import Iterator, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from ledgerops.ledger.plan.poison import MAX_VALUE_BYTES

NULLABLE = frozenset({"operation"})
QUOTED = ("STRING", "TIMESTAMP")
# Characters of a text: none that JSON escapes, and no comma. Java looks a class of single ASCII characters up in a
# table; negated classes and ranges take up to ten times as long. Bytes that are not UTF-8 become U+FFFD in Java.
ASCII = "".join(re.escape(chr(code)) for code in range(0x20, 0x7F) if chr(code) not in '",\\')
OTHER = "".join(f"\\x{code:02X}" for code in range(0x20))
PLAIN_TEXT = rf'[{ASCII}]*(?:[^\x00-\x7E\uFFFD][^",\\{OTHER}\uFFFD]*)?'
# Days that there are. The parts are: up to the 28th, the 29th and 30th, the 31st, the 29th of February of a leap year.
PLAIN_DAY = (
    r"(?:[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
PLAIN_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])"
PLAIN = {
    "STRING": PLAIN_TEXT,
    "TIMESTAMP": f"{PLAIN_DAY}T{PLAIN_TIME}",
    "INT": "-?(?:0|[1-9][0-9]{0,8})",
    "DECIMAL(18,2)": r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,2})?",
}


def is_short() -> Column:
    """Whether a value is read at all; null without one."""
    return F.octet_length("value") <= MAX_VALUE_BYTES


def is_plain(columns: Mapping[str, str], keyed: bool) -> Column:
    """Whether a record is a row, as our own writers make it, so that it need not be parsed; null without a value."""
    plain = is_short() & F.col("value").cast("string").rlike(form(columns))
    return F.col("key").isNotNull() & plain if keyed else plain


def form(columns: Mapping[str, str]) -> str:
    """The regular expression of Java that a plain record matches: `{"a":"x","b":1.00}`."""
    values = []
    for name, kind in columns.items():
        value = f'"{PLAIN[kind]}"' if kind in QUOTED else PLAIN[kind]
        values.append(f'"{name}":' + (f"(?:{value}|null)" if name in NULLABLE else value))
    return r"\A\{" + ",".join(values) + r"\}\z"


def frames(columns: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Each column with what stands before and behind its value in its piece of a plain record, which is cut at commas.

    `{"a":"x","b":1.00}` has the pieces `{"a":"x"` and `"b":1.00}`.
    """
    last = list(columns)[-1]
    for place, (name, kind) in enumerate(columns.items()):
        quote = '"' if kind in QUOTED else ""
        yield name, f'{"" if place else "{"}"{name}":{quote}', f"{quote}{'}' if name == last else ''}"


def values(columns: Mapping[str, str], pieces: Column, in_utc: bool = False) -> list[Column]:
    """The columns of a row, from the pieces of its record. Spark computes only those that a job reads.

    `in_utc`: times without a zone are in UTC to the session. Spark takes a zone apart by regular expressions, for each
    time that has one, so it is left out there.
    """
    found = []
    for place, (name, lead, end) in enumerate(frames(columns)):
        piece = F.get(pieces, F.lit(place))
        value = _cut(piece, lead, end)
        if columns[name] != "STRING":
            value = value.try_cast(columns[name])
        if columns[name] == "TIMESTAMP" and in_utc:
            zone = f"Z{end}"
            value = F.when(piece.endswith(zone), _cut(piece, lead, zone).try_cast("timestamp")).otherwise(value)
        found.append((F.when(piece.endswith(end), value) if name in NULLABLE else value).alias(name))
    return found


def _cut(piece: Column, lead: str, end: str) -> Column:
    raw = piece.cast("binary")  # of which a part is taken without looking at each character
    return F.substring(raw, F.lit(len(lead) + 1), F.octet_length(raw) - len(lead + end)).cast("string")
