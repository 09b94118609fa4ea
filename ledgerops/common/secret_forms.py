"""The forms in which texts carry credentials: what stands before a value, or what the value looks like.

`docs/masking.md` shows an example of each, and where it is described. The names of fields follow
detect-secrets' keyword detector, the tokens of vendors gitleaks' default rules; the other forms are how Spark, Hadoop,
Kafka and JDBC drivers print their settings.
"""

import re
from typing import NamedTuple

MASK = "<masked>"


class Form(NamedTuple):
    """One form: its name in the documentation, what is found and what it becomes."""

    name: str
    pattern: re.Pattern[str]
    replacement: str


# Repetitions are bounded: the time that a text takes must grow with its length only.
# A word that is long enough to stand in any name; a short one stands alone: `DB_PASS`, `dbPass`, not `passenger`.
_LONG = (
    r"password|passwd|passphrase|passcode|contrase[nñ]a|secret|(?-i:(?<!\$Invalid))token|credential|authorization|signature"
    r"|(?:api|app|auth|access|account|private|priv|shared|service|client|database|db|encryption|master|storage)"
    r"[ _.-]?key"
)
_SHORT = (
    r"(?<![A-Za-z])(?:pw|sig|creds?|auth|psk|cookie|pass(?=[A-Z_.-]))(?![a-z])|(?<=[a-z])(?-i:Pass|Pwd|Auth)(?![a-z])"
    r"|(?<!by)(?<!com)(?<!sur)(?<!tres)(?:pass|pwd)(?![A-Za-z])"
)
# an exception's class and a line of code are no fields
_NO_FIELD = r"(?![\w.$-]{0,60}(?:(?:Exception|Error|InvalidToken)\b|\.(?:java|scala|kt|py)\b))"
_FIELD = rf"(?:{_LONG}|{_SHORT}){_NO_FIELD}[\w.-]{{0,60}}"
_CLOSED = r"""(?:\\?["'`\]]){0,2}"""  # quotes and a bracket that end the name
_IS = r"[^\S\n]{0,8}(?::=|[!=]?={1,2}>?|:|->|%3[AD])[^\S\n]{0,8}+"
_NOTHING = r"(?!(?:null|none|true|false|undefined|\[hidden\]|\*{3,}|<masked>)(?:[\s\"'`\\)\]},;.]|$))"
_QUOTED = (
    r"""\\"(?:(?!\\")[^\n])*(?:\\")?|\\'(?:(?!\\')[^\n])*(?:\\')?"""
    r"""|[bBrRuUfF]{0,2}"(?:\\.|[^"\\\n])*"?|[bBrRuUfF]{0,2}'(?:\\.|[^'\\\n])*'?"""
)
# Without quotes a value may have blanks and commas. It ends before the next field, before a comma or a full stop with
# a blank, and where brackets or quotes close.
_END = (
    r"""\s{0,2}[,;&|]\s{0,2}["'\\]{0,2}[\w.-]{1,60}["'\\]{0,2}\s{0,2}(?:[=:]|->)"""
    r"""|\s{1,2}(?:\w{1,30}[(\[{])?["']?[\w.-]{1,60}["']?\s{0,2}(?:=|->)"""
    r"""|[,;.]\s|(?<![=-])["'`)\]}>\\]{1,6}(?:[\s,;.:]|$)|[,;.]?$"""
)
_UNQUOTED = rf"(?:(?!{_END})[^\n]){{1,2000}}"
_VALUE = rf"(?:{_QUOTED}|\{{[^}}\n]*\}}?|\([^)\n]*\)?|{_UNQUOTED})"
_WORD = rf"(?:{_QUOTED}|[^\s,;]{{1,500}})"
_SOME = (
    r"(?!(?:not|missing|required|empty|invalid|wrong|incorrect|null|none|expired|an?|the|too)(?:\s|[,;.]\s|[,;.]?$))"
)


def _form(name: str, pattern: str, replacement: str = MASK, flags: int = re.IGNORECASE) -> Form:
    return Form(name, re.compile(pattern, flags | re.MULTILINE), replacement)


