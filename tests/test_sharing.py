"""Which process of a test run gets which module."""

from types import SimpleNamespace

import pytest

from tests import sharing

HEAVY, LIGHT = ["tests/spark_1.py", "tests/spark_2.py", "tests/spark_3.py"], ["tests/a.py", "tests/b.py", "tests/c.py"]
CASES = ["test_one", "test_two[a::b]"]


class Process:
    """Stands for a process of xdist: what it is told."""

    def __init__(self, name):
        self.gateway, self.given, self.shutting_down = SimpleNamespace(id=name), [], False

    def send_runtest_some(self, indices):
        self.given += indices

    def shutdown(self):
        self.shutting_down = True


@pytest.fixture
def share(tmp_path, monkeypatch):
    """A run of three processes on two cores over these modules: each process with the modules that it gets."""
    monkeypatch.setattr(sharing, "WITH_SERVERS", 2)
    options = SimpleNamespace(loadscopereorder=False, debug=False)
    factory = SimpleNamespace(getbasetemp=lambda: tmp_path)
    values = {"tx": ["popen"] * 3, "px": [], "maxprocesses": None}
    config = SimpleNamespace(option=options, _tmp_path_factory=factory, getvalue=values.get)

    def run(modules):
        asked = SimpleNamespace(config=config, workerinput={})
        sharing.ask(asked)
        sharing.answer(SimpleNamespace(workerinput=asked.workerinput), HEAVY)
        scheduler = sharing.ServersFirst(config)
        tests = [f"{module}::{case}" for module in modules for case in CASES]
        processes = [Process(f"gw{number}") for number in range(3)]
        for each in processes:
            scheduler.add_node(each)
            scheduler.add_node_collection(each, tests)
        scheduler.schedule()
        done = 0
        while any(len(each.given) > done for each in processes):
            for each in processes:
                if len(each.given) > done:
                    scheduler.mark_test_complete(each, each.given[done])
            done += 1
        given = [index for each in processes for index in each.given]
        assert scheduler.tests_finished and sorted(given) == [*range(len(tests))]
        return [[*dict.fromkeys(tests[index].split("::")[0] for index in each.given)] for each in processes]

    return run


def test_processes_with_servers_begin_with_the_modules_that_need_them_and_the_other_at_the_end(share):
    one, two, helping = share([*HEAVY, *LIGHT])
    assert {one[0], two[0]} == set(HEAVY[:2])
    assert helping[0] == LIGHT[-1]
    assert not set(helping) & set(HEAVY)


def test_the_process_without_servers_ends_when_only_modules_with_servers_are_left(share):
    one, two, helping = share([*HEAVY, LIGHT[0]])
    assert helping == [LIGHT[0]]
    assert {*one, *two} == set(HEAVY)


def test_without_such_modules_all_processes_share(share):
    one, two, helping = share(LIGHT)
    assert sorted([*one, *two, *helping]) == LIGHT
    assert one and two and helping


def test_a_process_that_nobody_asks_tells_nothing(tmp_path):
    sharing.answer(SimpleNamespace(), HEAVY)
    sharing.answer(SimpleNamespace(workerinput={}), HEAVY)
    assert list(tmp_path.iterdir()) == []
