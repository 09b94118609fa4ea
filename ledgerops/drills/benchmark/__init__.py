"""Drawn drills as a data set for other tools, and the scorer that goes with it."""
