"""One drawn drill: which application runs how, what happens to it, and what a diagnosis must report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

HarmKind = Literal["time", "failure", "given", "none"]
NO_TRIGGER_SECONDS = 1.5  # scale of faults of a query that runs back to back


@dataclass(frozen=True, kw_only=True)
class Case:
    """One drawn drill. Times are seconds since the start of its query.

    `control` is what the outside does from the beginning, `changes` what it does later, `actions` what is done to
    processes and servers. `harm` says how the harm is verified: by the times of batches in the checkpoint, by the
    failures that the application noted, or as given by construction, `harm_after` seconds after the onset.
    """

    name: str
    kind: str
    seed: int = 0
    healthy: bool = False
    app: str = "warehouse"
    source: str = "rate"
    trigger: float | None = None  # seconds; None: back to back
    onset: Literal["birth", "later", ""] = ""
    onset_seconds: float = 0.0
    strength: str = ""
    query: str = ""  # its name; empty: unnamed
    blamed: str = ""  # query that the finding belongs to, where there are several
    options: Mapping[str, str | float | int | bool] = field(default_factory=dict)
    control: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[tuple[float, Mapping[str, Any]], ...] = ()
    actions: tuple[tuple[float, str, float], ...] = ()  # when, what, how much
    expected: tuple[str, ...] = ()  # any of these rules names the fault
    may: tuple[str, ...] = ()  # further rules that are true of it
    harm: HarmKind = "time"
    harm_after: float = 0.0
    due: str = "warning"  # least severity of a finding that names a fault as `given`
    seconds: float = 60.0
    master: str = "local[2]"
    conf: Mapping[str, str] = field(default_factory=dict)
    partitions: int = 4  # of topics
    kafka_watched: bool = True  # whether the observer knows the brokers
    two_inputs: bool = False
    proxied: bool = False

    def save(self, folder: Path) -> None:
        """Writes the case to `folder/case.json`."""
        (folder / "case.json").write_text(json.dumps(asdict(self), indent=1) + "\n", "utf-8")

    @staticmethod
    def load(folder: Path) -> Case:
        """Raises OSError or ValueError when the folder has no case."""
        found = json.loads((folder / "case.json").read_text("utf-8"))
        for name in ("changes", "actions", "expected", "may"):
            found[name] = tuple(tuple(each) if isinstance(each, list) else each for each in found[name])
        return Case(**found)

    @property
    def summary(self) -> str:
        """The case in a few words."""
        trigger = {None: "no trigger", -1.0: "available now"}.get(self.trigger) or f"{self.trigger:g} s"
        when = f", {self.onset}, {self.strength}" if not self.healthy else ""
        return f"{self.kind}: {self.app} from {self.source}, {trigger}{when}"
