"""Removes what may be private from a text: values of rows, credentials, addresses.

Exceptions quote the row that they failed on (`card number 4111-1111-1111-1111 is bad`) and the settings of clients.
What locates the fault stays: exception classes, error conditions, types, names of columns, keys and settings, files
and code lines, source partitions and offsets. A text in quotes is a name or a value: by what stands beside it
(`input string: "x"`), and else by what it looks like.
"""

import re
from functools import lru_cache

from ledgerops.common.secret_forms import FORMS, MASK

MAX_LENGTH = 60_000  # characters; a longer text is cut first
MAX_KEPT_DIGITS = 11  # in a row: offsets have fewer, card numbers more
MAX_NAME_DIGITS = 3  # of a name in quotes, in all; what has more is a number of somebody's

EXCEPTION_LENGTH = 500  # characters of a line
MAX_READ_LENGTH = 1_000  # characters of a line that are masked; it is cut to EXCEPTION_LENGTH after that
EXCEPTION_LINES = 25  # from the beginning, and as many from the end: there is what was raised first
# Java indents its frames by tabs, Python by blanks; a message may quote those of a thread, by loader or module
FRAME = re.compile(r"\t+(at |\.\.\. \d+ )|(\w*//|[\w.]+@[\w.+-]+/)\S+\((\w+\.\w+:\d+|Unknown Source|Native Method)\)")
# "No space left on device" names no place; the first of these frames does: it was the checkpoint
CHECKPOINT = re.compile(r"\t+at .*\b(HDFSMetadataLog|CheckpointFileManager|RocksDBFileManager|HDFSBackedStateStore)\b")

