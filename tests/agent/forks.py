"""Run as a program: a watched driver that forks in every way while it goes on asking its JVM, and counts bad answers.

arguments: how many questions at least, and whether to attach (watched, bare)
"""

import concurrent.futures
import json
import multiprocessing
import os
import sys
import threading
import time

FORKS = 20
ENDS = ("sys.exit", "os._exit", "exception")


def square(number: int) -> int:
    return number * number


def main() -> None:
    from pyspark.sql import SparkSession

    import ledgerops

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    watch = ledgerops.attach(spark, port=0, host_interval=1) if sys.argv[2] == "watched" else None
    query = spark.readStream.format("rate").load().writeStream.format("noop").queryName("forked").start()
    jvm, bad, asked, stopping = spark._jvm, [], [0], threading.Event()

    def ask() -> None:
        number = 0
        while not stopping.is_set() or number < int(sys.argv[1]):
            number += 1
            try:
                answer = jvm.java.lang.Math.addExact(number, 1)
            except BaseException as error:
                answer = repr(error)
            if answer != number + 1:
                bad.append(str(answer)[:200])
            asked[0] = number

    asking = threading.Thread(target=ask)
    asking.start()
    children = []
    for number in range(FORKS):
        child = os.fork()
        if child == 0:
            end = ENDS[number % len(ENDS)]
            threading._shutdown = lambda: None  # the child has no thread to wait for
            if watch is not None:
                assert watch.url is None and watch.diagnose()["queries"] == []
                watch.close()
            if end == "os._exit":
                os._exit(0)
            if end == "exception":
                raise ValueError("meant")
            sys.exit(0)
        children.append(child)
        time.sleep(0.05)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    fork = multiprocessing.get_context("fork")
    with fork.Pool(2) as pool:
        squares = pool.map(square, range(20))
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as executor:
        squares += list(executor.map(square, range(20)))
    stopping.set()
    asking.join()
    deadline = time.monotonic() + 60
    heard = 0
    while watch is not None and time.monotonic() < deadline:
        heard = max((each["last_seen_at"] or 0.0 for each in watch.status()["queries"]), default=0.0)
        if heard > time.time() - 5:
            break
        time.sleep(0.1)
    found = {"asked": asked[0], "bad": bad, "codes": codes, "squares": sum(squares), "heard": heard > time.time() - 15}
    found["batches"] = query.lastProgress is not None
    query.stop()
    if watch is not None:
        watch.close()
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
