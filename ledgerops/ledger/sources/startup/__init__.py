"""A folder for the PYTHONPATH of Spark's Python processes: Python imports its `sitecustomize` before anything else."""
