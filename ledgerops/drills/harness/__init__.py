"""Runs one drill: the driver under test, the fault, the repair, and the bundle of what was recorded."""
