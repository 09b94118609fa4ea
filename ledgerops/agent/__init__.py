"""What reads Spark and the machine: each collector puts observations on the worker's queue."""
