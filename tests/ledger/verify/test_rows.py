"""Jobs that pass transactions on: what is lost, repeated or changed is found, counted and named, and nothing else."""

from decimal import Decimal

import pyarrow as pa
import pytest

from ledgerops.ledger.plan.manifest import replay_manifest
from ledgerops.ledger.plan.record_stream import ReplayStream
from ledgerops.ledger.sources.replay import COLUMNS
from ledgerops.ledger.verify import locate
from ledgerops.ledger.verify import rows as rows_module
from ledgerops.ledger.verify.check import VerifyInput, check
from ledgerops.ledger.verify.outputs import ParquetOutput
from tests.ledger.verify.made import PLAN, Run, again, manifest_of, sent, with_value, without
from tests.tables import cases

ALL, ONCE = sent(), sent(once=True)
LATE_PLAN = PLAN.replace("low: 5, high: 50", "low: 5, high: 300")
IDS = ONCE["transaction_id"].to_pylist()
START = 1767225600  # of the plan, in seconds since the epoch
CENT = Decimal("0.01")


def counts(result):
    return result.lost, result.repeated, result.changed


def masked(table):
    for column in ("account_id", "customer_id"):
        table = table.set_column(table.schema.get_field_index(column), column, pa.array(["****"] * table.num_rows))
    return table


def with_more(table):
    """In another order, with a column more and some less."""
    table = table.sort_by("amount").append_column("score", pa.array([0.5] * table.num_rows))
    return table.select(["score", "balance", "transaction_id", "amount", "type"])


def only(table, wanted):
    return table.filter(pa.array([wanted(row) for row in table.to_pylist()]))


def is_large(row):
    return row["type"] == "Credit" and row["amount"] > 40_000


def is_early(row):
    return row["event_time"].timestamp() < START + 100_000


@cases(
    "table, job",
    ("an account for each", ALL, "account_lookup"),
    ("a customer for each", ALL, "enriched_transactions"),
    ("two outputs", ALL, "split_transactions"),
    ("two inputs", ALL, "unified_flow"),
    ("each once where a job removes copies", ONCE, "dedup_transactions"),
    ("in another order, with other columns", with_more(ONCE), "dedup_transactions"),
    ("columns that a job masks", masked(ALL), "masked_transactions"),
    ("what a filter lets through", only(ALL, is_large), "large_credits"),
    ("without what a job still gathers", only(ALL, is_early), "versioned_customers"),
)
def test_rows_that_came_through_as_they_should_hold(judged, table, job):
    result = judged(table, job)
    assert (result.verdict, result.rows, counts(result), result.examples) == ("holds", table.num_rows, (0, 0, 0), {})


COPIES = ALL.num_rows - ONCE.num_rows
DEBIT = next(place for place, row in enumerate(ALL.to_pylist()) if row["type"] == "Debit")
EIGHTH = ONCE.slice(8, 1).to_pylist()[0]
TURNED = with_value(with_value(ONCE, 8, "amount", EIGHTH["balance"]), 8, "balance", EIGHTH["amount"])
NEVER_SENT = with_value(ONCE, 3, "transaction_id", "X0000000003")


# what a job wrote -> its name, how many are lost, repeated and changed, and which
@cases(
    "table, job, told, examples",
    ("one is lost", without(ONCE, 4_000), "dedup_transactions", (1, 0, 0), {"lost": [IDS[4_000]]}),
    ("one comes twice", again(ONCE, 17), "dedup_transactions", (0, 1, 0), {"repeated": [IDS[17]]}),
    ("another amount", with_value(ONCE, 99, "amount", CENT), "dedup_transactions", (0, 0, 1), {"changed": [IDS[99]]}),
    ("another operation", with_value(ONCE, 99, "operation", "Something Else"), "dedup_transactions", (0, 0, 1),
     {"changed": [IDS[99]]}),
    ("no customer", with_value(ONCE, 99, "customer_id", None), "dedup_transactions", (0, 0, 1), {"changed": [IDS[99]]}),
    ("amount and balance have changed places", TURNED, "dedup_transactions", (0, 0, 1), {"changed": [IDS[8]]}),
    ("one in place of another", again(without(ONCE, 5), 7), "dedup_transactions", (1, 1, 0),
     {"lost": [IDS[5]], "repeated": [IDS[8]]}),
    ("an id that was never sent", NEVER_SENT, "dedup_transactions", (1, 0, 1),
     {"lost": [IDS[3]], "changed": ["X0000000003"]}),
    ("a column that a masking job must not change", with_value(ALL, 3, "type", "Debt"), "masked_transactions",
     (0, 0, 1), {"changed": [ALL["transaction_id"][3].as_py()]}),
    ("a filter lets through more", pa.concat_tables([only(ALL, is_large), ALL.slice(DEBIT, 1)]), "large_credits",
     (0, 0, 1), {"changed": [ALL["transaction_id"][DEBIT].as_py()]}),
    ("one before those that a job gathers is lost", without(only(ALL, is_early), 1_000), "versioned_customers",
     (1, 0, 0), {"lost": [only(ALL, is_early)["transaction_id"][1_000].as_py()]}),
)  # fmt: skip
def test_a_row_that_is_lost_repeated_or_changed_is_named(judged, table, job, told, examples):
    result = judged(table, job)
    assert (result.verdict, counts(result), result.examples) == ("broken", told, examples)


