"""The generator's own metrics: the dashboard "Load test" is made of these names and labels."""

import socket
import urllib.request

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from ledgerops.load.generator.accounting import SentCounts
from ledgerops.load.generator.metrics import LoadMetrics, serving
from ledgerops.servers.process import free_port
from tests.refusals import refusal_of


def told(board):
    registry = CollectorRegistry(auto_describe=False)
    registry.register(board)
    return generate_latest(registry).decode()


def test_every_number_of_the_counts_is_a_series():
    sent = SentCounts(planned=10, produced=9, acknowledged=8, refused=1, backpressure_seconds=0.5, rate=100.0)
    sent.add_lateness(np.array([0.0004, 0.004, 0.3]))
    board = LoadMetrics("burst")
    board.publish(sent)
    labels = '{plan="burst",worker="0"}'
    bucket = 'ledgerops_load_lateness_seconds_bucket{{le="{}",plan="burst",worker="0"}} {}'.format
    assert set(told(board).splitlines()) >= {
        f"ledgerops_load_planned_records_total{labels} 10.0",
        f"ledgerops_load_produced_records_total{labels} 9.0",
        f"ledgerops_load_acknowledged_records_total{labels} 8.0",
        f"ledgerops_load_refused_records_total{labels} 1.0",
        f"ledgerops_load_backpressure_seconds_total{labels} 0.5",
        f"ledgerops_load_planned_rate{labels} 100.0",
        f"ledgerops_load_valid{labels} 0.0",
        *(bucket("0.001", 1.0), bucket("0.005", 2.0), bucket("0.25", 2.0), bucket("+Inf", 3.0)),
        f"ledgerops_load_lateness_seconds_count{labels} 3.0",
    }


def test_each_sender_has_its_series_and_one_on_time_is_valid():
    board = LoadMetrics("burst")
    board.publish(SentCounts(planned=5, produced=5), 0)
    board.publish(SentCounts(planned=6, produced=6), 1)

    assert 'ledgerops_load_planned_records_total{plan="burst",worker="1"} 6.0' in told(board)
    assert told(board).count('ledgerops_load_valid{plan="burst",worker=') == 2
    assert 'ledgerops_load_valid{plan="burst",worker="0"} 1.0' in told(board)


def test_before_the_first_counts_there_is_no_sample():
    assert [line for line in told(LoadMetrics("burst")).splitlines() if not line.startswith("#")] == []


def test_they_are_served_while_the_load_lasts():
    port, said, board = free_port(), [], LoadMetrics("burst")
    board.publish(SentCounts(planned=5, produced=5))
    with serving(port, board, said.append):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert b"ledgerops_load_planned_records_total" in answer.read()
        line = refusal_of(serving(port, board, said.append).__enter__)

    assert said == [f"metrics of the load on 127.0.0.1, port {port}, path /metrics"]
    assert line == f"cannot serve metrics on port {port}: address already in use; choose another --metrics-port"


def test_only_this_machine_reaches_them_unless_another_address_is_given():
    port, board = free_port(), LoadMetrics("burst")
    with serving(port, board, lambda text: None), pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), 10).close()
    with serving(port, board, lambda text: None, "0.0.0.0"):
        socket.create_connection(("127.0.0.2", port), 10).close()


def test_nothing_is_served_without_a_port():
    with serving(None, LoadMetrics("burst"), pytest.fail):
        pass
