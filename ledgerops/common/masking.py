"""Removes what may be private from a text: values of rows, credentials, addresses.

Exceptions quote the row that they failed on (`card number 4111-1111-1111-1111 is bad`) and the settings of clients.
What locates the fault stays: exception classes, error conditions, code lines, source partitions and offsets, files.
"""

from __future__ import annotations

import re
from functools import lru_cache

MASK = "<masked>"
MAX_LENGTH = 60_000  # characters; a longer text is cut first
MAX_KEPT_DIGITS = 11  # in a row: offsets have fewer, card numbers more

EXCEPTION_LENGTH = 500  # characters of a line
MAX_READ_LENGTH = 1_000  # characters of a line that are masked; it is cut to EXCEPTION_LENGTH after that
EXCEPTION_LINES = 25  # from the beginning, and as many from the end: there is what was raised first
FRAME = re.compile(r"\t(at |\.\.\. \d+ )")  # Java indents its frames by a tab, Python by blanks
# "No space left on device" names no place; the first of these frames does: it was the checkpoint
CHECKPOINT = re.compile(r"\tat .*\b(HDFSMetadataLog|CheckpointFileManager|RocksDBFileManager|HDFSBackedStateStore)\b")

# Repetitions are bounded: the time that a text takes must grow with its length only.
_VALUE = r"""(?:"[^"\n]*"|'[^'\n]*'|(?:(?:bearer|basic|digest)\s{1,3})?[^\s,;]+)"""
_SECRETS = (
    (re.compile(r"(sasl\.jaas\.config\s{0,3}[=:]\s{0,3})[^\n]+", re.I), rf"\1{MASK}"),
    (re.compile(r"(LoginModule\s{1,3}(?:required|requisite|sufficient|optional)\b)[^\n]*", re.I), rf"\1 {MASK}"),
    (
        re.compile(
            r"((?:password|passwd|passphrase|pwd|secret|token|credential|authorization|signature"
            r"|(?:api|access|account|private|shared|encryption)[ _.-]?key)"
            rf"[\w.-]{{0,60}}[\"']?\s{{0,3}}(?:[=:]|\b(?:is|was)\b)\s{{0,3}}){_VALUE}",
            re.I,
        ),
        rf"\1{MASK}",
    ),
    (re.compile(r"://[^/\s@]{1,300}@"), f"://{MASK}@"),
    (re.compile(r"\?[\w.%~+-]{1,80}=[^\s\"')\]]*"), f"?{MASK}"),
    (re.compile(r"\b(Bearer|Basic)\s{1,3}(?=[A-Za-z+/_.~-]{0,200}[\d=])[\w+/=.~-]{8,}", re.I), rf"\1 {MASK}"),
    (re.compile(r"\beyJ[\w-]{5,}\.[\w.-]+"), MASK),  # JSON web tokens
)
_PARTS = re.compile(
    r"""
    (?P<kept>
        File\ "[^"\n]{1,300}",\ line\ \d+
      | \(\w{1,100}\.(?:scala|java|kt|py):\d{1,6}\)
      | \bSQLSTATE:?\ \w{5}\b
      | \b(?:No\ module\ named|cannot\ import\ name|has\ no\ attribute|unexpected\ keyword\ argument)
        \ '[A-Za-z_][\w.]{0,80}'
      | \bname\ '[A-Za-z_]\w{0,80}'\ is\ not\ defined
      | \b(?:partition|TopicPartition)\W{1,3}[\w.]{1,80}(?:-[\w.]{1,80}){0,8}-\d{1,4}\b
      | \boffsets?\W{1,3}(?:(?:is|in)\s)?\[?\d+(?:,\ ?\d+\))?
      | \bwas\ changed\ from\ \d+\ to\ \d+
      | \bwas\ \d+\ but\ consumer\ reset\ to\ \d+
      | \bin\ range\ \[\d+,\ ?\d+\)
    )
  | (?P<file>\b(?:file|s3[an]?|gs|abfss?|hdfs|dbfs|wasbs?):/+[^\s,;'"\])]+)
  | (?P<quoted>"[^"\n]*"? | (?<!\w)[bBuUrRfF]{0,2}'(?:[^'\n]*'|[^'\n]{100,}$) | “[^”\n]*” | «[^»\n]*»)
  | (?P<address>
        [\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}
      | \b\d{1,3}(?:\.\d{1,3}){3}\b
      | \b(?:[0-9a-f]{1,4}:){1,7}(?::[0-9a-f]{1,4}){1,6}\b | \b(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}\b
    )
  | (?P<opaque>\b(?=(?:[A-Za-z_-]{0,64}\d){2})(?=[\d_-]{0,64}[A-Za-z])[\w-]{24,})
  | (?P<number>\d(?:[,\ -]?\d){3,})
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_OPENING, _CLOSING = "\"'“«", "\"'”»"
_LONG_NUMBER = re.compile(rf"\d{{{MAX_KEPT_DIGITS + 1},}}")
_PARTITION_VALUE = re.compile(r"(?<==)[^/]*\d{4}[^/]*")  # a directory such as customer=4711


def mask(text: str, host: str | None = None) -> str:
    """The text without numbers of four and more digits, quoted strings, addresses, tokens and passwords.

    `host` is a name or address that is no secret: it stays, with a port that follows it. Masking a masked text changes
    nothing. At most MAX_LENGTH characters are returned.
    """
    text = text[:MAX_LENGTH]
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    parts = _PARTS if not host else _parts_but(host)
    return parts.sub(_replaced, text)


@lru_cache(maxsize=64)
def _parts_but(host: str) -> re.Pattern[str]:
    known = rf"(?P<host>(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)(?::\d{{1,5}}\b)?)"
    return re.compile(f"{known}|{_PARTS.pattern}", _PARTS.flags)


def _replaced(found: re.Match[str]) -> str:
    text = found[0]
    match found.lastgroup:
        case "host":
            return text
        case "kept":
            return _LONG_NUMBER.sub(MASK, text)
        case "file":
            return _PARTITION_VALUE.sub(MASK, _LONG_NUMBER.sub(MASK, text))
        case "quoted":
            opening = next(index for index, letter in enumerate(text) if letter in _OPENING)
            closing = text[-1] if len(text) > opening + 1 and text[-1] in _CLOSING else ""
            return f"{text[: opening + 1]}{MASK}{closing}"
    return MASK


def short_exception(exception: str, masked: bool = True) -> str:
    """The informative lines of an exception, `masked`.

    Java's stack trace is 10 kB and more; kept are its first line, the causes, the traceback of Python code that raised,
    and of the frames the first in a checkpoint.
    """
    lines = exception.encode("utf-8", "replace").decode("utf-8").strip().splitlines()
    frame = next((index for index, line in enumerate(lines) if CHECKPOINT.match(line)), None)
    kept = [line for index, line in enumerate(lines) if index == frame or not FRAME.match(line)]
    kept = [*kept[:EXCEPTION_LINES], *kept[EXCEPTION_LINES:][-EXCEPTION_LINES:]]
    text = "\n".join(line[:MAX_READ_LENGTH] for line in kept)
    text = mask(text) if masked else text
    return "\n".join(line[:EXCEPTION_LENGTH] for line in text.splitlines()) or "unknown"
