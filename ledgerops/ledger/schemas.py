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
