import time

import pytest

from ledgerops.common.masking import mask

MASKED = [
    ("ValueError: card number 4111-1111-1111-1111 is bad", "ValueError: card number <masked> is bad"),
    ("account 12345678 of 4111 1111 1111 1111", "account <masked> of <masked>"),
    ('ValueError("card 4111 is bad")', 'ValueError("<masked>")'),
    ("could not convert string to float: 'John Smith'", "could not convert string to float: '<masked>'"),
    ("KeyError: b'John'", "KeyError: b'<masked>'"),
    ("write to john.doe@example.com", "write to <masked>"),
    ("TID 7, 10.0.0.12 executor 3", "TID 7, <masked> executor 3"),
    ("no route to fe80::1:2", "no route to <masked>"),
    ("password is hunter2, ok", "password is <masked>, ok"),
    ("ssl.keystore.password=hunter2", "ssl.keystore.password=<masked>"),
    ("Authorization: Bearer abc.def1", "Authorization: <masked>"),
    ("got Bearer a1b2c3d4e5", "got Bearer <masked>"),
    ("PlainLoginModule required username=u password=p;", "PlainLoginModule required <masked>"),
    ("sasl.jaas.config = anything at all", "sasl.jaas.config = <masked>"),
    ("jdbc:postgresql://u:p@db/x?user=a&password=b failed", "jdbc:postgresql://<masked>@db/x?<masked> failed"),
    ("key AKIA1234567890ABCDEFGHIJ", "key <masked>"),
    ("file:/out/customer=4711/part-00012.parquet", "file:/out/customer=<masked>/part-00012.parquet"),
    ("offset 4111111111111111 is bad", "offset <masked> is bad"),
]
KEPT = [
    'File "/opt/app/job.py", line 1234, in <module>',
    "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012",
    "Partition transactions-0's offset was changed from 50000 to 1000",
    "Offsets out of range for partition ledger-2024-0",
    "No module named 'pandas'",
    "column `amount` cannot be resolved; did you mean `amounts`",
    "org.apache.spark.SparkException: Task failed while writing rows.",
    "Lost task 0.0 in stage 12.0",
    "Spark 4.2.0 cannot read it; it's an error of the file",
    "file:/out/part-00012-7b1c0d3e-c000.snappy.parquet",
]


@pytest.mark.parametrize(("text", "expected"), MASKED, ids=[text for text, _ in MASKED])
def test_what_may_belong_to_somebody_is_masked(text, expected):
    assert mask(text) == expected


@pytest.mark.parametrize("text", KEPT)
def test_what_locates_the_fault_is_kept(text):
    assert mask(text) == text


@pytest.mark.parametrize("text", [text for text, _ in MASKED])
def test_masking_twice_changes_nothing(text):
    assert mask(mask(text)) == mask(text)


@pytest.mark.parametrize("part", ["a", "a-", "1", '"', "'", "password ", "a.b@", "://", "?a=", "1:", "offset ", "eyJ"])
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
)  # fmt: skip
def test_a_host_that_is_no_secret_stays_and_nothing_around_it(text, expected):
    assert mask(text, "ip-10-0-0-12.internal") == expected
    assert mask(text, None) == mask(text, "")
