"""What is in the state of a query, from its checkpoint alone: its files say where, Spark's readers say what.

Nothing here writes into a checkpoint.
"""
