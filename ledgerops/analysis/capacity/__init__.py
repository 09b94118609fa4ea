"""What a query can sustain: a fit of batch time over rows with its interval, what-if questions, and what limits it."""