# Values of rows that stand in no quotes, each up to where its text goes on.
_VALUES = (
    # PostgreSQL: Key (email)=(x) already exists; Failing row contains (1, x)
    (
        re.compile(r"(\bKey \([^)\n]{1,200}\)=\()[^\n]{1,1000}?(\) (?:already|is |conflicts)|\)?$)", re.M),
        rf"\1{MASK}\2",
    ),
    (re.compile(r"(\bFailing row contains \()[^\n]+", re.I), rf"\1{MASK})"),
    (re.compile(r"(\bVALUES\s{0,3}\()(?:(?! was aborted|\] ?\[)[^\n])+", re.I), rf"\1{MASK})"),  # of an INSERT
    (re.compile(r"(\[parameters: )[^\n]+"), rf"\1{MASK}]"),  # SQLAlchemy
    # Spark: MALFORMED_RECORD_IN_PARSING
    (re.compile(r"(\brecord parsing: )[^\n]*?(\.\s*\n?Parse Mode|$)", re.M), rf"\1{MASK}\2"),
    # Spark: CANNOT_PARSE_JSON_FIELD
    (re.compile(r"(\band the value )[^\n]*?( of the JSON token type|$)", re.M), rf"\1{MASK}\2"),
    (re.compile(r"(\bInvalid UUID string: )\S+"), rf"\1{MASK}"),
)
_QUOTED = r"""(?P<quoted>"[^"\n]*"? | (?<!\w)[bBuUrRfF]{0,2}'(?:[^'\n]*'|[^'\n]{100,}$) | “[^”\n]*” | «[^»\n]*»)"""
_PARTS = re.compile(
    rf"""
    (?P<kept>
        File\ "[^"\n]{{1,300}}",\ line\ \d+
      | \(\w{{1,100}}\.(?:scala|java|kt|py):\d{{1,6}}\)
      | \b(?:invoke|return\ value\ of)\ "[\w$]{{1,80}}(?:\.[\w$<>]{{1,80}}){{1,12}}\([\w$.,\ \[\]]{{0,200}}\)"
      | \bSQLSTATE:?\ \w{{5}}\b
      | \b(?:Client|Server)\ error\ '\d{{3}}\ [A-Za-z\ -]{{1,40}}'
      | \b(?:partition|TopicPartition)\W{{1,3}}[\w.]{{1,80}}(?:-[\w.]{{1,80}}){{0,8}}-\d{{1,4}}\b
      | \boffsets?\W{{1,3}}(?:(?:is|in)\s)?\[?\d+(?:,\ ?\d+\))?
      | \bwas\ changed\ from\ \d+\ to\ \d+
      | \bwas\ \d+\ but\ consumer\ reset\ to\ \d+
      | \bin\ range\ \[\d+,\ ?\d+\)
      | (?<![\d,.-])\d{{1,10}}\ ?(?:ms|milliseconds|seconds|bytes)\b
      | \b(?:format|pattern)\ ['"][A-Za-z%/:.,\ _-]{{1,40}}['"]
    )
  | (?P<file>\b(?:file|s3[an]?|gs|abfss?|hdfs|dbfs|wasbs?):/+[^\s,;'"\])]+)
  | {_QUOTED}
  | (?P<address>
        [\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,8}}
      | \b\d{{1,3}}(?:\.\d{{1,3}}){{3}}\b
      | \b(?:[0-9a-f]{{1,4}}:){{1,7}}(?::[0-9a-f]{{1,4}}){{1,6}}\b | \b(?:[0-9a-f]{{1,4}}:){{7}}[0-9a-f]{{1,4}}\b
    )
  | (?P<opaque>\b(?=(?:[A-Za-z_-]{{0,64}}\d){{2}})(?=[\d_-]{{0,64}}[A-Za-z])[\w-]{{24,}})
  | (?P<number>\d(?:[,\ -]?\d){{3,}})
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_OPENING, _CLOSING = "\"'“«", "\"'”»"
_LONG_NUMBER = re.compile(rf"\d{{{MAX_KEPT_DIGITS + 1},}}")
_PARTITION_VALUE = re.compile(r"(?<==)[^/]*\d{4}[^/]*")  # a directory such as customer=4711

# Beside a text in quotes: what makes it a value of a row.
_BEFORE_VALUE = re.compile(
    r"""(?:\b(?:values?|inputs?|string|literal|entry|records?|row|data|date|time|timestamp|text|bytes?|element|token
              |pars(?:e|ing)|convert(?:ing)?|decode|base\ \d+|string\ to\ \w+|syntax\ for\ type\ [\w\ ]{1,30}
              |column\ \w{1,60}|too\ long|unexpected)[\s:=(]{0,3}
        |=>?\s?|->\s?|["']:\s?)$""",
    re.VERBOSE | re.IGNORECASE,
)
_AFTER_VALUE = re.compile(
    r"\s(?:is\snot\s(?:a\svalid|in\slist|valid)|(?:could|can)(?:not|\snot)\sbe\s(?:parsed|cast|converted|decoded)"
    r"|of\s(?:the\s)?type\b|is\sout\sof\srange|does\snot\smatch)",
    re.IGNORECASE,
)
NEAR_CHARACTERS = 60  # before and after
_NAME = re.compile(r"[A-Za-z_$][\w.$:#-]{0,120}|[^\w\s]{1,3}|")  # of a column, class, setting, topic; or an operator
_TYPE = re.compile(
    r"(?:(?:BOOLEAN|TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL|STRING|BINARY|DATE|TIMESTAMP(?:_NTZ|_LTZ)?|VARIANT|VOID)"
    r"|(?:STRUCT|ARRAY|MAP)<[\w<>(),.:` ]{0,400}>|(?:DECIMAL|CHAR|VARCHAR|TIMESTAMP|TIME)\([\d, ]{1,9}\)"
    r"|INTERVAL [A-Z ]{3,30}|TIMESTAMP WITH(?:OUT)? TIME ZONE)"
)
_PATH = re.compile(
    r"(?:(?:[A-Za-z]:)?[/\\]|\.{1,2}/|~/)?(?:(?:[\w.=@%-]|<masked>){1,200}[/\\])+(?:[\w.=@%-]|<masked>){0,200}"
    r"|[\w-]{1,100}\.[a-z]\w{0,7}"
)
_OPAQUE = re.compile(r"(?=(?:[A-Za-z_.-]{0,64}\d){2})[\w.-]{24,}")


def mask(text: str, host: str | None = None) -> str:
    """The text without numbers of four and more digits, quoted values, addresses, tokens and passwords.

    `host` is a name or address that is no secret: it stays, with a port that follows it. Masking a masked text changes
    nothing. At most MAX_LENGTH characters are returned.
    """
    text = text[:MAX_LENGTH]
    for form in FORMS:
        text = form.pattern.sub(form.replacement, text)
    for pattern, replacement in _VALUES:
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
            return _masked_path(text)
        case "quoted":
            return _masked_quote(found)
    return MASK


def _masked_path(path: str) -> str:
    return _PARTITION_VALUE.sub(MASK, _LONG_NUMBER.sub(MASK, path))


def _masked_quote(found: re.Match[str]) -> str:
    text = found[0]
    opening = next(index for index, letter in enumerate(text) if letter in _OPENING)
    closing = text[-1] if len(text) > opening + 1 and text[-1] in _CLOSING else ""
    inner = text[opening + 1 : len(text) - len(closing)]
    before = found.string[max(0, found.start() - NEAR_CHARACTERS) : found.start()]
    after = found.string[found.end() : found.end() + NEAR_CHARACTERS]
    is_value = "b" in text[:opening].lower() or _BEFORE_VALUE.search(before) or _AFTER_VALUE.match(after)
    if closing and (_TYPE.fullmatch(inner) or (not is_value and _is_name(inner))):
        return text
    if closing and not is_value and _PATH.fullmatch(inner):
        return f"{text[: opening + 1]}{_masked_path(inner)}{closing}"
    return f"{text[: opening + 1]}{MASK}{closing}"


def _is_name(text: str) -> bool:
    """Whether a text in quotes may name a thing of the program: a column, a key, a class, a setting."""
    digits = sum(letter.isdigit() for letter in text)
    return digits <= MAX_NAME_DIGITS and bool(_NAME.fullmatch(text)) and not _OPAQUE.fullmatch(text)


def short_exception(exception: str, masked: bool = True) -> str:
    """The informative lines of an exception, `masked`. Java's stack trace is 10 kB and more; kept are its first line,
    the causes, the traceback of Python code that raised, and of the frames the first in a checkpoint."""
    lines = exception.encode("utf-8", "replace").decode("utf-8").strip().splitlines()
    frame = next((index for index, line in enumerate(lines) if CHECKPOINT.match(line)), None)
    kept = [line for index, line in enumerate(lines) if index == frame or not FRAME.match(line)]
    kept = [*kept[:EXCEPTION_LINES], *kept[EXCEPTION_LINES:][-EXCEPTION_LINES:]]
    text = "\n".join(line[:MAX_READ_LENGTH] for line in kept)
    text = mask(text) if masked else text
    return "\n".join(line[:EXCEPTION_LENGTH] for line in text.splitlines()) or "unknown"
