"""Who is let in: names on loopback, credentials, certificates."""

import logging
import shutil
import socket
import ssl

import pytest

from ledgerops.common.http_access import Access, Rules, tls_contexts
from ledgerops.errors import UserError
from tests.certificates import certificate_of

LOOPBACK = "127.0.0.1"


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    return file


OURS = ["localhost:9464", "127.0.0.1:9464", "[::1]:9464", "LOCALHOST."]
OTHERS = ["evil.example", "evil.example:9464", "127.0.0.1.evil.example", "169.254.169.254", "[::1"]


@pytest.mark.parametrize("host", [*OURS, *OTHERS])
@pytest.mark.parametrize("path", ["/healthz", "/recording", "/"])
def test_on_loopback_a_name_that_is_not_this_machines_is_refused(serve, path, host):
    assert serve().get(path, Host=host)[0] == (200 if host in OURS else 421)


def test_a_server_that_is_open_to_the_network_takes_any_name(serve):
    assert serve(Rules(host="0.0.0.0")).get(Host="driver.example")[0] == 200


@pytest.mark.parametrize(
    ("host", "authenticates", "warned"),
    [
        ("0.0.0.0", False, True),
        ("", False, True),
        (LOOPBACK, False, False),
        ("localhost", False, False),
        ("0.0.0.0", True, False),
    ],
)
def test_an_open_server_without_authentication_is_warned_of(secret, caplog, host, authenticates, warned):
    with caplog.at_level(logging.WARNING, "ledgerops"):
        Access(Rules(host=host, token_file=str(secret) if authenticates else None), "a risk")
    assert ["without authentication: a risk" in record.getMessage() for record in caplog.records] == [True] * warned


@pytest.fixture
def guarded(serve, secret):
    """A server that asks for the secret as a token."""
    return serve(Rules(host=LOOPBACK, token_file=str(secret)))


def test_a_token_is_read_again_when_its_file_changes(guarded, secret, caplog):
    assert guarded.get(Authorization="Bearer s3cret")[0] == 200

    secret.write_text("the second")
    assert guarded.get(Authorization="Bearer s3cret")[0] == 401
    assert guarded.get(Authorization="Bearer the second")[0] == 200
    secret.unlink()
    assert guarded.get(Authorization="Bearer the second")[0] == 200
    assert len(caplog.records) == 1


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer"])
def test_the_scheme_may_be_written_in_any_case(guarded, scheme):
    assert guarded.get(Authorization=f"{scheme} s3cret")[0] == 200
    assert guarded.get(Authorization=f"{scheme} S3CRET")[0] == 401


def test_a_probe_needs_no_credentials(guarded):
    assert guarded.get("/healthz")[0] == 200
    assert guarded.get("/recording")[0] == 401


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("Basic bWU6czNjcmV0", 200),
        ("Bearer s3cret", 200),
        ("Bearer s3crets", 401),
        ("Basic eDp5", 401),
        ("\xff", 401),
    ],
)
def test_basic_auth_and_bearer_let_in_who_knows_the_secret(serve, secret, header, status):
    served = serve(Rules(host=LOOPBACK, user="me", password_file=str(secret), token_file=str(secret)))
    assert served.get(**({"Authorization": header} if header else {}))[0] == status


def test_an_empty_secret_is_refused(secret):
    secret.write_text("\n")
    with pytest.raises(UserError, match="secret is empty; put the secret there"):
        Access(Rules(host=LOOPBACK, token_file=str(secret)), "a risk")


def test_tls_serves_and_a_silent_client_does_not_hold_others_up(serve, ca):
    made = certificate_of(ca, "server")
    served = serve(Rules(host=LOOPBACK, certificate=made.certificate, key=made.key))
    context = ssl.create_default_context(cafile=ca.certificate)
    served.opened()  # a client that says nothing
    assert served.get(context=context)[::2] == (200, b"ok")


def test_without_room_a_tls_client_is_cut_off_without_an_answer(serve, ca):
    made = certificate_of(ca, "server")
    served = serve(Rules(host=LOOPBACK, certificate=made.certificate, key=made.key), max_per_address=0)
    [client] = served.opened()
    assert client.makefile("rb").read() == b""
    assert served.refused == {"address": 1}


def test_a_certificate_that_is_renewed_is_served_without_a_restart(serve, ca):
    first, second = certificate_of(ca, "first"), certificate_of(ca, "second")
    served = serve(Rules(host=LOOPBACK, certificate=first.certificate, key=first.key))

    def name():
        context = ssl.create_default_context(cafile=ca.certificate)
        with (
            socket.create_connection((LOOPBACK, served.port), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname=LOOPBACK) as client,
        ):
            return dict(*client.getpeercert()["subject"])["commonName"]

    assert name() == "first"
    shutil.copy(second.key, first.key)
    shutil.copy(second.certificate, first.certificate)
    assert name() == "second"


def test_a_certificate_that_is_none_is_named(tmp_path):
    with pytest.raises(UserError, match="cannot use the certificate"):
        tls_contexts(Rules(host=LOOPBACK, certificate=str(tmp_path / "absent.pem")))
