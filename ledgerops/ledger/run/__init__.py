"""A run of jobs: its source and sink, its folder, its Spark session, and how it starts and ends."""
