"""Load tests: what a job carries, measured from outside against a plan that waits for nobody, and judged by an SLO."""
