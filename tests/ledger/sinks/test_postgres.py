"""Jobs that write to a real Postgres."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import partial

import psycopg
import pytest

from ledgerops.ledger.jobs import customer_activity, split_transactions
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.sinks import PostgresSink
from tests.ledger.jobs.feed import Feed, instant, transaction, uncommit
from tests.ledger.jobs.oracle import ask, disordered, rows_of
from tests.postgres import Postgres, asked
from tests.refusals import refusal_of

pytestmark = pytest.mark.spark

EVERYBODY = partial(customer_activity.transform, least=0)
NOTHING: Callable[[int], None] = lambda batch: None  # noqa: E731


@dataclass(frozen=True)
class Disturbed(PostgresSink):
    """With something that happens when a batch was staged, or when the server was found to be away."""

    staged: Callable[[int], None] = NOTHING
    away: Callable[[], None] = lambda: None
    seen: list[int] = field(default_factory=list)

    def _move(self, connection, job, rows, batch, query, staging):
        self.seen.append(batch)
        self.staged(batch)
        super()._move(connection, job, rows, batch, query, staging)

    def _answers(self):
        answers = super()._answers()
        if not answers:
            self.away()
        return answers


@pytest.fixture
def url(postgres):
    """The URL of a schema of its own, with a password that the server does not ask for."""
    schema = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return postgres.url.replace("@", ":geheim@") + f"?options=-csearch_path%3D{schema}"


def tables(url):
    return {name for (name,) in asked(url, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")}


def once(act, *batches):
    """What to do when one of these batches was staged: `act`, for each of them the first time alone."""
    left = [*batches]

    def staged(batch):
        if batch in left:
            left.remove(batch)
            act()

    return staged


def fail():
    raise RuntimeError("killed after staging")


def test_each_row_is_there_once_though_batches_are_repeated_at_every_point(feed, url):
    case, (first, second) = feed(split_transactions.JOB), disordered()
    sink = Disturbed(url, staged=once(fail, 2))
    case.add(*first)
    with pytest.raises(Exception, match="killed after staging") as failed:
        case.run(sink=sink)
    assert "geheim" not in str(failed.value)
    query = asked(url, "SELECT query FROM ledgerops_batches")[0][0].replace("-", "")
    with psycopg.connect(url) as connection:  # a driver that is really killed drops nothing
        connection.execute(f"CREATE TABLE ledgerops_staging_{query}_left (a int)")

    case.run(sink=sink)
    uncommit(case.checkpoint)
    case.run_each([second], sink=sink)

    for name in ("debits", "credits"):
        kind = name[:-1].capitalize()
        rows = [row for row in rows_of([first, second]) if row["type"] == kind]
        found = asked(url, f'SELECT * FROM "transactions.{name}"')
        assert sorted(found, key=str) == sorted((tuple(row.values()) for row in rows), key=str)
    assert tables(url) == {"transactions.debits", "transactions.credits", "ledgerops_batches"}
    # the failed one was staged again, the one that Spark had not noted was not even staged
    assert sink.seen == [0, 1, 2, 2, 3, 4, 5, 6, 7]
    assert asked(url, "SELECT job, batch FROM ledgerops_batches") == [("split_transactions", 7)]


def test_updates_replace_the_row_of_their_key_and_a_fresh_checkpoint_is_told_apart(feed, url, job_session, tmp_path):
    job = replace(customer_activity.JOB, transform=partial(customer_activity.transform, least=20))
    runs, sink = disordered(), PostgresSink(url)
    feed(job).run_each(runs, repeat=True, sink=sink)
    question = "SELECT customer_id, count(*), sum(amount) FROM rows GROUP BY 1 HAVING count(*) > 20 ORDER BY ALL"
    assert asked(url, "SELECT * FROM customer_activity ORDER BY 1") == ask(question, rows_of(runs))

    again = Feed(job_session, job, tmp_path / "again")
    again.work([transaction(f"t{n}", "10:00", "C1") for n in range(30)], sink=sink)

    assert asked(url, "SELECT transactions FROM customer_activity WHERE customer_id = 'C1'") == [(30,)]
    assert len(asked(url, "SELECT * FROM ledgerops_batches")) == 2
    assert tables(url) == {"customer_activity", "ledgerops_batches"}


def of_all_types(transactions):
    return transactions.selectExpr(
        "customer_id", "event_time", "amount", "CAST(balance AS DOUBLE) AS ratio", "type = 'Credit' AS credit",
        "struct(transaction_id AS id, amount) AS nested", "array(1, 2) AS list", "1Y AS tiny", "2S AS small",
        "3 AS int", "4L AS big", "1.5F AS real", "DATE'2024-02-29' AS day", "X'00FF' AS bytes",
        "CAST(NULL AS STRING) AS nothing", "TIMESTAMP_NTZ'2024-03-01 01:02:03.000004' AS local",
        "concat('nul', char(0)) AS text",
    )  # fmt: skip


TYPES = Job(
    name="types", group="sql", summary="All types.", transform=of_all_types, stateful=False, upsert=("customer_id",)
)


def test_every_type_keeps_its_value_and_the_latest_row_of_a_batch_wins(feed, url):
    case = feed(TYPES)
    early = transaction("early", "10:00:00.000001", amount=Decimal("2.00"))
    case.work([transaction("late", "10:00:00.000002", amount=Decimal("1.00")), early], sink=PostgresSink(url))

    assert asked(url, "SELECT * FROM types") == [
        (
            "C1", instant("10:00:00.000002"), Decimal("1.00"), 0.0, True, {"id": "late", "amount": 1.0}, [1, 2], 1, 2,
            3, 4, 1.5, date(2024, 2, 29), b"\x00\xff", None, instant("01:02:03.000004").replace(tzinfo=None),
            "nul\ufffd",
        )
    ]  # fmt: skip


def test_what_cannot_be_written_is_refused_before_the_query_starts(feed, url):
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE types (customer_id text PRIMARY KEY)")
    case = feed(TYPES)

    assert refusal_of(case.run, sink=PostgresSink(url)) == (
        "cannot write to table types: it has no column event_time; rename it, or alter it to fit"
    )
    assert not (case.checkpoint / "offsets").exists()


def test_a_row_that_the_table_refuses_ends_the_query_with_the_reason(feed, url):
    case = feed(TYPES)
    case.add([transaction("nobody's", "10:00", None)])

    with pytest.raises(Exception, match="rejects batch 0 of types: null value in column") as failed:
        case.run(sink=PostgresSink(url))

    assert "geheim" not in str(failed.value)
    assert tables(url) == {"types", "ledgerops_batches"}


@pytest.fixture
def own(tmp_path):
    with Postgres(tmp_path / "postgres") as server:
        yield server


def test_a_server_that_is_killed_and_comes_back_loses_and_repeats_nothing(feed, own):
    case, (first, _) = feed(split_transactions.JOB), disordered()
    case.add(*first)
    sink = Disturbed(own.url, staged=once(own.kill, 1), away=own.start)
    case.run(sink=sink)

    found = [asked(own.url, f'SELECT transaction_id FROM "transactions.{name}"') for name in ("debits", "credits")]
    assert sorted(found[0] + found[1]) == sorted((row["transaction_id"],) for row in rows_of([first]))
    assert sink.seen == [0, 1, 1, 2, 3]

    case.add([transaction("last", "10:00")])
    gone = Disturbed(own.url, retry_seconds=0.2, staged=lambda batch: own.stop())
    with pytest.raises(Exception, match=r"did not accept batch 4 of split_transactions within 0 s: .*; none of it is"):
        case.run(sink=gone)
    own.start()
    case.run(sink=sink)

    assert len(asked(own.url, "SELECT * FROM \"transactions.credits\" WHERE transaction_id = 'last'")) == 1


def test_a_batch_with_state_that_is_tried_again_counts_its_rows_once(feed, own):
    case, (first, _) = feed(replace(customer_activity.JOB, transform=EVERYBODY)), disordered()
    case.add(*first)
    sink = Disturbed(own.url, staged=once(own.kill, 0, 1, 2, 3), away=own.start)
    case.run(sink=sink)

    question = "SELECT customer_id, count(*), sum(amount) FROM rows GROUP BY 1 ORDER BY ALL"
    found = asked(own.url, "SELECT * FROM customer_activity ORDER BY 1")
    assert found == ask(question, rows_of([first]))
    assert sink.seen == [0, 0, 1, 1, 2, 2, 3, 3]
