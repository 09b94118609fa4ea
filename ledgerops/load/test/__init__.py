"""Load tests: what a job sustains, measured from outside against a plan that never waits."""
