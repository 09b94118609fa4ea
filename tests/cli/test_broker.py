"""`ledgerops broker` where it cannot start."""

import socket

from ledgerops.cli import main


def test_a_port_that_is_taken_is_refused(capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert main(["broker", "--port", str(port), "--folder", str(tmp_path / "kafka")]) == 2
    assert capsys.readouterr().err == f"ledgerops: port {port} is in use; give another --port, or 0 for any free one\n"
    assert not (tmp_path / "kafka").exists()
