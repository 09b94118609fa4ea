"""What a query can carry: a fit of batch time over rows with its interval, what-if questions, and what limits it."""
