"""Folders of drawn drills as a run leaves them, made by hand."""

import gzip
import json
from pathlib import Path

from ledgerops.drills.harness.case import Case
from tests.drills.checkpoints import T0, checkpoint

SINK = Case(
    name="07-slow-sink", kind="slow-sink", seed=18, app="warehouse", trigger=2.0, onset="later", onset_seconds=40.0,
    strength="clear", query="orders", expected=("slow-sink",), harm="given", harm_after=5.0, seconds=60.0,
    changes=((40.0, {"sink": 3.6}),), place=("sink", "foreachBatch"), options={"rate": 100},
)  # fmt: skip
QUIET = Case(
    name="08-bursts", kind="bursts", seed=18, healthy=True, app="counts", harm="none", query="calm", seconds=60.0
)


def finding(rule, severity="warning"):
    return {"rule": rule, "severity": severity}


def drill(below: Path, case: Case, answers: dict[float, list[dict]], scrapes: list[dict] | None = None) -> Path:
    """The folder of a drill whose live exporter gave these findings, all of them root causes, at these seconds."""
    folder = below / f"seed-{case.seed}" / case.name
    for part in ("recording", "eventlog/eventlog_v2_local-1", "application"):
        (folder / part).mkdir(parents=True)
    case.save(folder)
    times = {"origin": T0, "injected": T0 + case.onset_seconds, "ended": T0 + case.seconds}
    (folder / "times.json").write_text(json.dumps(times))
    lines = [
        {"at": T0 + at, "diagnosis": {"queries": [{"query": case.query, "root_causes": given, "findings": given}]}}
        for at, given in answers.items()
    ]
    (folder / "live.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with gzip.open(folder / "scrapes.jsonl.gz", "wt") as file:
        for scrape in scrapes or [{"at": T0, "job": "ledgerops", "text": "ledgerops_lag 1\n"}]:
            file.write(json.dumps(scrape) + "\n")
    ran = f"/mnt/runs/seed-{case.seed}/{case.name}"
    (folder / "recording" / "recording-000001.jsonl").write_text(json.dumps({"source": f"file:{ran}/input"}) + "\n")
    properties = {"spark.eventLog.dir": f"file://{ran}/eventlog", "spark.driver.host": "10.9.8.7"}
    event = {"Spark Properties": properties, "Host": "10.9.8.7", "Batch": f"{ran}/input/part-1.json"}
    log = json.dumps(event, separators=(",", ":"))
    (folder / "eventlog" / "eventlog_v2_local-1" / "events_1_local-1").write_text(log + "\n")
    for source in (f"{case.app}.py", "outside.py"):
        (folder / "application" / source).write_text("# source\n")
    checkpoint(folder / "checkpoints" / case.query, planned=range(0, int(case.seconds), 2))
    return folder
