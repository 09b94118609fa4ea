"""The operators that keep state, as the checkpoint names them, and what can be read of each."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ledgerops.errors import UserError
from ledgerops.input_files import read_text

StateKind = Literal["store", "side", "value", "list", "map", "timers"]
DEFAULT = "default"
VARIABLES: Mapping[str, StateKind] = {"ValueState": "value", "ListState": "list", "MapState": "map"}
AGGREGATION, LIMIT = "stateStoreSave", "globalLimit"
NO_KEYS = b'{"type":"struct","fields":[]}'  # the key of an aggregation, in the schema of its state
# which setting says the layout of an operator's state
FORMATS = (
    ("symmetricHashJoin", "join"),
    (AGGREGATION, "aggregation"),
    ("flatMapGroupsWithState", "flatMapGroupsWithState"),
    ("applyInPandasWithState", "flatMapGroupsWithState"),
)


@dataclass(frozen=True)
class View:
    """Something that Spark's reader shows as rows: a store, one side of a join, a variable, or the timers."""

    name: str
    kind: StateKind
    store: str  # the folder that holds it, beside others perhaps
    options: Mapping[str, str] = field(hash=False)  # of the reader
    counted: bool = True  # whether its rows are among those that Spark's metric counts
    ttl: bool = False  # whether its values expire


@dataclass(frozen=True)
class Operator:
    """One state operator of the query."""

    id: int
    name: str
    partitions: int
    stores: tuple[str, ...]
    views: tuple[View, ...]
    schema_files: tuple[str, ...] = ()  # where the state's schema is looked for, with their full paths

    def format_version(self, conf: Mapping[str, str]) -> int | None:
        """The layout of its state, as the query's settings of the batch say; None where there is but one."""
        for start, setting in FORMATS:
            if self.name.startswith(start):
                version = conf.get(f"spark.sql.streaming.{setting}.stateFormatVersion", "")
                return int(version) if version.isdecimal() else None
        return None


def read_operators(state: Path, batch: int, partitions: int | None) -> tuple[Operator, ...]:
    """The operators as of `batch`, which was planned with so many partitions (None: not known), by their ids. Raises
    UserError when the checkpoint does not describe them."""
    ids = sorted(int(folder.name) for folder in state.iterdir() if folder.is_dir() and folder.name.isdecimal())
    return tuple(_read(state / str(number), number, batch, partitions) for number in ids)


def _read(folder: Path, number: int, batch: int, partitions: int | None) -> Operator:
    file = folder / "_metadata" / "metadata"
    if not file.is_file():
        # written anew when the query starts with other state; the one in force is the newest not after the batch
        newer = [entry for entry in (folder / "_metadata" / "v2").glob("*") if entry.name.isdecimal()]
        known = [entry for entry in newer if int(entry.name) <= batch]
        if not known:
            raise UserError(
                f"{folder} does not name its operator: it was written by Spark before 4.0, or is "
                "incomplete; run the query once on Spark 4"
            )
        file = max(known, key=lambda entry: int(entry.name))
    try:
        version, _, text = read_text(file).partition("\n")
        if version not in ("v1", "v2"):
            raise UserError(f"{file} has version {version:.10}, which needs a newer ledgerops")
        found = _parse(json.loads(text), number)
        # a repartitioned state has other metadata only in version 2
        return replace(found, partitions=1 if _is_one(folder, found.name) else partitions or found.partitions)
    except (
        OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError
    ) as error:  # fmt: skip
        raise UserError(f"cannot read {file} ({type(error).__name__}: {error}); the checkpoint is damaged") from None


def _is_one(folder: Path, name: str) -> bool:
    """Whether all rows meet in partition 0, whatever the setting says, and Spark writes no other: those of a limit, and
    of an aggregation without keys."""
    schema = folder / "0" / "_metadata" / "schema"
    if name != AGGREGATION or not schema.is_file():
        return name == LIMIT
    text = schema.read_bytes()
    return text.startswith(NO_KEYS, text.find(b"{"))  # the keys' schema comes first, then that of the values


def _parse(data: Mapping[str, Any], number: int) -> Operator:
    name, stores = str(data["operatorInfo"]["operatorName"]), data["stateStoreInfo"]
    properties = json.loads(data.get("operatorPropertiesJson") or "{}")
    names = tuple(str(store["storeName"]) for store in stores)
    return Operator(
        id=number,
        name=name,
        partitions=int(stores[0]["numPartitions"]),
        stores=names,
        views=tuple(_views(name, names, properties)),
        schema_files=tuple(str(path) for store in stores for path in store.get("stateSchemaFilePaths") or ()),
    )


def _views(name: str, stores: tuple[str, ...], properties: Mapping[str, Any]) -> list[View]:
    if properties.get("useVirtualColumnFamilies") and "join" in name.lower():
        # a join that keeps both sides in one store: Spark shows them by side only
        return [View(side, "side", DEFAULT, {"joinSide": side}) for side in ("left", "right")]
    if "stateVariables" in properties:
        return [_variable(variable) for variable in sorted(properties["stateVariables"], key=_place)]
    # a join's index only says how many rows a key has
    return [
        View(
            store,
            "side" if store.endswith("WithIndexToValue") else "store",
            store,
            {"storeName": store},
            counted=not store.endswith("keyToNumValues"),
        )
        for store in stores
    ]


def _place(variable: Mapping[str, Any]) -> tuple[bool, str]:
    return str(variable["stateVariableType"]) not in VARIABLES, str(variable["stateName"])


def _variable(variable: Mapping[str, Any]) -> View:
    name, kind = str(variable["stateName"]), str(variable["stateVariableType"])
    if kind not in VARIABLES:
        return View("timers", "timers", DEFAULT, {"readRegisteredTimers": "true"}, counted=False)
    return View(name, VARIABLES[kind], DEFAULT, {"stateVarName": name}, ttl=bool(variable.get("ttlEnabled")))
