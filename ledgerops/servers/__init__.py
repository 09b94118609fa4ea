"""Real servers on this machine, for tests, drills and trials: never for data that anybody needs."""
