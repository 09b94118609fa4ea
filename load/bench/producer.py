"""The load generator against kafka-producer-perf-test, on one broker, with records of the same content and settings.

`python -m load.bench.producer send SERVERS TABLE TOPIC RECORDS` sends, and prints records and seconds.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from load.bench.lines import Line, compare
from load.bench.runs import take_turns

RECORDS = 1_000_000
ROUNDS = 3
ROOT = Path(__file__).resolve().parents[2]  # where `load` can be imported
SAMPLE_RECORDS = 10_000  # in the tool's file
TOOL = "org.apache.kafka.tools.ProducerPerformance"
SENT = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec")
PLAN = "default"
KEEP_LITTLE = {"log.retention.bytes": str(256 * 2**20), "log.segment.bytes": str(64 * 2**20)}  # of the broker


class Sending(NamedTuple):
    """Records a second by the sender's own clock, and CPU seconds of its whole process per million records."""

    rate: float
    cpu: float


def producer(say: Callable[[str], None], records: int = RECORDS, rounds: int = ROUNDS) -> Iterator[Line]:
    """Yields the lines of the part. Starts a broker and sends `records` records with each tool in every round."""
    from ledgerops.ledger.sources.topics import create
    from ledgerops.servers.kafka import Kafka

    with tempfile.TemporaryDirectory() as name, Kafka(Path(name) / "kafka", KEEP_LITTLE) as kafka:
        create(kafka.client)
        lines = Path(name) / "records.jsonl"
        size = _sample(lines)

        def run(kind: str, number: int) -> Sending:
            if kind == "the tool":
                sending = _tool(kafka, lines, "transactions", records)
            else:
                sending = send_process(kafka.servers, "transactions", "transactions", records)
            say(f"round {number + 1} of {rounds}, {kind}: {sending.rate:,.0f} records/s")
            return sending

        send_process(kafka.servers, "transactions", "transactions", records // 10)  # warms the broker
        seen = take_turns(run, ("ours", "ours again", "the tool"), rounds)
    yield Line("records", f"{records:,} transactions of {size:.0f} bytes, 5 partitions, acks=all, lz4")
    whats = {"rate": ("records per second", ",.0f"), "cpu": ("CPU seconds per million records", ".2f")}
    for name, (what, unit) in whats.items():
        ours, again, tool = ([getattr(each, name) for each in kind] for kind in seen.values())
        found = compare(ours, again, tool)
        mine, theirs = statistics.median([*ours, *again]), statistics.median(tool)
        figure = f"{1 / found.ratio:.2f} ({mine:{unit}} against {theirs:{unit}})"
        yield Line(f"generator against kafka-producer-perf-test: {what}", figure, found.floor)


def send_process(servers: str, table: str, topic: str, records: int) -> Sending:
    """The generator in a process of its own."""
    command = [sys.executable, "-m", "load.bench.producer", "send", servers, table, topic, str(records)]
    text, cpu = _run(command)
    report = json.loads(text)
    return Sending(report["records"] / report["seconds"], cpu * 1e6 / report["records"])


def send(servers: str, table: str, topic: str, records: int) -> dict[str, float]:
    """Sends the plan's first records as fast as the broker takes them, with times that lie in the past."""
    from ledgerops.common.kafka import KafkaClient
    from ledgerops.ledger.plan.plan import load_plan
    from ledgerops.ledger.plan.record_stream import PlanStream
    from ledgerops.load.generator.kafka import KafkaTarget
    from ledgerops.load.generator.pacer import produce

    stream = PlanStream(load_plan(PLAN), time.time() - 10 * 86400, cast("Any", table))
    target = KafkaTarget(KafkaClient(servers), topic, stream.partitions)
    began = time.perf_counter()
    sent = produce(stream, target, records=records, at_once=True, wait=threading.Event().wait)
    target.close()
    seconds = time.perf_counter() - began
    if target.acknowledged != sent.planned:
        raise SystemExit(f"{sent.planned - target.acknowledged} records were not acknowledged: {target.problem}")
    return {"records": sent.planned, "seconds": seconds}


def parse(output: str) -> float:
    """Records a second of the whole run, by the tool's last line. Raises ValueError with what it said instead."""
    found = [match for line in output.splitlines() if (match := SENT.match(line)) and "99th" in line]
    if not found:
        raise ValueError(f"no summary in {output.strip()[-300:]!r}")
    return float(found[-1][2])


def _tool(kafka: Any, lines: Path, topic: str, records: int) -> Sending:
    from ledgerops.load.generator.kafka import SETTINGS
    from ledgerops.servers.jars import broker_jars
    from ledgerops.servers.java import java_home

    properties = {
        "bootstrap.servers": kafka.servers,
        "acks": SETTINGS["acks"],
        "linger.ms": SETTINGS["linger.ms"],
        "compression.type": SETTINGS["compression.type"],
        "batch.size": SETTINGS["batch.size"],
        "buffer.memory": 256 * 2**20,
    }
    command: list[str] = [str(java_home() / "bin" / "java"), "-Xmx1g", "-cp", ":".join(map(str, broker_jars())), TOOL]
    command += ["--topic", topic, "--num-records", str(records), "--throughput", "-1"]
    command += ["--payload-file", str(lines), "--producer-props"]
    command += [f"{key}={value}" for key, value in properties.items()]
    text, cpu = _run(command)
    return Sending(parse(text), cpu * 1e6 / records)


def _run(command: Sequence[str]) -> tuple[str, float]:
    """What a command prints, and the CPU seconds of its process. Raises CalledProcessError when it fails."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, cwd=ROOT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        text = out.read().decode()
        if process.returncode:
            output = errors.read().decode() or text
            raise RuntimeError(f"{command[0]} ended with {process.returncode}: {output.strip()[-500:]}")
    return text, used.ru_utime + used.ru_stime


def _sample(file: Path) -> float:
    """Writes transactions, one a line; returns their mean size in bytes."""
    from ledgerops.ledger.plan.plan import load_plan
    from ledgerops.ledger.plan.record_stream import PlanStream, chunks
    from ledgerops.load.generator.records import encode

    stream = PlanStream(load_plan(PLAN), time.time() - 10 * 86400)
    values = [v for _, rows in chunks(stream, SAMPLE_RECORDS) for v in encode(stream, rows, ()).values if v is not None]
    file.write_bytes(b"\n".join(values) + b"\n")
    return statistics.fmean(map(len, values))


def main() -> int:
    """Sends from a process of its own and prints the outcome as JSON. Returns 0, or 2 for wrong arguments."""
    if len(sys.argv) != 6 or sys.argv[1] != "send":
        print(__doc__, file=sys.stderr)
        return 2
    _, _, servers, table, topic, records = sys.argv
    print(json.dumps(send(servers, table, topic, int(records))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
