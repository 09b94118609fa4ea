"""A checkpoint's files without a Spark that wrote them: enough for what is read without Spark."""

import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from ledgerops.checkpoint.batch_log import PARTITIONS

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CONF = {
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
}


def put(file: Path, text: str | bytes = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def planned(partitions: int) -> str:
    """A file of `offsets`, of a batch with so many partitions."""
    return f"v1\n{json.dumps({'conf': {**CONF, PARTITIONS: str(partitions)}})}\n{{}}"


def checkpoint(
    folder: Path,
    batches: Iterable[int] = (0, 1, 2),
    partitions: int = 2,
    files: Iterable[str] = ("1.changelog", "2.changelog", "3.changelog"),
    operator: str | None = "stateStoreSave",
    conf: Mapping[str, str] = CONF,
) -> Path:
    """The folder of a query whose batches are committed; `operator` None: it keeps no state."""
    put(folder / "metadata", json.dumps({"id": f"id-{folder.name}"}))
    (folder / "commits").mkdir()
    for batch in batches:
        put(folder / "offsets" / str(batch), f"v1\n{json.dumps({'conf': dict(conf)})}\n{{}}")
        put(folder / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}')
    if operator is not None:
        info = {
            "operatorInfo": {"operatorId": 0, "operatorName": operator},
            "stateStoreInfo": [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": partitions}],
        }
        put(folder / "state" / "0" / "_metadata" / "metadata", f"v1\n{json.dumps(info)}")
        for partition in range(partitions):
            for name in files:
                put(folder / "state" / "0" / str(partition) / name, "x" * 10)
    return folder


def snapshot(file: Path, rows: int | None) -> Path:
    """A RocksDB snapshot that tells its rows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    told = {"sstFiles": []} if rows is None else {"sstFiles": [], "numKeys": rows}
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("metadata", f"v1\n{json.dumps(told)}")
    return file
