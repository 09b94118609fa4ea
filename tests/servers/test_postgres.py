"""A Postgres of a run's own."""

import shutil
from pathlib import Path

import psycopg
import pytest

from tests import postgres as module
from tests.postgres import Postgres
from tests.refusals import refusal_of


def test_the_url_leads_to_a_database_named_ledger_to_which_nobody_from_outside_can_connect(postgres):
    settings = {"timezone": "UTC", "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
    with psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT current_database(), current_user").fetchone() == ("ledger", "ledger")
        assert {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in settings} == settings


def test_data_outlive_a_stop_and_a_kill_on_the_same_port(postgres, tmp_path):
    with Postgres(tmp_path / "deep" / "postgres") as own:
        url = own.url
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE t AS SELECT 1 AS x")
        own.stop()
        assert own.pid is None
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        own.start()
        with psycopg.connect(url) as connection:
            connection.execute("INSERT INTO t VALUES (2)")
        own.kill()
        own.start()
        assert own.url == url
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT x FROM t ORDER BY x").fetchall() == [(1,), (2,)]
    assert own.pid is None


def test_nothing_is_left_of_the_temporary_data(postgres, tmp_path):
    with Postgres(tmp_path) as own:
        where = own._data
        assert (where / "PG_VERSION").exists()
    assert where.is_relative_to(tmp_path) or not where.exists()


def test_without_a_server_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(module, "DEBIAN", Path("/nowhere"))
    assert refusal_of(module.binaries) == "no Postgres server found; install one (Debian: apt-get install postgresql)"
