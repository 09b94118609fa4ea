"""The tasks of a stage attempt, added up one by one from their events, as Spark's REST interface does live.

A stage may have a million tasks, so of each only its time and its rows are kept.
"""

from array import array
from collections.abc import Mapping
from statistics import median
from typing import Any

from ledgerops.agent.tasks import PYTHON, ran_seconds
from ledgerops.common.masking import short_exception
from ledgerops.model.records import ExecutorShare, StageSummary
from ledgerops.signals.skew import skew_score

Json = Mapping[str, Any]


class StageTasks:
    """The tasks of one attempt of a stage that have ended."""

    def __init__(self) -> None:
        self._failed_tasks = 0
        self._seconds = array("d")
        self._records = array("q")
        self._started = float("inf")  # epoch milliseconds
        self._slowest: tuple[float, int, int] = (-1.0, 0, 0)  # seconds, partition, records written
        self._shuffled = self._input_bytes = self._shuffle_read = self._shuffle_written = self._spilled = 0
        self._cpu = self._gc = self._shuffle_seconds = 0.0
        self._executors: dict[str, ExecutorShare] = {}
        self._failed_seconds = 0.0
        self._failure: Json | None = None  # why the newest failed
        self.python_seconds = 0.0  # in Python workers, of all tasks together

    def add(self, end: Json) -> None:
        """A `SparkListenerTaskEnd`. Raises KeyError, TypeError or ValueError when a field is missing or wrong."""
        info, metrics = end["Task Info"], end.get("Task Metrics")
        if info["Failed"]:
            self._failed_tasks += 1
            self._failed_seconds += max(0, info["Finish Time"] - info["Launch Time"]) / 1000
            self._failure = end.get("Task End Reason")
            self._started = min(self._started, info["Launch Time"])
        if not metrics or info["Failed"] or info.get("Killed"):
            return
        python = (each for each in info.get("Accumulables", ()) if PYTHON.search(str(each.get("Name", ""))))
        self.python_seconds += sum(float(each.get("Update") or 0) for each in python) / 1000
        read, written = metrics["Shuffle Read Metrics"], metrics["Shuffle Write Metrics"]
        seconds = ran_seconds(metrics["Executor Run Time"], info["Finish Time"] - info["Launch Time"])
        shuffled = read["Total Records Read"]
        records = metrics["Input Metrics"]["Records Read"] + shuffled
        name = str(info["Executor ID"])
        share = self._executors.get(name, ExecutorShare(0, 0.0))
        input_bytes = metrics["Input Metrics"]["Bytes Read"]
        read_bytes = read["Local Bytes Read"] + read["Remote Bytes Read"]
        spilled = metrics["Memory Bytes Spilled"] + metrics["Disk Bytes Spilled"]
        waited = read["Fetch Wait Time"] / 1000 + written["Shuffle Write Time"] / 1e9
        started, cpu, gc = info["Launch Time"], metrics["Executor CPU Time"] / 1e9, metrics["JVM GC Time"] / 1000
        partition = int(info.get("Partition ID", info["Index"]))
        wrote = metrics["Output Metrics"]["Records Written"] + written["Shuffle Records Written"]
        # all of it is known now: a task counts whole or not at all
        self._records.append(records)
        self._seconds.append(seconds)
        self._started = min(self._started, started)
        self._slowest = max(self._slowest, (seconds, partition, wrote), key=lambda each: each[0])
        self._shuffled += shuffled
        self._input_bytes += input_bytes
        self._shuffle_read += read_bytes
        self._shuffle_written += written["Shuffle Bytes Written"]
        self._spilled += spilled
        self._cpu += cpu
        self._gc += gc
        self._shuffle_seconds += waited
        self._executors[name] = ExecutorShare(share.tasks + 1, share.run_seconds + seconds)

    def summary(self, info: Json) -> StageSummary | None:
        """The stage whose `Stage Info` is given; None without a task that ended well. Raises as `add` does."""
        seconds, records = self._seconds, self._records
        if not seconds:
            return None
        submitted, ended = info.get("Submission Time"), info.get("Completion Time")
        return StageSummary(
            stage_id=int(info["Stage ID"]), name=str(info["Stage Name"]), tasks=int(info["Number of Tasks"]),
            failed_tasks=self._failed_tasks, started=self._started / 1000, ended=ended / 1000 if ended else None,
            run_seconds=sum(seconds), cpu_seconds=self._cpu, gc_seconds=self._gc, seconds_median=median(seconds),
            seconds_max=max(seconds), records=sum(records), records_median=float(median(records)),
            records_max=float(max(records)), reads_shuffle=self._shuffled > 0, input_bytes=self._input_bytes,
            shuffle_read_bytes=self._shuffle_read, shuffle_write_bytes=self._shuffle_written, spill_bytes=self._spilled,
            executors=self._executors, records_score=skew_score(records) if len(records) > 1 else None,
            seconds_score=skew_score(seconds) if len(seconds) > 1 else None, slowest_task=self._slowest[1],
            shuffle_seconds=self._shuffle_seconds, failed_seconds=self._failed_seconds,
            failure=_failure(self._failure) if self._failure else None,
            submitted=submitted / 1000 if submitted else None, slowest_wrote=self._slowest[2],
        )  # fmt: skip


def _failure(reason: Json) -> str:
    """Why a task failed, as the REST interface has it: the stack of an exception, or what Spark says of its end."""
    said = reason.get("Full Stack Trace") or reason.get("Loss Reason") or reason.get("Kill Reason")
    return short_exception(str(said or reason.get("Reason")))
