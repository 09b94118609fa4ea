"""Windows and keys: sums of each written window, keys that come twice, final totals, dead letters."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream
from ledgerops.ledger.verify.expectations import LATENESS_SECONDS
from tests.ledger.verify.made import PLAN, again, manifest_of, rows_of, sent, with_value, without
from tests.tables import cases

ALL = sent()
LAST = "2026-01-03 12:00:00+00"  # windows that end later are still open
COUNTS = "customer_id, count(*) AS transactions, sum(amount)::DECIMAL(28,2) AS amount FROM sent"
DAILY = f"""
SELECT starts AS window_start, starts + INTERVAL '1 day' AS window_end, {COUNTS},
    (SELECT unnest([TIMESTAMPTZ '2026-01-01 00:00:00+00', TIMESTAMPTZ '2026-01-02 00:00:00+00']) AS starts)
WHERE event_time >= starts AND event_time < starts + INTERVAL '1 day' GROUP BY ALL
"""
SLIDING = f"""
SELECT ends - INTERVAL '1 day' AS window_start, ends AS window_end, {COUNTS}, (SELECT unnest(generate_series(
    TIMESTAMPTZ '2026-01-01 02:00:00+00', TIMESTAMPTZ '{LAST}', INTERVAL '2 hours')) AS ends)
WHERE event_time >= ends - INTERVAL '1 day' AND event_time < ends GROUP BY ALL
"""
CUMULATIVE = f"""
SELECT time_bucket(INTERVAL '1 day', ends - INTERVAL '1 second') AS window_start, ends AS window_end, {COUNTS}, (SELECT
    unnest(generate_series(TIMESTAMPTZ '2026-01-01 02:00:00+00', TIMESTAMPTZ '{LAST}', INTERVAL '2 hours')) AS ends)
WHERE event_time >= time_bucket(INTERVAL '1 day', ends - INTERVAL '1 second') AND event_time < ends GROUP BY ALL
"""
JOBS = {"daily_counts": DAILY, "sliding_counts": SLIDING, "cumulative_counts": CUMULATIVE}


def asked(query, rows=ALL):
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.register("sent", rows)
        return db.sql(query).to_arrow_table()


@pytest.mark.parametrize(("job", "query"), JOBS.items(), ids=JOBS)
def test_windows_as_they_should_be_hold_and_a_customer_that_one_lacks_is_lost(judged, job, query):
    table = asked(query)
    result = judged(table, job, lateness_seconds=3_600.0)
    assert (result.verdict, result.rows, result.money, result.examples) == ("holds", table.num_rows, "equal", {})
    assert (result.lost, result.repeated, result.changed) == (0, 0, 0)

    gone = table.slice(12, 1).to_pylist()[0]
    result = judged(without(table, 12), job, lateness_seconds=3_600.0)

    assert (result.verdict, result.lost, result.changed) == ("broken", gone["transactions"], 0)
    assert result.money == f"amount -{gone['amount']}"
    [told] = result.examples["lost"]
    assert told.startswith(gone["window_start"].strftime("%Y-%m-%dT%H:%MZ to "))


def test_a_window_that_was_never_written_is_lost_if_a_later_one_was(judged):
    table = asked(DAILY)
    second = table.filter(pa.array([row["window_start"].day == 2 for row in table.to_pylist()]))
    assert judged(second, "daily_counts", lateness_seconds=3_600.0).lost == sum(
        1 for row in ALL.to_pylist() if row["event_time"].day == 1
    )


def test_a_window_that_is_written_twice_is_repeated(judged):
    result = judged(again(asked(DAILY), 0), "daily_counts")
    assert (result.verdict, result.repeated) == ("broken", 1)
    assert len(result.examples["repeated"]) == 1


def test_a_wrong_amount_is_changed(judged):
    table = asked(DAILY)
    amount = table["amount"][0].as_py() + 1
    result = judged(with_value(table, 0, "amount", amount), "daily_counts")
    assert (result.lost, result.changed, result.money) == (0, 1, "amount +1.00")


def test_windows_may_lack_rows_that_came_too_late_and_no_others_and_never_hold_more(judged):
    text = PLAN.replace("low: 5, high: 50", "low: 5, high: 300")
    manifest, rows = manifest_of(text=text), sent(text=text)
    delays = np.concatenate([each.delays for each in rows_of(text)])
    in_time = rows.filter(pa.array(delays <= LATENESS_SECONDS))
    assert in_time.num_rows < rows.num_rows
    assert judged(asked(DAILY, in_time), "daily_counts", manifest).verdict == "holds"
    assert judged(asked(DAILY, in_time.slice(1)), "daily_counts", manifest).verdict == "broken"
    assert judged(asked(DAILY, again(rows, 1)), "daily_counts", manifest).verdict == "broken"


def test_a_copy_is_as_late_as_it_comes_after_its_original():
    """Record n is due (n + 1) * 20 s after the start."""
    rows = PlanStream(parse_plan(PLAN), 0.0).rows(0, 2_000)
    happened = rows.batch["event_time"].cast("int64").to_numpy() / 1e6 - parse_plan(PLAN).start
    assert not rows.first.all()
    assert np.allclose(rows.delays, (rows.numbers + 1) * 20 - happened, atol=0.01)


def test_no_window_yet_is_nothing_to_verify_and_says_so(judged):
    result = judged(asked(DAILY).slice(0, 0), "daily_counts")
    assert result.verdict == "nothing to verify"
    assert result.notes == ["0 windows were written; open windows are not included"]


SESSIONS = pa.table({"customer_id": ["C1", "C1", "C2"], "session_start": [1, 2, 1]})
PAIRS = pa.table({"debit_transaction_id": ["T1", "T1"], "credit_transaction_id": ["T2", "T3"]})


def test_keys_that_come_once_hold_and_one_that_comes_twice_is_named(judged):
    assert judged(SESSIONS, "customer_sessions").verdict == "holds"
    result = judged(again(SESSIONS, 2), "customer_sessions")
    assert (result.verdict, result.repeated, result.examples) == ("broken", 1, {"repeated": ["C2 1"]})


def test_pairs_of_an_input_without_copies_must_be_unique(judged):
    manifest = manifest_of(text=PLAN.replace("{share: 0.1, within: 10m}", "{share: 0}"))
    assert judged(again(PAIRS, 0), "debit_credit_pairs", manifest).repeated == 1


def test_pairs_of_an_input_with_copies_are_not_checked(judged):
    result = judged(again(PAIRS, 0), "debit_credit_pairs")
    assert (result.verdict, result.notes[0].endswith("copies, so the output has copies too")) == ("not checked", True)


ACTIVITY = f"SELECT {COUNTS} GROUP BY customer_id HAVING count(*) > 300"
RATIO = """
SELECT customer_id, count(*) FILTER (type = 'Debit') AS debits, sum(amount) FILTER (type = 'Debit') AS debit_amount,
    count(*) FILTER (type = 'Credit') AS credits, sum(amount) FILTER (type = 'Credit') AS credit_amount
