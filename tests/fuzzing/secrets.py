"""Mutates credentials and puts them into exceptions: does any part of one get through the masking?

    python -m tests.fuzzing.secrets --secrets 1000000

A secret is 8 to 60 random characters, written in one of the forms of `docs/masking.md`; its field, spacing, case and
surroundings vary. It got through when eight characters of it in a row are still there. Prints how many did, by form.
Exit code: 0 when none did, 1 otherwise. The same seed gives the same secrets.
"""

import json
import random
import string
import sys
from collections import Counter
from collections.abc import Callable
from string import Template

from ledgerops.common.masking import mask, short_exception
from tests.fuzzing import options

SHOWN = 10  # of those that got through
PART = 8  # characters of a secret in a row that must not be there
ALNUM = string.ascii_letters + string.digits
BASE64 = ALNUM + "+/"
PLAIN = ALNUM + "!#$%^*_+-.~/"  # of a value without quotes
WORD = ALNUM + "!#$%^*_+-.~"
ODD = PLAIN + " ,;:&@()[]{}<>|=?"
FIELDS = (
    "password", "passwd", "passphrase", "pwd", "pass", "secret", "token", "client_secret", "api_key", "apiKey",
    "api-key", "access.key", "fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key", "ssl.keystore.password",
    "ssl.key.password", "DB_PASS", "dbPassword", "dbPass", "auth_token", "AccountKey", "SharedAccessKey",
    "sharedAccessSignature", "private_key", "aws_secret_access_key", "spark.authenticate.secret", "credentials",
    "authToken", "encryptionKey", "sas.token", "refresh_token", "id_token", "clientKey", "service_key", "psk",
    "userPassword", "PGPASSWORD", "signature",
)  # fmt: skip
IS = ("=", " = ", ":", ": ", " : ", " -> ", "->", "=>", " => ", ":=", " := ", "==", "= ")
BEFORE = (
    "", "java.sql.SQLException: ", "Caused by: x.y.AuthException: ", "ValueError: ", "bad options: ", "(",
    "{user=bob, ", "Map(user -> bob, ", "[", "url=jdbc:postgresql://db/x, ", "line 3: ", "\t", "user=bob;", "# ",
    "failed with ",
)  # fmt: skip
AFTER = (
    "", ")", "}", ", user=bob", "; ssl=true", ", dbtable -> t)", "\n\tat x.y.Z.f(Z.java:12)", "\nCaused by: more",
    ", retries", ". Check it.", " user=bob", ")]", '"', "'", "}}",
)  # fmt: skip


def secret(rng: random.Random, alphabet: str, low: int = 8, high: int = 60) -> str:
    """Random characters that neither begin nor end with what may belong to the text around it."""
    inner = "".join(rng.choice(alphabet) for _ in range(rng.randint(low, high) - 2))
    return rng.choice(ALNUM) + inner + rng.choice(ALNUM)


def field(rng: random.Random) -> str:
    """The name of a field: one of FIELDS, in any case, with something before it."""
    name = rng.choice(FIELDS)
    name = rng.choice((name, name, name.upper(), name.lower(), name.title()))
    return rng.choice(("", "", "", "spark.", "my_", "x-", "option.")) + name


def _odd(rng: random.Random) -> tuple[str, str]:
    """A value that has blanks and punctuation without quotes, up to the end of its line."""
    value = " ".join(secret(rng, PLAIN, 4, 12) for _ in range(rng.randint(2, 4)))
    return value, field(rng) + rng.choice(("=", " = ", "->", ": ")) + value + rng.choice(("", "\n", ")"))


def _quoted(rng: random.Random) -> tuple[str, str]:
    value, quote = secret(rng, ODD + "\"'\\"), rng.choice("\"'")
    escaped = value.replace("\\", "\\\\").replace(quote, "\\" + quote)
    name = rng.choice(("{0}", "'{0}'", '"{0}"', "conf['{0}']", 'conf["{0}"]')).format(field(rng))
    return escaped, f"{name}{rng.choice(IS)}{quote}{escaped}{quote}"


