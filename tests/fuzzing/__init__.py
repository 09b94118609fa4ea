"""Random and mutated recordings and event logs, put through the whole core: `python -m tests.fuzzing`."""

import argparse


def options(module: str, **limits: float) -> argparse.Namespace:
    """The limits of a command, with --seed; its help is the docstring of its module."""
    parser = argparse.ArgumentParser(description=module, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {**limits, "seed": 5}.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help="(default %(default)s)")
    return parser.parse_args()
