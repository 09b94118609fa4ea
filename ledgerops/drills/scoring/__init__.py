"""Scores what the diagnosis found against the truth of the drills, and publishes the scores."""
