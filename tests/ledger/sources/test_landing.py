"""A landing folder as a source."""

import pytest

from ledgerops.ledger.sources import landing
from tests.ledger.sources.streams import ended
from tests.refusals import refusal_of


def test_a_folder_offers_the_tables_that_it_has_folders_for(tmp_path):
    (tmp_path / "customers").mkdir()
    (tmp_path / "else").mkdir()
    (tmp_path / "transactions").write_text("")
    assert landing.tables_in(tmp_path) == {"customers", "rejects"}


def test_a_folder_that_is_not_there_or_has_nothing_is_refused(tmp_path):
    tables = "transactions, customers, ad_events"
    assert refusal_of(landing.tables_in, tmp_path / "no") == (
        f"no landing folder {tmp_path / 'no'}; create it, with a folder for each table: {tables}"
    )
    assert refusal_of(landing.tables_in, tmp_path) == (
        f"nothing to read in {tmp_path}: it has none of the folders {tables}"
    )


@pytest.mark.parametrize(
    ("path", "literal"),
    [("/data/landing", "/data/landing"), ("/a [1]/{b}*?", "/a \\[1\\]/\\{b\\}\\*\\?"), ("/a\\b", "/a\\\\b")],
)
def test_no_character_of_a_path_is_a_pattern(path, literal):
    assert landing._literal(path) == literal


LINE = (
    b'{"user_id":"U1","page_id":"P1","ad_id":"A1","ad_type":"mail","event_type":"view",'
    b'"event_time":"2024-03-01T10:00:00Z"}'
)


@pytest.mark.spark
def test_lines_are_rows_whatever_their_ends_and_blank_ones_are_nothing(spark, tmp_path):
    folder = tmp_path / "ad_events"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(b"\n".join([LINE, b"", LINE + b"\r", b" \t\r", LINE]))  # the last without an end
    (folder / "b.json").write_bytes(LINE)
    (folder / "_c.jsonl").write_bytes(LINE)

    frame = landing.open_table(spark, tmp_path, "ad_events", None, "ledgerops_landing_test")
    progress = ended(frame.writeStream.format("memory").queryName("landed"))
    observed = [each["observedMetrics"]["ledgerops_landing_test"] for each in progress]

    assert [row.user_id for row in spark.table("landed").collect()] == ["U1"] * 3
    assert all(not any(row.asDict().values()) for row in observed)
