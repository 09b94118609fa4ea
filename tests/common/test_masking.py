import re
import time

import pytest

from ledgerops.common.masking import mask, short_exception
from ledgerops.common.secret_forms import FORMS
from tests.paths import ROOT
from tests.tables import cases

ROW = re.compile(r"^\|.*`.*\|$", re.M)


def _rows(heading):
    """The rows of a table of docs/masking.md, each a list of its cells without marks of code."""
    page = (ROOT / "docs/masking.md").read_text(encoding="utf-8")
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in ROW.findall(section)]
    return [[cell.strip("`") for cell in row] for row in rows]


CREDENTIALS = _rows("Credentials")
MASKED = [
    *[(text, shown) for *_, text, shown in CREDENTIALS + _rows("Values and addresses")],
    ("account 12345678 of 4111 1111 1111 1111", "account <masked> of <masked>"),
    ('ValueError("card 4111 is bad")', 'ValueError("<masked>")'),
    ("KeyError: b'John'", "KeyError: b'<masked>'"),
    ("KeyError: 'DE89370400440532013000'", "KeyError: '<masked>'"),
    ("no such row: '/srv/x y'", "no such row: '<masked>'"),
    ("[Errno 2] No such file: '/in/customer=4711/a.csv'", "[Errno 2] No such file: '/in/customer=<masked>/a.csv'"),
    ("TID 7, 10.0.0.12 executor 3", "TID 7, <masked> executor 3"),
    ("no route to fe80::1:2", "no route to <masked>"),
    ("ssl.keystore.password=hunter2", "ssl.keystore.password=<masked>"),
    ("jdbc:postgresql://u:p@db/x?user=a&password=b failed", "jdbc:postgresql://<masked>@db/x?<masked> failed"),
    ("offset 4111111111111111 is bad", "offset <masked> is bad"),
    ("pass=hunter3 jdbc:x Map(password -> hunter2)", "pass=<masked> Map(password -> <masked>)"),
    ('the return value of "John Smith (4711)"', 'the return value of "<masked>"'),
    ("the key 'hunter2' of password: 'a', user: 'b'", "the key 'hunter2' of password: <masked>, user: 'b'"),
]
KEPT = [
    *[text for _, text in _rows("What stays")],
    "Offsets out of range for partition ledger-2024-0",
    "column `amount` cannot be resolved; did you mean `amounts`",
    "org.apache.spark.SparkException: Task failed while writing rows.",
    "Lost task 0.0 in stage 12.0",
    "Spark 4.2.0 cannot read it; it's an error of the file",
    "file:/out/part-00012-7b1c0d3e-c000.snappy.parquet",
    "time format '%Y-%m-%d', pattern 'yyyy-MM-dd'",
    "bypass=3, compass = north, passed: 12, passengers=2",
    "password is required, token is not set",
    "ssl.key.password = [hidden], sasl.password = null",
    "AuthenticationException: Unable to obtain password from user",
    "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
    "Expecting ',' delimiter",
    'Cannot invoke "java.util.Map.get(Object)" because "this.cache" is null',
]


@pytest.mark.parametrize(("text", "expected"), MASKED, ids=[text for text, _ in MASKED])
def test_what_may_belong_to_somebody_is_masked_and_masking_twice_changes_nothing(text, expected):
    assert mask(text) == expected == mask(expected)


@pytest.mark.parametrize("text", KEPT)
def test_what_locates_the_fault_is_kept(text):
    assert mask(text) == text


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_each_form_finds_its_example_in_the_documentation(form):
    examples = [text for name, _, text, _ in CREDENTIALS if name == form.name]
    assert examples and all(form.pattern.search(text) for text in examples)


def test_the_documentation_has_no_form_that_is_not_looked_for():
    assert {name for name, *_ in CREDENTIALS} == {form.name for form in FORMS}


