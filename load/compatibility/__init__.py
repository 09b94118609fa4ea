"""Which metrics and rules work on which version of Spark and Python, tried by running them: `make compatibility`."""
