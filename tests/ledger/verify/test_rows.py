"""Jobs that pass transactions on: what is lost, repeated or changed is found, counted and named, and nothing else."""

from decimal import Decimal

import pyarrow as pa
import pytest

from ledgerops.ledger.plan.manifest import replay_manifest
from ledgerops.ledger.plan.record_stream import ReplayStream
from ledgerops.ledger.verify import rows as rows_module
from ledgerops.ledger.verify.check import VerifyInput, check
from ledgerops.ledger.verify.outputs import ParquetOutput
from tests.ledger.verify.made import PLAN, Run, again, manifest_of, sent, with_value, without

MANIFEST = manifest_of()
ALL, ONCE = sent(), sent(once=True)
LATE_PLAN = PLAN.replace("low: 5, high: 50", "low: 5, high: 300")
IDS = ONCE["transaction_id"].to_pylist()


@pytest.fixture
def judged(tmp_path):
    """The result for a job whose output is `table`."""

    def judge(table, job="dedup_transactions", manifest=MANIFEST, **changes):
        Run(tmp_path, manifest).write(job, table)
        return check(job, ParquetOutput(tmp_path / "output" / job), VerifyInput(manifest, **changes))

    return judge


def counts(result):
    return result.lost, result.repeated, result.changed


@pytest.mark.parametrize("job", ["account_lookup", "enriched_transactions", "split_transactions", "unified_flow"])
def test_rows_that_came_through_as_they_were_sent_hold(judged, job):
    result = judged(ALL, job)
    assert (result.verdict, result.rows, result.money) == ("holds", ALL.num_rows, "equal")
    assert counts(result) == (0, 0, 0)
    assert result.examples == {}


def test_each_transaction_once_holds_for_a_job_that_removes_copies(judged):
    result = judged(ONCE)
    assert (result.verdict, result.rows, counts(result)) == ("holds", ONCE.num_rows, (0, 0, 0))


def test_the_order_of_rows_and_further_columns_do_not_matter(judged):
    table = (
        ONCE.sort_by("amount")
        .append_column("score", pa.array([0.5] * ONCE.num_rows))
        .select(["score", "balance", "transaction_id", "amount", "type"])
    )

    assert judged(table).verdict == "holds"


def test_copies_that_a_job_should_have_removed_are_repeated(judged):
    result = judged(ALL)
    assert (result.verdict, counts(result)) == ("broken", (0, ALL.num_rows - ONCE.num_rows, 0))


def test_copies_that_a_job_should_have_kept_are_lost(judged):
    result = judged(ONCE, "risk_scores")
    assert (result.verdict, counts(result)) == ("broken", (ALL.num_rows - ONCE.num_rows, 0, 0))


def test_a_lost_row_is_named(judged):
    result = judged(without(ONCE, 4_000))

    assert (result.verdict, counts(result)) == ("broken", (1, 0, 0))
    assert result.examples == {"lost": [IDS[4_000]]}
    row = ONCE.slice(4_000, 1).to_pylist()[0]
    assert result.money == f"{row['type']} -{row['amount']}, balance -{row['balance']}"


def test_a_repeated_row_is_named(judged):
    result = judged(again(ONCE, 17))
    assert (result.verdict, counts(result), result.examples) == ("broken", (0, 1, 0), {"repeated": [IDS[17]]})


@pytest.mark.parametrize(
    ("column", "value"), [("amount", Decimal("0.01")), ("operation", "Something Else"), ("customer_id", None)]
)
def test_a_changed_row_is_named(judged, column, value):
    result = judged(with_value(ONCE, 99, column, value))
    assert (result.verdict, counts(result), result.examples) == ("broken", (0, 0, 1), {"changed": [IDS[99]]})


def test_amounts_that_two_rows_have_swapped_are_found_though_the_sums_are_equal(judged):
    amounts, kinds = ONCE["amount"].to_pylist(), ONCE["type"].to_pylist()
    other = next(place for place in range(1, 99) if kinds[place] == kinds[0])
    result = judged(with_value(with_value(ONCE, 0, "amount", amounts[other]), other, "amount", amounts[0]))
    assert (result.money, counts(result)) == ("equal", (0, 0, 2))


