"""Tables against a real Postgres, without Spark."""

import uuid
from decimal import Decimal

import psycopg
import pytest

from ledgerops.errors import UserError
from ledgerops.ledger.jobs.customer_activity import JOB
from ledgerops.ledger.sinks import PostgresSink
from ledgerops.ledger.sinks.tables import Target, create_staging, repeated_rows
from tests.ledger.jobs.feed import instant
from tests.refusals import refusal_of
from tests.tables import cases

COLUMNS = {"customer_id": "text", "event_time": "timestamp with time zone", "amount": "numeric(18,2)", "notes": "jsonb"}
EARLY, LATE = instant("10:00"), instant("10:01")


@pytest.fixture
def database(postgres):
    """A connection whose tables are gone at the end."""
    with psycopg.connect(postgres.url) as connection:
        schema = f"test_{uuid.uuid4().hex}"
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"SET search_path TO {schema}")
        yield connection
        connection.rollback()


def stage(database, *rows):
    database.execute(create_staging("staging", COLUMNS))
    database.cursor().executemany(
        "INSERT INTO staging VALUES (%s, %s, %s, %s, %s)", [(number, *row) for number, row in enumerate(rows)]
    )


COUNTS = Target("counts", COLUMNS, ("customer_id",))


def fill(database, target, route=None, values=()):
    database.execute(target.fill("staging", route, "event_time"), values)


def test_of_several_rows_of_a_key_the_latest_wins_then_the_greatest(database):
    first = [("C1", EARLY, 9, None), ("C1", LATE, 1, '{"a": [1]}'), ("C1", None, 10, None)]
    stage(database, *first, *(("C2", LATE, amount, None) for amount in (1, None, 2)))
    COUNTS.prepare(database)
    database.execute("INSERT INTO counts VALUES ('C1', now(), 77), ('C3', NULL, 3)")

    fill(database, COUNTS)

    assert database.execute("SELECT * FROM counts ORDER BY 1").fetchall() == [
        ("C1", LATE, Decimal("1.00"), {"a": [1]}),
        ("C2", LATE, Decimal("2.00"), None),
        ("C3", None, Decimal("3.00"), None),
    ]


def test_rows_without_a_key_are_all_added(database):
    target = Target("all.rows", COLUMNS, ())  # a route's value may look like anything
    stage(database, ("C1", EARLY, 9, None), ("C1", EARLY, 9, None))
    for route, values in ((None, ()), ("customer_id", ["C1"]), ("customer_id", ["C2"])):
        target.prepare(database)
        fill(database, target, route, values)

    assert database.execute('SELECT count(*) FROM "all.rows"').fetchone() == (4,)


def test_rows_that_two_tasks_wrote_are_counted(database):
    stage(database, ("C1", EARLY, 9, None), ("C2", EARLY, 9, None))
    assert repeated_rows(database, "staging") == 0
    database.execute("INSERT INTO staging SELECT * FROM staging WHERE customer_id = 'C1'")
    assert repeated_rows(database, "staging") == 1


NO_KEY = "has no primary key or unique index on (customer_id)"
OTHERS = "event_time timestamptz, amount numeric(18,2), notes jsonb"
NO_TYPE = "has event_time as timestamp without time zone, not as timestamp with time zone"


@cases(
    "columns, reason",
    ("less", "customer_id text UNIQUE, event_time timestamptz, notes jsonb", "has no column amount"),
    ("another type", f"customer_id text UNIQUE, {OTHERS.replace('tz', '')}", NO_TYPE),
    ("no key", f"customer_id text, {OTHERS}", NO_KEY),
    ("a key of more columns", f"customer_id text, {OTHERS}, UNIQUE (customer_id, amount)", NO_KEY),
)
def test_a_table_that_does_not_fit_is_refused(database, columns, reason):
    database.execute(f"CREATE TABLE counts ({columns})")
    told = refusal_of(COUNTS.prepare, database)
    assert told == f"cannot write to table counts: it {reason}; rename it, or alter it to fit"


@cases(
    "columns",
    ("the same", f"customer_id text PRIMARY KEY, {OTHERS}"),
    ("more, in another order", f"seen timestamptz DEFAULT now(), {OTHERS}, customer_id text UNIQUE"),
)
def test_a_table_of_ones_own_that_fits_is_taken(database, columns):
    database.execute(f"CREATE TABLE counts ({columns})")
    stage(database, ("C1", EARLY, 9, None))
    COUNTS.prepare(database)
    fill(database, COUNTS)
    assert database.execute("SELECT customer_id, amount FROM counts").fetchall() == [("C1", Decimal("9.00"))]


def test_the_password_is_told_nowhere(tmp_path):
    sink = PostgresSink("postgresql://ledger:geheim@127.0.0.1:1/bank")
    told = refusal_of(sink.last_batch, JOB, tmp_path)
    assert told.startswith("cannot reach postgresql://ledger@127.0.0.1:1/bank: connection failed: ")
    assert "geheim" not in f"{told}{sink!r}{sink}"


@cases(
    "url",
    ("not a URL", "postgresql://ledger:geheim%zz@127.0.0.1/bank"),
    ("a host that is none", "postgresql://ledger:geheim@[::1/bank"),
    ("no port", "postgresql://ledger:geheim@127.0.0.1:x/bank"),
    ("another database", "mysql://ledger:geheim@127.0.0.1/bank"),
    ("no URL but settings", "host=127.0.0.1 password=geheim"),
    ("a password that ends up in the host's name", "postgresql://ledger:gehe@im@127.0.0.1/bank"),
    ("no host, which Spark's driver needs", "postgresql:///bank"),
)
def test_what_is_no_url_of_a_database_is_refused(url):
    with pytest.raises(UserError) as refused:
        PostgresSink(url)
    assert str(refused.value) == ("not the URL of a database; write postgresql://user:password@host:port/database")
    assert refused.value.__cause__ is None


def test_a_user_who_may_make_no_tables_is_told_before_anything_starts(postgres, tmp_path):
    with psycopg.connect(postgres.url) as connection:
        connection.execute("DROP ROLE IF EXISTS visitor")
        connection.execute("CREATE ROLE visitor LOGIN")
    sink = PostgresSink(postgres.url.replace("//ledger@", "//visitor@"))
    assert refusal_of(sink.last_batch, JOB, tmp_path) == f"cannot write to {sink}: permission denied for schema public"


def test_a_url_may_leave_out_user_port_and_database():
    assert str(PostgresSink("postgresql://db.example")) == "postgresql://db.example/"
