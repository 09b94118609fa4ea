"""The version of the package; `ledgerops.__version__` is the same."""

__version__ = "0.2.0"
