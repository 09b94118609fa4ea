"""The load plan, and the rows that it stands for: which record is due when, with which keys, disorder and faults."""