# the order matters: a form that takes more comes first
FORMS = (
    _form("private key", r"-----BEGIN [A-Z \d]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?!-----END)[\w\s+/=:,.\\-]){0,20000}(?:-----END [A-Z \d]{0,60}-----)?"),
    _form("rest of a private key",
        r"^\s{0,8}(?=[A-Za-z\d+/]{0,76}[A-Z])(?=[A-Za-z\d+/]{0,76}[a-z])[A-Za-z\d+/]{60,76}={0,2}$", flags=0),
    _form("JSON web token", r"\beyJ[\w-]{5,}\.[\w.-]+", flags=0),
    _form("key of AWS", r"\b(?:A3T[A-Z\d]|A[BGIKNRS][A-Z]A|ACCA)[A-Z\d]{12,}\b", flags=0),
    _form("token of a vendor",
        r"\b(?:gh[pousr]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|soat|oas)-|xox[abeoprs]-|xapp-|[rs]k_(?:live|test|prod)_"
        r"|AIza|ya29\.|sk-|dapi(?=[\da-f]{32})|hv[bs]\.|SG\.|npm_|pypi-|hf_|do[opr]_v1_|glsa_|glc_|sq0[a-z]{3}-"
        r"|shp(?:at|ca|pa|ss)_|lin_api_|EAAA)[\w.=-]{10,}", flags=0),
    _form("webhook", r"(\bhooks\.slack\.com/|\bdiscord(?:app)?\.com/api/webhooks/)[\w/-]+", rf"\1{MASK}"),
    _form("bot of Telegram", r"\b\d{5,16}:A[\w-]{34}\b", flags=0),
    _form("key of a storage account", r"(?<![\w+/])[A-Za-z\d+/]{86}==", flags=0),
    _form("JAAS settings", r"(sasl\.jaas\.config\s{0,3}(?:[=:]|->)\s{0,3})[^\n]+", rf"\1{MASK}"),
    _form("JAAS login", r"(LoginModule\s{1,3}(?:required|requisite|sufficient|optional)\b)[^\n]*", rf"\1 {MASK}"),
    _form("address with a user", r"""://(?:[^\s"'<>]|<masked>){0,600}@""", f"://{MASK}@"),
    _form("Oracle user", r"(\bjdbc:oracle:\w{1,10}:)[^\s@]{1,200}@", rf"\1{MASK}@"),
    _form("user and password before a host",
        r"(?<![\w/.:@])(?!jdbc:)[\w.-]{1,64}[:/](?!<masked>@)(?:[^\s@/,;\"'()<>]|<masked>){1,100}@(?=[\w\[/])",
        f"{MASK}@"),
    _form("header", r"\b((?:proxy-)?authorization|(?:set-)?cookie2?|x-[\w-]{0,40}(?:token|key|secret|auth|signature))"
        rf"({_CLOSED}{_IS}){_NOTHING}(?:{_QUOTED}|[^\n\"']{{1,2000}})", rf"\1\2{MASK}"),
    _form("query of an address", r"\?[\w.%~+-]{1,80}=[^\s\"')\]\\]*", f"?{MASK}"),
    _form("fields of a query", r"(&[\w.%~+-]{1,80}=)[^\s\"'&)\]\\]+", rf"\1{MASK}"),
    _form("XML element",
        rf"(<[\w.:-]{{0,60}}(?:{_FIELD})>|<name>[\w.:-]{{0,80}}(?:{_FIELD})</name>\s{{0,20}}<value>)(?:[^<]|<masked>){{1,2000}}",
        rf"\1{MASK}"),
    _form("argument", rf"(--[\w-]{{0,40}}(?:{_FIELD})[\"']?(?:\s{{1,3}}+|,\s{{0,3}}+)){_NOTHING}{_WORD}", rf"\1{MASK}"),
    _form("user of curl", r"(\bcurl\b[^\n]{0,300}?\s-u\s{0,3})" + _WORD, rf"\1{MASK}"),
    _form("pair",
        rf"(\(\s?[\"']?[\w.-]{{0,80}}?(?:{_FIELD})[\"']?\s{{0,3}},\s{{0,3}}+){_NOTHING}{_VALUE}", rf"\1{MASK}"),
    _form("field and value", rf"((?:{_FIELD}){_CLOSED}{_IS}){_NOTHING}{_VALUE}", rf"\1{MASK}"),
    _form("field and quoted value", rf"((?:{_FIELD})\s{{1,3}}+){_NOTHING}(?:{_QUOTED})(?<=[\"'])", rf"\1{MASK}"),
    _form("identified by", rf"(\bidentified\s{{1,3}}by\s{{1,3}}){_WORD}", rf"\1{MASK}"),
    _form("netrc", rf"(\blogin\s{{1,3}}\S{{1,100}}\s{{1,3}}password\s{{1,3}}){_WORD}", rf"\1{MASK}"),
    _form("sentence", rf"((?:{_FIELD})\s{{1,3}}(?:is|was)\s{{1,3}}){_SOME}{_WORD}", rf"\1{MASK}"),
    _form("scheme of a header",
        r"\b(Bearer|Basic)\s{1,3}(?=[A-Za-z+/_.~-]{0,200}(?:[\d=]|(?-i:[a-z][A-Z])))[\w+/=.~-]{8,}", rf"\1 {MASK}"),
)  # fmt: skip
