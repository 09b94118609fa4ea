import pytest

from ledgerops.diagnosis.rules.memory_leak import RULE
from ledgerops.model.records import Host, Process
from ledgerops.signals.query_view import QueryView
from tests.tables import cases

MIB = 2**20
AVAILABLE = 2048 * MIB


def found(history, held, role="driver_python", processes=lambda place: 1, available=AVAILABLE, apart=10.0):
    """What the rule says when the processes of a role held so many MiB, in samples so many seconds apart."""
    view = history(warm=0, seconds=[1] * 10)
    jvm, hosts = Process("driver_jvm", 9.0, 900 * MIB, 80, None), []
    for place, each in enumerate(held):
        grows = Process(role, 9.0, int(each * MIB), 9, None, processes(place))
        at = view.now - apart * (len(held) - 1 - place)
        hosts.append(Host(at, 2, 0.3, 8192 * MIB, available, None, None, (jvm, grows)))
    return list(RULE.check(QueryView(view.history, view.now, hosts)))


def rising(samples=30, step=5.0, start=200.0):
    return [start + step * n for n in range(samples)]


@cases(
    "role, who, between",
    ("a driver program that keeps what it collects", "driver_python", "the driver's Python process grows", "batch"),
    ("a function that keeps what it computes", "python_workers", "the Python workers grow", "call"),
)
def test_what_keeps_its_memory_is_found(history, role, who, between):
    [finding] = found(history, rising(), role)

    assert finding.summary == f"{who} by 524 kB per second to 362 MB: the memory will be full in 1 h 8 min"
    assert finding.component.name == who.rpartition(" ")[0]
    told = [each.value for each in finding.evidence]
    assert told == pytest.approx([345 * MIB, 0.5 * MIB, AVAILABLE, 4096.0], rel=0.01)
    look, restart = finding.remedies
    assert f"from {between} to {between}" in look.action
    assert restart.action == "restart the driver within 1 h 8 min"


def test_what_soon_fills_the_memory_is_found_after_two_minutes(history):
    [finding] = found(history, rising(samples=11, step=30.0), "python_workers")
    assert finding.evidence[3].value == pytest.approx(683, rel=0.01)


def test_what_is_freed_between_batches_does_not_hide_the_growth(history):
    held = [each + (300.0 if place % 3 else 0.0) for place, each in enumerate(rising(samples=48))]
    [finding] = found(history, held)
    assert finding.evidence[1].value == pytest.approx(0.5 * MIB, rel=0.05)


@cases(
    "held, more",
    ("it does not grow", [300.0] * 60, {}),
    ("too early to tell", rising(samples=9, step=30.0), {}),
    ("the first minute, in many samples", rising(samples=30, step=6.0), {"apart": 2.0}),
    ("a slow growth after two minutes", rising(samples=13, step=5.0), {}),
    ("workers that warm up for a minute", [200 + 40.0 * min(n, 6) for n in range(12)], {}),
    ("a cache that begins to fill", [200 + 400 * (1 - 0.9**n) for n in range(10)], {}),
    ("too few samples", rising(samples=4, step=300.0), {"apart": 100.0}),
    ("too little to tell", rising(samples=60, step=0.3), {"available": 100 * MIB}),
    ("there is room for hours", rising(step=5.0), {"available": 3 * AVAILABLE}),
    ("it grew at the start, as imports and buffers do", [*rising(samples=20), *[300.0] * 20], {}),
    ("a cache that fills", [200 + 400 * (1 - 0.9**n) for n in range(40)], {}),
    ("it is freed again and again", [200 + 12.0 * (n % 12) for n in range(60)], {}),
    ("more workers", rising(step=15.0), {"role": "python_workers", "processes": lambda n: 2 + n // 4}),
    ("a heap has a limit of its own", rising(), {"role": "driver_jvm"}),
    ("what is left is not known", rising(), {"available": None}),
)
def test_it_is_silent(history, held, more):
    assert found(history, held, **more) == []
