import pyarrow as pa
import pytest

from ledgerops.ledger.jobs.masked_transactions import mask
from tests.tables import cases


@cases(
    "given, masked",
    ("an id of the bank", "A00000576", "*****0576"),
    ("one character more than is shown", "ABCDE", "*BCDE"),
    ("as many as are shown", "ABCD", "****"),
    ("fewer", "A1", "**"),
    ("empty", "", ""),
    ("letters of several bytes", "\u017elu\u0165ou\u010dk\u00fd", "*****u\u010dk\u00fd"),
    ("null", None, None),
)
def test_only_the_last_characters_are_shown(given, masked):
    assert mask(pa.array(["B00000001", given, None])).to_pylist() == ["*****0001", masked, None]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_the_type_stays_and_no_row_is_no_row(kind):
    assert mask(pa.array([], kind)).equals(pa.array([], kind))
