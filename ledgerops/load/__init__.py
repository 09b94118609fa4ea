"""The load generator, and load tests of the jobs."""
