"""The drills, one module for each theme of faults."""