def test_the_code_of_an_application_stays_in_an_exception():
    traceback = (
        "Traceback (most recent call last):\n"
        '  File "/opt/spark/python/pyspark/worker.py", line 1250, in process\n    serializer.dump_stream(out)\n'
        '  File "/opt/app/consumer.py", line 9, in amount_of\n'
        "    return float(row['amount'])\nKeyError: 'amount'"
    )

    assert short_exception(traceback) == traceback


PYTHON = 'py4j.Py4JException: Traceback (most recent call last):\n  File "a.py", line 1\nValueError: no'
CAUSED = "Caused by: java.io.IOException: full"
LOG = "\tat org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog.{}(Log.scala:1)"
FRAMES = ["\tat java.io.File.write(File.java:1)", LOG.format("write"), LOG.format("add")]
BESIDE = "Suppressed: org.apache.spark.util.Utils$OriginalTryStackTraceException: Full stacktrace of original caller"
LOCK = "Thread holding the lock has trace: "
QUOTED = [
    "app//org.apache.spark.rdd.RDD.computeOrReadCheckpoint(RDD.scala:374)",
    "app//org.apache.spark.executor.Executor$TaskRunner$$Lambda$1234/0x00007f7bed1c80b8.apply(Unknown Source)",
    "java.base@17.0.15/java.lang.Thread.run(Thread.java:840) SQLSTATE: 58030",
]
LINES = [f"line {number}" for number in range(1000)]


@cases(
    "exception, kept",
    (
        "what Python raised and what Java was caused by",
        [PYTHON, "", "\tat py4j.Some.method(Some.java:1)", "\t... 12 more", CAUSED],
        [PYTHON, "", CAUSED],
    ),
    (
        "no frames of an exception that is kept beside it",
        ["full", f"\t{BESIDE}", "\t\tat java.io.File.write(File.java:1)", "\t\t... 12 more", CAUSED],
        ["full", f"\t{BESIDE}", CAUSED],
    ),
    ("no frames of a thread that a message quotes", [LOCK, *QUOTED], [LOCK]),
    ("the first frame in a checkpoint", ["full", *FRAMES], ["full", FRAMES[1]]),
    ("the beginning and the end of a long text", LINES, [*LINES[:25], *LINES[-25:]]),
    ("a quotation that is cut", [f"ValueError: '{'Smith ' * 1000}'"], ["ValueError: '<masked>"]),
)
def test_what_is_kept_of_an_exception(exception, kept):
    assert short_exception("\n".join(exception)) == "\n".join(kept)


PARTS = [
    "a", "a-", "1", '"', "'", "password ", "a.b@", "://", "?a=", "1:", "offset ", "eyJ", "(a", "password=a ",
    "--pass ", "-----BEGIN PRIVATE KEY-----", "a=b,", "&a=", "\\'", "Key (", "VALUES (", "a:b", "<password>", "curl ",
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_the_time_grows_with_the_length_only(part):
    def cost(length):
        text = (part * length)[:length]
        began = time.process_time()
        mask(text)
        return time.process_time() - began

    # a square would be a hundred times as much
    assert min(cost(50_000) for _ in range(3)) < 30 * min(cost(5_000) for _ in range(5)) + 0.05


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lost on ip-10-0-0-12.internal", "lost on ip-10-0-0-12.internal"),
        ("ip-10-0-0-12.internal:7078 of 10.0.0.1:7077", "ip-10-0-0-12.internal:7078 of <masked>:<masked>"),
        ("row 4111 on ip-10-0-0-12.internal.", "row <masked> on ip-10-0-0-12.internal."),
        ("ip-10-0-0-12.internal.example", "ip-<masked>.internal.example"),
        ("xip-10-0-0-12.internal", "xip-<masked>.internal"),
        ("password=ip-10-0-0-12.internal", "password=<masked>"),
        ("value 'of ip-10-0-0-12.internal, John'", "value '<masked>'"),
    ],
)
def test_a_host_that_is_no_secret_stays_and_nothing_around_it(text, expected):
    assert mask(text, "ip-10-0-0-12.internal") == expected
    assert mask(text, None) == mask(text, "")
