"""The one error that a user is meant to see."""


class UserError(Exception):
    """Bad input: one lower-case line that says what is wrong, where, and what to do. Exit code 2."""