@cases(
    "table, job, told",
    ("copies that should have been removed", ALL, "dedup_transactions", (0, COPIES, 0)),
    ("copies that should have been kept", ONCE, "risk_scores", (COPIES, 0, 0)),
    ("the first hundred are gone", ONCE.slice(100), "dedup_transactions", (100, 0, 0)),
    ("all are gone", ONCE.slice(0, 0), "dedup_transactions", (ONCE.num_rows, 0, 0)),
)
def test_of_many_rows_no_more_than_five_are_named(judged, table, job, told):
    result = judged(table, job)
    assert (result.verdict, counts(result)) == ("broken", told)
    assert [len(names) for names in result.examples.values()] == [5]


def test_the_money_of_a_lost_row_and_an_id_that_was_never_sent_are_told(judged):
    row = ONCE.slice(4_000, 1).to_pylist()[0]
    assert judged(ONCE).money == "equal"
    assert judged(without(ONCE, 4_000)).money == f"{row['type']} -{row['amount']}, balance -{row['balance']}"
    assert "rows with an id that was never sent: 1" in judged(NEVER_SENT).notes


def test_amounts_that_two_rows_have_swapped_are_found_though_the_sums_are_equal(judged):
    amounts, kinds = ONCE["amount"].to_pylist(), ONCE["type"].to_pylist()
    other = next(place for place in range(1, 99) if kinds[place] == kinds[0])
    result = judged(with_value(with_value(ONCE, 0, "amount", amounts[other]), other, "amount", amounts[0]))
    assert (result.money, counts(result)) == ("equal", (0, 0, 2))


def test_many_passes_find_the_same(judged, monkeypatch):
    monkeypatch.setattr(rows_module, "PASS_ROWS", 1_000)
    result = judged(again(without(with_value(ONCE, 50, "amount", CENT), 4_000), 17))
    assert counts(result) == (1, 1, 1)
    assert result.examples == {"lost": [IDS[4_000]], "repeated": [IDS[17]], "changed": [IDS[50]]}


@pytest.fixture(scope="module")
def late():
    """The manifest of a plan whose rows may come later than a job waits, the rows, and the places of those that do."""
    manifest, once = manifest_of(text=LATE_PLAN), sent(once=True, text=LATE_PLAN)
    assert manifest.summary.latest_seconds > 200
    return manifest, once, [place for place, row in enumerate(once.to_pylist()) if delayed(row)]


def delayed(row):
    """By the plan, record n is due (n + 1) * 20 s after the start."""
    return (int(row["transaction_id"][1:]) + 1) * 20 - (row["event_time"].timestamp() - START) > 61


def test_late_rows_may_be_missing_where_a_job_waits_no_longer(judged, late):
    manifest, once, places = late
    result = judged(without(once, *places[:40]), manifest=manifest)
    assert (result.verdict, counts(result)) == ("holds", (0, 0, 0))
    assert result.notes == ["missing because they arrived after the watermark: 40"]


def test_rows_may_not_be_missing_that_were_in_time_or_from_a_job_that_waits_long_enough_or_not_at_all(judged, late):
    manifest, once, places = late
    on_time = [place for place in range(once.num_rows) if place not in places]
    assert counts(judged(without(once, *on_time[:3]), manifest=manifest)) == (3, 0, 0)
    assert judged(without(once, *places[:40]), manifest=manifest, lateness_seconds=301.0).lost == 40
    assert judged(without(sent(text=LATE_PLAN), 5, 6), "account_lookup", manifest).lost == 2


