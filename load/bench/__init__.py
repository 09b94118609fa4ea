"""The benchmarks: `make bench`, `make soak` and `make predict`."""
