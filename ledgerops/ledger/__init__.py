"""The bank's streaming ledger: its schemas, its reference data and the load that drives it."""
