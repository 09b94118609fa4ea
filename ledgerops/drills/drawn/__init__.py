"""Drills drawn at random by seed: plain PySpark applications, a fault or a healthy peculiarity, and their truth."""
