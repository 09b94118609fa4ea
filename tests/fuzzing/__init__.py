"""Random and mutated recordings and event logs, put through the whole core: `python -m tests.fuzzing`."""