def test_without_the_plan_the_digest_judges_and_a_fault_is_found_but_not_named(judged):
    blind = manifest_of(source="replay", plan="transactions.csv")
    assert judged(ONCE, manifest=blind).verdict == "holds"

    result = judged(without(ONCE, 9), manifest=blind)

    assert (result.verdict, result.lost, result.examples) == ("broken", 1, {})
    assert result.notes == [
        "lower bounds; the rows cannot be named: transactions.csv of the manifest was not found; give --data FOLDER"
    ]


def test_a_job_that_nobody_knows_is_not_checked(judged):
    result = judged(ONCE, "my_own_job")
    assert (result.verdict, result.rows, counts(result)) == ("not checked", ONCE.num_rows, (None, None, None))


CONFLICTING = PLAN.replace("within: 10m}", "within: 10m, conflicting: 0.5}")


def test_any_of_the_copies_that_conflict_may_be_kept_and_no_other_amount(judged):
    everything, manifest = sent(text=CONFLICTING), manifest_of(text=CONFLICTING)
    last = {each: place for place, each in enumerate(everything["transaction_id"].to_pylist())}
    kept = everything.take(pa.array(sorted(last.values())))

    result, other = judged(kept, manifest=manifest), judged(with_value(kept, 7, "amount", CENT), manifest=manifest)

    assert (result.verdict, counts(result)) == ("holds", (0, 0, 0))
    assert any("copies were sent with another amount; the job may keep any of them" in note for note in result.notes)
    assert (other.verdict, counts(other)) == ("broken", (0, 0, 1))


def test_after_a_row_that_is_dated_ahead_others_may_be_missing_and_it_may_not(judged):
    text = PLAN.replace("disorder: {late", "disorder: {future: {count: 1, ahead: 1h}, late")
    once, manifest = sent(once=True, text=text), manifest_of(text=text)

    result, other = judged(without(once, 100, 200), manifest=manifest), judged(without(once, 0), manifest=manifest)

    assert (result.verdict, counts(result)) == ("holds", (0, 0, 0))
    assert "missing because they arrived after the watermark: 2" in result.notes
    assert (other.verdict, counts(other), other.examples) == ("broken", (1, 0, 0), {"lost": ["T0000000000"]})


def test_a_replayed_file_is_read_once_for_all_jobs(tmp_path):
    lines = [f"T{i},A1,Credit,,{i}.00,1.00,,2026-01-01T00:00:0{i},C1" for i in range(4)]
    file = tmp_path / "transactions.csv"
    file.write_text("\n".join([",".join(COLUMNS), *lines]))
    stream = ReplayStream(file, 1.0)
    Run(tmp_path).write("account_lookup", pa.Table.from_batches([stream.rows(1, 4).batch]))
    case, output = VerifyInput(replay_manifest(stream), tmp_path), ParquetOutput(tmp_path / "output" / "account_lookup")

    first = check("account_lookup", output, case)
    file.unlink()

    assert first.examples == {"lost": ["T0"]}
    assert check("account_lookup", output, case) == first


class Nothing:
    """A topic without a record: its columns are not known."""

    columns, rows, deleted, at_least_once = [], 0, 0, True

    def batches(self, names):
        return iter(())


def test_a_topic_is_rightly_empty_where_the_job_had_nothing_to_write():
    quiet = manifest_of(text=PLAN + "amounts: {median: 10, sigma: 0, max: 20}\n")
    found = check("large_credits", Nothing(), VerifyInput(quiet))
    assert found.lost == 0

    loud = manifest_of(text=PLAN + "amounts: {median: 90000, sigma: 0, max: 90000}\n")
    found = check("large_credits", Nothing(), VerifyInput(loud))
    assert found.verdict == "broken" and found.lost > 1_000


def test_a_database_has_no_topics_of_the_input_that_an_output_could_be_taken_for():
    there = {"transactions.debits", "transactions.credits"}
    assert [job for job, _ in locate._names((), there)] == []
    assert [job for job, _ in locate._names((), there, inputs=())] == ["split_transactions"]
