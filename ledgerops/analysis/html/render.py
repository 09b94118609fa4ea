"""Templates of all HTML pages. Everything in them is escaped: names and messages come from other people's code."""

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from jinja2.loaders import FunctionLoader
from markupsafe import Markup

from ledgerops.common import format
from ledgerops.diagnosis.place import place
from ledgerops.diagnosis.proof import amount, confidence
from ledgerops.diagnosis.report import moment, relative
from ledgerops.version import __version__

BASE = "ledgerops.analysis.html"


def render(template: str, **context: Any) -> Markup:
    """A template as text. `template` is the name of a file of this package, or `PACKAGE/NAME` of another package."""
    return Markup(_environment().get_template(template).render(context))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_printable,
    )  # fmt: skip
    environment.globals["version"] = __version__
    environment.filters |= {
        "amount": amount, "confidence": confidence, "moment": moment, "place": place, "relative": relative,
        "count": format.count, "counted": format.counted, "duration": format.duration, "instant": format.instant,
        "amount_head": lambda name: (name, "amount"),  # of a column of numbers
        "percent": lambda share: f"{share:.0%}", "words": lambda name: name.replace("_", " "),
    }  # fmt: skip
    return environment


def _source(name: str) -> str:
    package, _, file = name.rpartition("/")
    return files(package or BASE).joinpath(file).read_text("utf-8")


def _printable(value: Any) -> Any:
    """Without control characters, of which one may reverse a line; escaping comes after this."""
    return value if isinstance(value, Markup) else format.clean(value) if isinstance(value, str) else value
