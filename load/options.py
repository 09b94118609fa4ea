"""The options of a load under locust, which are those of `ledgerops load`, and the request that they make."""

import argparse
from argparse import Namespace
from typing import Any

from ledgerops.cli.load import LATE_BUDGET, add_arguments
from ledgerops.errors import UserError
from ledgerops.load.generator.request import LoadRequest, read_request

# of the machine that locust runs on, so not shown on its web page
LOCAL = ("kafka_config", "to", "data", "samples", "manifest", "metrics_port")


def own_options() -> list[argparse.Action]:
    """The plan and the options of `ledgerops load`, without --workers: locust has its own."""
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    return [action for action in parser._actions if action.dest != "workers"]


def add_options(parser: Any, **_: Any) -> None:
    """Adds the options. The web interface sends them as text, so `read` parses them."""
    group = parser.add_argument_group("ledgerops", "what to send, and where")
    for own in own_options():
        more: dict[str, Any] = {"action": "store_true"} if own.nargs == 0 else {"choices": own.choices}
        action = group.add_argument(
            f"--{own.dest.replace('_', '-')}",
            help=own.help,
            default="default" if own.dest == "plan" else own.default if isinstance(own.default, str | bool) else "",
            env_var=f"LEDGEROPS_{own.dest.upper()}",
            **more,
        )
        # as locust's own add_argument does, which groups do not have
        action.include_in_web_ui = own.dest not in LOCAL
        action.is_secret = action.is_required = action.is_multiple = False


def read(options: Namespace) -> tuple[LoadRequest, float, int | None]:
    """The request, the lateness budget in seconds, and the port for metrics, None where it is not given. Raises
    UserError for an invalid option."""
    given = {**vars(options), **{own.dest: _value(own, options) for own in own_options()}}
    if run_time := given.get("run_time"):
        given["duration"] = min(float(run_time), given["duration"] or float("inf"))
    return read_request(Namespace(**given)), given["late_budget"] or LATE_BUDGET, given["metrics_port"]


def _value(own: argparse.Action, options: Namespace) -> Any:
    text = getattr(options, own.dest, None)
    if text in (None, "") or not callable(own.type):
        return text or None
    try:
        return own.type(str(text))
    except argparse.ArgumentTypeError as error:
        raise UserError(f"--{own.dest.replace('_', '-')}: {error}") from None