def test_a_row_whose_amount_and_balance_have_changed_places_is_named(judged):
    row = ONCE.slice(8, 1).to_pylist()[0]
    result = judged(with_value(with_value(ONCE, 8, "amount", row["balance"]), 8, "balance", row["amount"]))
    assert (counts(result), result.examples) == ((0, 0, 1), {"changed": [row["transaction_id"]]})


def test_a_row_in_place_of_another_is_one_lost_and_one_repeated(judged):
    result = judged(again(without(ONCE, 5), 7))
    assert counts(result) == (1, 1, 0)
    assert result.examples == {"lost": [IDS[5]], "repeated": [IDS[8]]}


def test_an_id_that_was_never_sent_is_changed(judged):
    result = judged(with_value(ONCE, 3, "transaction_id", "X0000000003"))
    assert counts(result) == (1, 0, 1)
    assert result.examples == {"lost": [IDS[3]], "changed": ["X0000000003"]}
    assert "rows with an id that was never sent: 1" in result.notes


def test_no_more_than_five_examples_are_given(judged):
    result = judged(ONCE.slice(100))
    assert result.lost == 100
    assert len(result.examples["lost"]) == 5


def test_many_passes_find_the_same(judged, monkeypatch):
    monkeypatch.setattr(rows_module, "PASS_ROWS", 1_000)
    result = judged(again(without(with_value(ONCE, 50, "amount", Decimal("0.01")), 4_000), 17))
    assert counts(result) == (1, 1, 1)
    assert result.examples == {"lost": [IDS[4_000]], "repeated": [IDS[17]], "changed": [IDS[50]]}


def test_an_output_without_rows_is_broken_and_not_passed(judged):
    result = judged(ONCE.slice(0, 0))
    assert (result.verdict, result.lost) == ("broken", ONCE.num_rows)


def test_columns_that_a_job_masks_are_not_compared(judged):
    masked = ALL
    for column in ("account_id", "customer_id"):
        masked = masked.set_column(masked.schema.get_field_index(column), column, pa.array(["****"] * ALL.num_rows))
    assert judged(masked, "masked_transactions").verdict == "holds"


def test_a_column_that_a_masking_job_must_not_change_is_compared(judged):
    assert judged(with_value(ALL, 3, "type", "Debt"), "masked_transactions").verdict == "broken"


def large():
    return ALL.filter(pa.array([r["type"] == "Credit" and r["amount"] > 40_000 for r in ALL.to_pylist()]))


def test_a_filter_lets_through_what_it_should(judged):
    assert judged(large(), "large_credits").verdict == "holds"


def test_a_filter_that_lets_through_more_is_found(judged):
    other = next(i for i, row in enumerate(ALL.to_pylist()) if row["type"] == "Debit")
    result = judged(pa.concat_tables([large(), ALL.slice(other, 1)]), "large_credits")
    assert counts(result) == (0, 0, 1)


def test_late_rows_may_be_missing_where_a_job_waits_no_longer(judged):
    manifest, once = manifest_of(text=LATE_PLAN), sent(once=True, text=LATE_PLAN)
    assert manifest.summary.latest_seconds > 200
    late = [place for place, row in enumerate(once.to_pylist()) if delayed(place, row)]
    result = judged(without(once, *late[:40]), manifest=manifest)

    assert (result.verdict, counts(result)) == ("holds", (0, 0, 0))
    assert result.notes == ["missing because they arrived after the watermark: 40"]


def delayed(place, row):
    """By the plan, record n is due (n + 1) * 20 s after the start."""
    number = int(row["transaction_id"][1:])
    return (number + 1) * 20 - (row["event_time"].timestamp() - 1767225600) > 61


def test_late_rows_may_not_be_missing_where_a_job_waits_long_enough(judged):
    manifest, once = manifest_of(text=LATE_PLAN), sent(once=True, text=LATE_PLAN)
    late = [place for place, row in enumerate(once.to_pylist()) if delayed(place, row)]
    assert judged(without(once, *late[:40]), manifest=manifest, lateness_seconds=301.0).lost == 40


def test_other_rows_may_not_be_missing_where_some_are_late(judged):
    manifest, once = manifest_of(text=LATE_PLAN), sent(once=True, text=LATE_PLAN)
    on_time = [place for place, row in enumerate(once.to_pylist()) if not delayed(place, row)]
    assert counts(judged(without(once, *on_time[:3]), manifest=manifest)) == (3, 0, 0)