def _json(rng: random.Random) -> tuple[str, str]:
    value = secret(rng, ODD)
    text = json.dumps({"user": "bob", field(rng): value, "n": 1}, separators=rng.choice(((",", ":"), (", ", ": "))))
    return value, json.dumps(text)[1:-1] if rng.random() < 0.3 else text


def _header(rng: random.Random) -> tuple[str, str]:
    value = secret(rng, ALNUM + "-_.~+/=")
    scheme = rng.choice(("Token ", "Bearer ", "Basic ", "Digest ", "ApiKey ", "", "Negotiate "))
    name = rng.choice(
        ("Authorization", "authorization", "Proxy-Authorization", "X-Api-Key", "X-Auth-Token", "Cookie", "Set-Cookie")
    )
    scheme = scheme if "uth" in name else rng.choice(("", "session=")) if "ookie" in name else ""
    text = f"{scheme}{value}"
    return value, rng.choice(
        (
            f"{name}: {text}",
            f"curl -H '{name}: {text}' http://h",
            f"{{'{name}': '{text}', 'a': 'b'}}",
            f'"{name}":"{text}"',
        )
    )


def _pem(rng: random.Random) -> tuple[str, str]:
    lines = ["".join(rng.choice(BASE64) for _ in range(64)) for _ in range(rng.randint(2, 30))]
    kind = rng.choice(("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "))
    newline = rng.choice(("\n", "\n", "\\n", " "))
    text = newline.join((f"-----BEGIN {kind}PRIVATE KEY-----", *lines, f"-----END {kind}PRIVATE KEY-----"))
    return rng.choice(lines), text


def _vendor(rng: random.Random) -> tuple[str, str]:
    def of(alphabet: str, length: int) -> str:
        return "".join(rng.choice(alphabet) for _ in range(length))

    upper = string.ascii_uppercase + "234567"
    value = rng.choice(
        (
            rng.choice(("AKIA", "ASIA", "ABIA", "ACCA", "AROA")) + of(upper, 16),
            f"gh{rng.choice('pousr')}_" + of(ALNUM, 36), "github_pat_" + of(ALNUM + "_", 82),
            "glpat-" + of(ALNUM + "-_", 20), f"xox{rng.choice('bap')}-" + of(ALNUM + "-", 40),
            "sk_live_" + of(ALNUM, 24), "AIza" + of(ALNUM + "-_", 35), "ya29." + of(ALNUM + "-_", 60),
            "sk-" + of(ALNUM, 48), "dapi" + of("0123456789abcdef", 32), "hvs." + of(ALNUM, 24),
            "SG." + of(ALNUM, 22) + "." + of(ALNUM, 43), "npm_" + of(ALNUM, 36), "pypi-" + of(ALNUM + "-_", 80),
            "hf_" + of(ALNUM, 34), "eyJ" + of(ALNUM, 20) + "." + "eyJ" + of(ALNUM, 40) + "." + of(ALNUM + "-_", 43),
            of(BASE64, 86) + "==",
        )
    )  # fmt: skip
    return value, rng.choice(("{}", "key={}", "got '{}'", 'invalid: "{}"', "key {} is unknown", "[{}]", "({})")).format(
        value
    )


