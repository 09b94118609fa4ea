import pyarrow as pa
import pytest

from ledgerops.ledger.jobs.masked_transactions import JOB, mask
from tests.ledger.jobs.oracle import ask, disordered, rows_of

MASK = "CASE WHEN length({0}) > 4 THEN repeat('*', length({0}) - 4) || right({0}, 4) ELSE repeat('*', length({0})) END"


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        pytest.param("A00000576", "*****0576", id="an id of the bank"),
        pytest.param("ABCDE", "*BCDE", id="one character more than is shown"),
        pytest.param("ABCD", "****", id="as many as are shown"),
        pytest.param("A1", "**", id="fewer"),
        pytest.param("", "", id="empty"),
        pytest.param("\u017elu\u0165ou\u010dk\u00fd", "*****u\u010dk\u00fd", id="letters of several bytes"),
        pytest.param(None, None, id="null"),
    ],
)
def test_only_the_last_characters_are_shown(given, masked):
    assert mask(pa.array(["B00000001", given, None])).to_pylist() == ["*****0001", masked, None]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_the_type_stays_and_no_row_is_no_row(kind):
    assert mask(pa.array([], kind)).equals(pa.array([], kind))


@pytest.mark.spark
def test_every_row_is_written_with_both_ids_masked_and_the_rest_as_it_was(feed):
    case = feed(JOB)
    runs = disordered()
    for number, row in enumerate(rows_of(runs)):
        row["account_id"] = None if number % 11 == 0 else f"A{number * number:08}"
        row["customer_id"] = "C" * (number % 7) or None
    case.run_each(runs)

    assert case.rows() == ask(
        f"""
        SELECT transaction_id, {MASK.format("account_id")}, {MASK.format("customer_id")}, event_time, type, operation,
            amount, balance
        FROM rows ORDER BY ALL
        """,
        rows_of(runs),
    )
