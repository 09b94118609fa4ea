"""A soak: queries come, fail and go in one watched driver that is scraped each second, and nothing may accumulate.

One job of the ledger runs all the time; beside it, every few seconds, one of eight queries is started, stopped, made
to fail, or restarted. Every ten seconds a sample is taken: memory, threads and file handles of the driver, series on
/metrics, size of the recording, the worker's queue. After the first quarter of the time each must be flat: its
Theil-Sen slope over the judged time is at most a share of its median, or within noise. Series are judged as if always
as many queries ran. In a soak of less than half an hour the bounded memories (200 batches a query, 8 MiB of recording
lines) still fill up and look like growth: memory is reported there, and not judged.

Exit code: 0 when all is flat, 1 when something is not, 2 when it could not run.

Examples:
    python -m load.bench.soak
    python -m load.bench.soak --duration 10m --page docs/performance.md
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ledgerops.analysis.html.axes import elapsed_ticks
from ledgerops.analysis.html.plot import Band, Figure, Panel, svg
from ledgerops.analysis.html.plot import Line as PlotLine
from ledgerops.cli.arg_types import seconds
from ledgerops.common import format
from ledgerops.errors import UserError
from load.bench import soak_samples
from load.bench.lines import KEPT, Line, Measured, machine, say, table
from load.bench.soak_churn import Churn
from load.bench.soak_samples import Sample, Scraper
from load.bench.soak_verdict import MIN_SAMPLES, WARM_UP_SHARE, Flatness, alike, bounded, first_judged, grows

HOUR_SECONDS = 3600.0
SAMPLE_SECONDS = 10.0
CHURN_SECONDS = 3.0
SEGMENT_BYTES, TOTAL_BYTES = 256 * 1024, 1024 * 1024  # of the recording: small, so that it rotates within minutes
MAX_QUEUE_EVENTS = 400  # two turns of the worker
MAX_GROWTH_SHARE = 0.05  # of the median, by which a figure may grow while it is judged
MIN_MEMORY_SECONDS = 1800.0  # of a soak that judges memory
MIN_SECONDS = SAMPLE_SECONDS * (MIN_SAMPLES + 1) / (1 - WARM_UP_SHARE)


def judge(samples: Sequence[Sample]) -> list[Flatness]:
    """Every figure of the samples. Raises ValueError when there are too few."""
    at = [sample.at for sample in samples]
    full = bool(at) and at[-1] + SAMPLE_SECONDS >= MIN_MEMORY_SECONDS

    def column(name: str) -> list[float]:
        return [float(getattr(sample, name)) for sample in samples]

    series = alike(column("series"), column("queries"), first_judged(at))
    return [
        grows("memory of the Python driver", "MiB", at, column("memory"), MAX_GROWTH_SHARE if full else None),
        grows("threads of the driver", "", at, column("threads"), MAX_GROWTH_SHARE),
        grows("file handles of the driver", "", at, column("handles"), MAX_GROWTH_SHARE),
        grows("series on /metrics, queries alike", "", at, series, MAX_GROWTH_SHARE),
        bounded("recording on disk", "MiB", at, column("recording"), (TOTAL_BYTES + SEGMENT_BYTES) / 2**20),
        bounded("events in the worker's queue", "", at, column("queue"), MAX_QUEUE_EVENTS),
        bounded("events dropped", "", at, column("dropped"), 0),
        grows("a scrape", "ms", at, column("scrape"), None),
        grows("queries that run", "", at, column("queries"), None),
        grows("memory of Spark's JVM", "MiB", at, column("jvm_memory"), None),
        grows("threads of Spark's JVM", "", at, column("jvm_threads"), None),
        grows("file handles of Spark's JVM", "", at, column("jvm_handles"), None),
    ]


def soak(length: float, samples: list[Sample], done: Counter[str]) -> None:
    """Runs for `length` seconds and adds to `samples` and `done`, which show how far it got when it is ended early."""
    import ledgerops
    from load.bench.session import session

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder, {"spark.driver.memory": "1g"})
        spark.sparkContext.setLogLevel("OFF")  # queries fail on purpose
        watch = ledgerops.attach(
            spark,
            port=0,
            recording=str(folder / "recording"),
            recording_segment_bytes=SEGMENT_BYTES,
            recording_total_bytes=TOTAL_BYTES,
        )
        if watch.url is None:
            raise UserError(f"cannot attach: {watch.error}")
        churn = Churn(spark, folder, done)
        try:
            churn.begin()
            with Scraper(f"{watch.url}/metrics") as scraper:
                try:
                    _run(length, churn, scraper, folder / "recording", samples)
                finally:
                    done["scrape"] = scraper.scrapes
            if scraper.failed:
                raise UserError(f"{scraper.failed} of {scraper.failed + scraper.scrapes} scrapes were not answered")
        finally:
            churn.end()
            watch.close()
            spark.stop()


def _run(length: float, churn: Churn, scraper: Scraper, recording: Path, samples: list[Sample]) -> None:
    began = time.monotonic()
    next_act, next_sample = CHURN_SECONDS, SAMPLE_SECONDS
    while (now := time.monotonic() - began) < length:
        if now >= next_act:
            churn.step()
            next_act = max(next_act + CHURN_SECONDS, time.monotonic() - began)
        if now >= next_sample:
            if not churn.steady:
                raise UserError("the query that was left alone has ended; see Spark's log")
            samples.append(soak_samples.read_sample(now, scraper, recording, churn.alive))
            next_sample += SAMPLE_SECONDS
            say(f"{now / 60:.1f} min: {samples[-1]}")
        time.sleep(0.1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the soak and writes its samples. Returns 0, 1 if a figure grows, or 2 if the soak could not be judged."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--duration", type=seconds, default=HOUR_SECONDS, metavar="TIME", help="90s, 10m, 1h (default 1h)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("runs") / "soak", metavar="FOLDER", help="samples.csv goes there"
    )
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write the page of make bench, with this as a section"
    )
    args = parser.parse_args(arguments)
    try:
        return _soaked(args)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _soaked(args: argparse.Namespace) -> int:
    if args.duration < MIN_SECONDS:
        raise UserError(f"a soak of {args.duration:g} s is too short; give at least {MIN_SECONDS / 60:.1f} minutes")
    samples: list[Sample] = []
    done: Counter[str] = Counter()
    at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    try:
        soak(args.duration, samples, done)
    except KeyboardInterrupt:
        say("ended early")
    finally:
        soak_samples.write(samples, args.out / "samples.csv")
    try:
        found = judge(samples)
    except ValueError as error:
        raise UserError(str(error)) from None
    changes = ", ".join(f"{count:,} {act}s" for act, count in done.items())
    changes += f" in {samples[-1].at / 60:.0f} minutes"
    lines = [Line("changes and scrapes", changes), *(each.line for each in found)]
    print(f"{table(lines)}\nsamples in {args.out / 'samples.csv'}")
    if args.page:
        from load.bench import __main__

        Measured("soak", at, samples[-1].at, machine(), lines).write(KEPT)
        args.page.with_name("soak.svg").write_text(picture(samples), "utf-8")
        __main__.write_pages(args.page, KEPT)
    growing = [each.name for each in found if each.flat is False]
    print(f"not flat: {', '.join(growing)}" if growing else "flat")
    return 1 if growing else 0


def picture(samples: Sequence[Sample]) -> str:
    """The figures that are judged over time, as an SVG file."""
    at = [sample.at for sample in samples]
    panels = []
    for name, unit, field in (
        ("driver's memory", "MiB", "memory"),
        ("threads", "", "threads"),
        ("file handles", "", "handles"),
        ("series on /metrics", "", "series"),
        ("recording", "MiB", "recording"),
        ("worker's queue", "", "queue"),
        ("queries that run", "", "queries"),
    ):
        values = [float(getattr(sample, field)) for sample in samples]
        title = f"{name}: {values[-1]:,.0f} {unit}".rstrip() + " at the end"
        panels.append(Panel(title, format.count, 1.0, [PlotLine(name, "l1", list(zip(at, values, strict=True)))]))
    figure = Figure(
        0.0,
        at[-1],
        panels,
        elapsed_ticks(0.0, at[-1], unit_seconds=60.0),
        "minutes",
        "figures of the soak over time",
        bands=[Band(0.0, at[first_judged(at)], "warm-up", "warm-up, not judged")],
        panel_height=48.0,
    )
    return svg(figure, standalone=True)


if __name__ == "__main__":
    sys.exit(main())
