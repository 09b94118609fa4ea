"""`ledgerops broker` where it cannot start."""

import socket


def test_a_port_that_is_taken_is_refused(refusal, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = f"port {port} is in use; give another --port, or 0 for any free one"
        assert refusal("broker", "--port", port, "--folder", "kafka") == line
    assert not (tmp_path / "kafka").exists()