FROM sent GROUP BY customer_id
"""
TOTALS = {"customer_activity": ACTIVITY, "debit_credit_ratio": RATIO}


@pytest.mark.parametrize(("job", "query"), TOTALS.items(), ids=TOTALS)
def test_the_last_row_of_each_customer_counts(judged, job, query):
    early = asked(query.replace("> 300", "> 0"), ALL.slice(0, 3_000))
    result = judged(pa.concat_tables([asked(query), early]), job)
    assert (result.verdict, result.money) == ("holds", "equal")


@pytest.mark.parametrize(("job", "query"), TOTALS.items(), ids=TOTALS)
def test_a_total_that_lacks_rows_is_changed_and_one_that_is_absent_lost(judged, job, query):
    short = asked(query, ALL.slice(0, ALL.num_rows - 1)).sort_by("customer_id")
    whose = ALL["customer_id"][-1].as_py()
    gone = 0 if short["customer_id"][0].as_py() != whose else 1
    result = judged(without(short, gone), job)

    assert (result.verdict, result.lost, result.changed) == ("broken", 1, 1)
    assert result.examples["lost"] == [short["customer_id"][gone].as_py()]
    assert result.examples["changed"][0].startswith(f"{whose}: ")


def letters(*reasons, topic="transactions"):
    rows = [{"reason": each, "topic": topic, "partition": 1, "offset": place} for place, each in enumerate(reasons)]
    return pa.Table.from_pylist(rows)


SENT = ("invalid_json", "tombstone", "invalid_json", "tombstone", "invalid_json")


def test_dead_letters_are_the_poison_that_was_sent(judged):
    table = pa.concat_tables([letters(*SENT), letters("null_key", topic="customers")])
    assert judged(table, "dead_letters").verdict == "holds"


# dead letters -> how many are lost, repeated and changed, and which
@cases(
    "table, counts, examples",
    ("one is lost", letters(*SENT[1:]), (1, 0, 0), {"lost": ["invalid_json: 2 of 3"]}),
    ("a good record is refused", letters(*SENT, "null_key"), (0, 0, 1), {"changed": ["null_key: 1 of 0"]}),
    ("one twice", again(letters(*SENT), 0), (0, 1, 0),
     {"repeated": ["transactions 1 0"], "changed": ["invalid_json: 4 of 3"]}),
)  # fmt: skip
def test_other_dead_letters_are_found(judged, table, counts, examples):
    result = judged(table, "dead_letters")
    assert (result.verdict, (result.lost, result.repeated, result.changed)) == ("broken", counts)
    assert result.examples == examples
