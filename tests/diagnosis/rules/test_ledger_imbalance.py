from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.ledger_imbalance import RULE
from tests.diagnosis.conftest import observed_by_name
from tests.tables import cases


def book(rows_in=1000, rows_out=1000, amount_in="5000.00", amount_out="5000.00"):
    return {
        "ledgerops_book_in": {"rows": rows_in, "amount": amount_in},
        "ledgerops_book_out": {"rows": rows_out, "amount": amount_out},
    }


def after(history, *books, **changes):
    """A query whose newest batches observed these books."""
    return observed_by_name(history(seconds=[1] * len(books), **changes), books)


def test_rows_that_do_not_come_out_are_found_at_once(history):
    view = after(history, book(), book(rows_out=990, amount_out="4876.55"))

    [finding] = RULE.check(view)

    assert finding.summary == (
        "10 rows with a total of 123.45 entered the query and did not leave it, in 1 of the latest 2 batches"
    )
    assert [(each.name, each.value) for each in finding.evidence] == [
        ("unbalanced_batches", 1), ("missing_rows", 10), ("missing_amount", 123.45), ("rows_booked", 2000),
    ]  # fmt: skip


@cases("batches, told", ("a scrape each minute sees it", 50, True), ("more than two minutes ago", 65, False))
def test_a_batch_that_was_wrong_is_told_for_two_minutes(history, batches, told):
    view = after(history, book(rows_out=990), *[book()] * batches)  # one every two seconds
    assert bool(list(RULE.check(view))) is told


@cases("later, told", ("a moment later", 60.0, True), ("after hours", 7200.0, False))
def test_what_the_run_before_wrote_is_told_for_two_minutes(history, later, told):
    view = after(history, book(rows_out=990))
    view.history.start(view.now + 5, "id-1", "run-2")
    assert bool(list(RULE.check(view.at(view.now + later)))) is told


def test_of_a_query_that_rests_the_newest_batch_counts(history):
    view = after(history, book(rows_out=990))
    view.history.idle(view.now + 30)
    assert [each.rule for each in Diagnoser()(view.at(view.now + 600)).findings] == ["ledger-imbalance"]


LOWER = "the amount that left the query is 0.01 lower than the amount that entered it"
FEWER = "1 row entered the query and did not leave it"
MORE = "1 row with a total of 1.00 left the query without entering it"
BEYOND_FLOATS = {"amount_in": "90071992547409930000.01", "amount_out": "90071992547409930000.00"}
LATE_ENTRANCE = {"ledgerops_book_in_late": {"rows": 300, "amount": "0"}}
LESS_FOR_MORE = book(rows_out=999, amount_out="5010.00")


@cases(
    "case, said",
    ("a cent", book(amount_out="4999.99"), LOWER),
    ("a row too many", book(rows_out=1001, amount_out="5001.00"), MORE),
    ("a row without money", book(rows_out=999), FEWER),
    ("fewer rows, more money", LESS_FOR_MORE, f"{FEWER}, and the amount that left is higher by 10.00"),
    ("a cent of a sum that no float holds", book(**BEYOND_FLOATS), LOWER),
    ("two entrances", book(rows_in=600) | LATE_ENTRANCE, "100 rows left the query without entering it"),
)
def test_what_is_wrong_is_said(history, case, said):
    [finding] = RULE.check(after(history, case))
    assert finding.summary == f"{said}, in the latest batch"


@cases(
    "books",
    ("balanced", [book(), book()]),
    ("the same amount in other digits", [book(amount_out="5000.0")]),
    ("only one side is booked", [{"ledgerops_book_in": {"rows": 5, "amount": "1"}}]),
    ("a sum that is too large to be known", [book(amount_out=None)]),
    ("counts are null", [{"ledgerops_book_in": {"rows": None}, "ledgerops_book_out": {"rows": 5}}]),
    ("somebody else's observations", [{"book_in": {"rows": 5}, "book_out": {"rows": 4}}]),
    ("not a number", [book(amount_in="NaN", amount_out="1")]),
    ("two entrances that add up", [{**book(700), "ledgerops_book_in_b": {"rows": 300, "amount": "0.00"}}]),
)
def test_others_are_not(history, books):
    assert list(RULE.check(after(history, *books))) == []


def test_a_slow_query_that_loses_nothing_is_ruled_out_with_its_number(history):
    view = observed_by_name(history(seconds=[9] * 4), [book()] * 4)
    assert list(RULE.check(view)) == []
    assert RULE.ruled_out(view) == "all 1,000 rows of the newest batch left the query, with the same amount"
