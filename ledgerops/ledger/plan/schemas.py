"""The ledger's tables as Spark DDL; every source yields exactly these columns."""

TRANSACTIONS = (
    "transaction_id STRING, account_id STRING, customer_id STRING, event_time TIMESTAMP, "
    "type STRING, operation STRING, amount DECIMAL(18,2), balance DECIMAL(18,2)"
)
CUSTOMERS = (
    "customer_id STRING, sex STRING, first STRING, last STRING, email STRING, city STRING, "
    "state STRING, district_id INT, updated_at TIMESTAMP"
)
ACCOUNTS = "account_id STRING, district_id INT, frequency STRING, opened_on DATE"
AD_EVENTS = "user_id STRING, page_id STRING, ad_id STRING, ad_type STRING, event_type STRING, event_time TIMESTAMP"
# what a source could not read as a row of its table; a file has neither partition nor offset nor key
REJECTS = (
    "reason STRING, detail STRING, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "key BINARY, value BINARY"
)
REJECTS_TABLE = "rejects"
# by table: what a job that names it as input gets
TABLES = {
    "transactions": TRANSACTIONS,
    "customers": CUSTOMERS,
    "debits": TRANSACTIONS,
    "credits": TRANSACTIONS,
    "ad_events": AD_EVENTS,
    REJECTS_TABLE: REJECTS,
}
SIDES = {"debits": "Debit", "credits": "Credit"}  # tables that are transactions of one type


def columns_of(ddl: str) -> dict[str, str]:
    """The type of each column of a table."""
    return dict(column.split() for column in ddl.split(", "))