def test_late_rows_may_not_be_missing_from_a_job_that_does_not_wait(judged):
    manifest, rows = manifest_of(text=LATE_PLAN), sent(text=LATE_PLAN)
    assert judged(without(rows, 5, 6), "account_lookup", manifest).lost == 2


def test_rows_that_a_job_still_gathers_are_not_lost(judged):
    table = ALL.filter(pa.array([row["event_time"].timestamp() < 1767225600 + 100_000 for row in ALL.to_pylist()]))
    assert judged(table, "versioned_customers").verdict == "holds"


def test_a_row_before_those_that_are_gathered_is_lost(judged):
    table = ALL.filter(pa.array([row["event_time"].timestamp() < 1767225600 + 100_000 for row in ALL.to_pylist()]))
    assert counts(judged(without(table, 1_000), "versioned_customers")) == (1, 0, 0)


def test_without_the_plan_the_digest_still_judges(judged):
    blind = manifest_of(source="replay", plan="transactions.csv")
    assert judged(ONCE, manifest=blind).verdict == "holds"


def test_without_the_plan_a_fault_is_found_but_not_named(judged):
    blind = manifest_of(source="replay", plan="transactions.csv")
    result = judged(without(ONCE, 9), manifest=blind)

    assert (result.verdict, result.lost, result.examples) == ("broken", 1, {})
    assert result.notes == [
        "lower bounds; the rows cannot be named: transactions.csv of the manifest was not found; give --data FOLDER"
    ]


def test_a_job_that_nobody_knows_is_not_checked(judged):
    result = judged(ONCE, "my_own_job")
    assert (result.verdict, result.rows, counts(result)) == ("not checked", ONCE.num_rows, (None, None, None))


CONFLICTING = PLAN.replace("within: 10m}", "within: 10m, conflicting: 0.5}")


def test_any_of_the_copies_that_conflict_may_be_kept(judged):
    everything = sent(text=CONFLICTING)
    ids = everything["transaction_id"].to_pylist()
    last = {each: place for place, each in enumerate(ids)}

    result = judged(everything.take(pa.array(sorted(last.values()))), manifest=manifest_of(text=CONFLICTING))

    assert (result.verdict, counts(result)) == ("holds", (0, 0, 0))
    assert any("copies were sent with another amount; the job may keep any of them" in note for note in result.notes)


def test_an_amount_that_no_copy_told_is_changed_among_conflicting_copies(judged):
    once = with_value(sent(once=True, text=CONFLICTING), 7, "amount", Decimal("0.01"))
    result = judged(once, manifest=manifest_of(text=CONFLICTING))
    assert (result.verdict, counts(result)) == ("broken", (0, 0, 1))


def test_after_a_row_that_is_dated_ahead_others_may_be_missing(judged):
    text = PLAN.replace("disorder: {late", "disorder: {future: {count: 1, ahead: 1h}, late")
    once = sent(once=True, text=text)

    result = judged(without(once, 100, 200), manifest=manifest_of(text=text))

    assert (result.verdict, counts(result)) == ("holds", (0, 0, 0))
    assert "missing because they arrived after the watermark: 2" in result.notes


def test_the_row_that_is_dated_ahead_may_not_be_missing(judged):
    text = PLAN.replace("disorder: {late", "disorder: {future: {count: 1, ahead: 1h}, late")
    result = judged(without(sent(once=True, text=text), 0), manifest=manifest_of(text=text))
    assert (result.verdict, counts(result), result.examples) == ("broken", (1, 0, 0), {"lost": ["T0000000000"]})


def test_a_replayed_file_is_read_once_for_all_jobs(tmp_path):
    lines = ["trans_id,account_id,type,operation,amount,balance,k_symbol,fulldatewithtime,customer_id"]
    lines += [f"T{i},A1,Credit,,{i}.00,1.00,,2026-01-01T00:00:0{i},C1" for i in range(4)]
    file = tmp_path / "transactions.csv"
    file.write_text("\n".join(lines))
    stream = ReplayStream(file, 1.0)
    Run(tmp_path).write("account_lookup", pa.Table.from_batches([stream.rows(1, 4).batch]))
    case, output = VerifyInput(replay_manifest(stream), tmp_path), ParquetOutput(tmp_path / "output" / "account_lookup")

    first = check("account_lookup", output, case)
    file.unlink()

    assert first.examples == {"lost": ["T0"]}
    assert check("account_lookup", output, case) == first
