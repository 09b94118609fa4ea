from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.scheduler_skew import CAUSE
from tests.diagnosis.conftest import late, stage, with_executors
from tests.tables import cases

TWO = {"driver": 0, "1": 1, "2": 1}
TWENTY = TWO | {f"{number}": 1 for number in range(3, 23)}


def on(first: int, second: int, seconds: float = 1.0, slower: float = 1.0) -> list:
    """A stage whose tasks ran one after the other, so many on each of two executors."""
    shares = {"1": (first, first * seconds), "2": (second, second * seconds * slower)}
    wall = max(took for _, took in shares.values())
    each = [seconds] * first + [seconds * slower] * second
    return [stage("join", records=[500] * len(each), seconds=each, wall=wall, executors=shares)]


@cases(
    "plan, step",
    ("with state", {"stateful": True}, "start the query again from its checkpoint"),
    ("a query without state need not wait for the data", {}, "set spark.locality.wait to 0s"),
)
def test_an_executor_that_does_nearly_all_is_named_with_what_that_costs(history, plan, step):
    [finding] = check(CAUSE, late(history, on(4, 0), cores=TWO, plan=plan))

    assert finding.summary == (
        "executor 1 runs 100% of the tasks with 50% of the cores, which costs 2.0 s of a batch of 5.0 s"
    )
    assert (finding.component.kind, finding.component.name) == ("executor", "1")
    assert finding.remedies[0].action == "compare the tasks and cores of the executors in the Spark UI"
    assert finding.remedies[1].action == step


@cases(
    "stages, cores",
    ("three to one is chance", on(3, 1), TWO),
    ("one executor", on(4, 0), {"1": 1}),
    ("local mode", on(4, 0), 2),
    ("all of the cores", on(4, 0), {"1": 4, "2": 0}),
    ("one task cannot be spread", on(1, 0), TWO),
    ("it costs little", on(4, 0, 0.2), TWO),
)
def test_others_are_not(history, stages, cores):
    assert list(check(CAUSE, late(history, stages, cores=cores))) == []


@cases(
    "stages, samples, told",
    ("they joined after all batches", on(20, 20, 0.2), [(90, TWO), (1, TWENTY)], []),
    ("they joined while the newest ran", on(20, 20, 0.2), [(90, TWO), (4, TWENTY)], []),
    ("they were there, and got no task", on(20, 20, 0.2), [(90, TWENTY)], ["50% of the tasks with 5% of the cores"]),
    ("a lost one came back, without its state", on(4, 0), [(90, {"1": 1}), (70, TWO)], ["100% of the tasks with 50%"]),
    ("it was lost before the batches", on(4, 0), [(90, TWO), (70, {"1": 1})], []),
    ("others joined since", on(4, 0), [(90, TWO), (1, TWENTY)], ["100% of the tasks with 50% of the cores"]),
)
def test_executors_get_tasks_of_the_batches_at_whose_begin_they_are_there(history, stages, samples, told):
    view = with_executors(late(history, stages), *samples)
    found = [finding.summary for finding in check(CAUSE, view)]
    assert len(found) == len(told) and all(words in each for words, each in zip(told, found, strict=True))