# by form: the characters of a secret, and what it stands in, with WORDS of which one is taken each time
TEMPLATES = {
    "without quotes": (PLAIN, ("$field$is$secret",)),
    "pair": (PLAIN, ("List((user,bob), ($field,$secret), (dbtable,t))",)),
    "setting": (ODD, ('spark.conf.set("$field", "$secret")',)),
    "argument": (PLAIN, (
        "app.py --$option $secret --user bob", "app.py --$option=$secret --user bob",
        "app.py ['--$option', '$secret'] --user bob", "app.py -D$option=$secret --user bob",
        "app.py --$option '$secret' --user bob",
    )),
    "address": (PLAIN + ":@", ("$scheme://bob:$secret@host.corp:443/path",)),
    "Oracle": (WORD, (
        "jdbc:oracle:thin:scott/$secret@//db:1521/x", "jdbc:oracle:thin:scott/$secret@db:1521:x",
        "jdbc:oracle:oci:scott/$secret@//db:1521/x", "jdbc:oracle:oci:scott/$secret@db:1521:x",
    )),
    "user at host": (WORD, ("cannot reach bob:$secret@host.corp",)),
    "query": (ALNUM + "%-_.~+/=", (
        "https://h/p?sv=2020&$parameter=$secret", "sv=2020-08-04&ss=b&$parameter=$secret&se=x", "/p?$parameter=$secret",
    )),
    "Slack": (ALNUM, ("hooks.slack.com/services/T123/B123/$secret",)),
    "other": (WORD, (
        "<$name>$secret</$name>", "<name>$name</name><value>$secret</value>", "IDENTIFIED BY $secret",
        "IDENTIFIED BY '$secret'", "machine h login bob password $secret", "password is $secret, ok",
        "PASSWORD '$secret'", "curl -u bob:$secret http://h",
        'ScramLoginModule required username="u" password="$secret";',
        "sasl.jaas.config = x required username=u password=$secret;",
    )),
}  # fmt: skip
WORDS = {
    "is": IS,
    "name": FIELDS,
    "option": ("password", "db-password", "token", "api-key", "secret", "client-secret", "auth-token", "pass"),
    "scheme": ("http", "https", "ftp", "sftp", "mongodb+srv", "amqp", "redis", "jdbc:postgresql", "s3a", "smb"),
    "parameter": ("sig", "X-Amz-Signature", "token", "code", "key", "access_token"),
}
FUNCTIONS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "with blanks": _odd, "in quotes": _quoted, "JSON": _json, "header": _header, "private key": _pem, "vendor": _vendor,
}  # fmt: skip
FORMS = (*TEMPLATES, *FUNCTIONS)


def _filled(rng: random.Random, form: str) -> tuple[str, str]:
    alphabet, templates = TEMPLATES[form]
    template, value = rng.choice(templates), secret(rng, alphabet, 24 if form == "Slack" else 8)
    words = {name: rng.choice(some) for name, some in WORDS.items()}
    return value, Template(template).substitute(words, field=field(rng), secret=value)


def case(seed: int, number: int) -> tuple[str, str, str]:
    """The form, the secret, and a text that has it."""
    rng = random.Random(f"{seed}/{number}")
    form = rng.choice(FORMS)
    value, text = FUNCTIONS[form](rng) if form in FUNCTIONS else _filled(rng, form)
    if form == "with blanks":
        return form, value, rng.choice(BEFORE) + text
    after = [each for each in AFTER if not (form == "JSON" and each in ('"', "'"))]
    return form, value, rng.choice(BEFORE) + text + rng.choice(after)


def got_through(value: str, text: str) -> str | None:
    """What is left of the secret after the masking; None when nothing is."""
    for shown in (mask(text), short_exception(text)):
        for start in range(max(1, len(value) - PART + 1)):
            if (part := value[start : start + PART]) in shown:
                return f"{part!r} in {shown!r}"
    return None


def main() -> int:
    args = options(__doc__, secrets=1_000_000)
    tried, through = Counter[str](), Counter[str]()
    for number in range(args.secrets):
        form, value, text = case(args.seed, number)
        tried[form] += 1
        if left := got_through(value, text):
            through[form] += 1
            if through.total() <= SHOWN:
                print(f"{form} {number}: {text!r}\n    {left}", file=sys.stderr)
    for form, count in sorted(tried.items()):
        print(f"{form:<20} {count:>10,} {through[form]:>8,} got through")
    print(f"{'all':<20} {tried.total():>10,} {through.total():>8,} got through")
    return int(bool(through))


if __name__ == "__main__":
    sys.exit(main())
