"""Takes the steps that verdicts advise, and measures whether they help."""
