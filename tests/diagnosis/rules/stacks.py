"""Views of a running batch at whose threads somebody looked."""

from dataclasses import replace

from ledgerops.model.records import Stack, Stacks
from ledgerops.signals.query_view import QueryView

LOOK_SECONDS = 5.0
POLL = "org.apache.kafka.clients.consumer.KafkaConsumer.position"
SENDS = "org.apache.kafka.clients.producer.internals.ProduceRequestResult.awaitAllDependents"
QUERY = "org.postgresql.jdbc.PgStatement.execute"
OPEN = "org.apache.hadoop.fs.FileSystem.open"
READ = "org.apache.spark.api.python.BasePythonRunner$ReaderInputStream.read"
COMPUTES = "org.acme.Score.of"


def stacked(view: QueryView, *looks: str, tasks: bool = True) -> QueryView:
    """The view with these looks, the newest last, at its two tasks: the call in which both are, or one each."""
    found = []
    for place, calls in enumerate(looks, 1 - len(looks)):
        each = calls.split()
        stacks = tuple(Stack(tasks, 2 // len(each), ("sun.nio.ch.EPoll.wait", call, "a.Task.run")) for call in each)
        found.append(Stacks(view.now + LOOK_SECONDS * place, "run-1", stacks))
    view.history.stacks = tuple(found)
    if view.history.running is not None:
        view.history.running = replace(view.history.running, moved=view.now - 3 * LOOK_SECONDS)
    return view
