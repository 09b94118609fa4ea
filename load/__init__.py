"""Load tests with locust, benchmarks, and trials of other versions of Spark and Python."""
