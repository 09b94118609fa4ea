"""Certificates for tests, made by openssl, valid for a day."""

import shlex
from pathlib import Path
from typing import NamedTuple

from tests.programs import finished, needed

KIND = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1"


class Issued(NamedTuple):
    """Paths of two PEM files."""

    certificate: str
    key: str


def authority(folder: Path) -> Issued:
    """A private authority."""
    made = Issued(str(folder / "authority.pem"), str(folder / "authority.key"))
    _openssl(f"req -x509 {KIND} -subj /CN=authority -out {made.certificate} -keyout {made.key}")
    return made


def certificate_of(issuer: Issued, name: str) -> Issued:
    """A certificate for 127.0.0.1 that the authority has signed; `name` is that of its files, beside the issuer's."""
    folder = Path(issuer.certificate).parent
    made = Issued(str(folder / f"{name}.pem"), str(folder / f"{name}.key"))
    _openssl(
        f"req -x509 {KIND} -subj /CN={name} -addext subjectAltName=IP:127.0.0.1 -CA {issuer.certificate} "
        f"-CAkey {issuer.key} -out {made.certificate} -keyout {made.key}"
    )
    return made


def _openssl(arguments: str) -> None:
    done = finished(needed("openssl"), *shlex.split(arguments))
    assert done.returncode == 0, done.stderr
