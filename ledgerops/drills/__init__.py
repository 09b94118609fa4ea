"""Real queries that are broken on purpose, and scores of what the diagnosis says of them."""
