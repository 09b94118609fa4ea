"""Authorization headers, with secrets from files: those that an exporter requires, and those sent to one."""

import base64
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ledgerops.errors import UserError
from ledgerops.input_files import text_of

log = logging.getLogger("ledgerops")
Value = TypeVar("Value")


class Reread(Generic[Value]):
    """A value that is made from files, and made again when one of them changes: secrets are rotated.

    While the files cannot be used, the value before holds, and a warning says so once for each change. Raises UserError
    when `read` raises it at the beginning.
    """

    def __init__(self, files: Sequence[str | None], read: Callable[[], Value]) -> None:
        self._files, self._read = [file for file in files if file], read
        self._stamps = self._stamp()
        self._value = read()

    def current(self) -> Value:
        """The value of the files as they are now. Never raises UserError."""
        stamps = self._stamp()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._value = self._read()
            except UserError as error:
                log.warning("%s; the previous one stays valid", error)
        return self._value

    def _stamp(self) -> list[tuple[int, ...] | None]:
        found: list[tuple[int, ...] | None] = []
        for file in self._files:
            try:
                status = Path(file).stat()
                # of a file that could not be read, the rights or the owner change and nothing else
                rights = status.st_mode, status.st_uid, status.st_gid
                found.append((status.st_mtime_ns, status.st_size, status.st_ino, *rights))
            except OSError:
                found.append(None)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Credentials that are given to a server: files with a bearer token, or a user and a file with the password."""

    token_file: str | None = None
    user: str | None = None
    password_file: str | None = None

    def headers(self) -> dict[str, str]:
        """The header that is sent, that of the token first. Raises UserError when a file cannot be read."""
        named = authorizations(self.user, self.password_file, self.token_file)
        return {"Authorization": named[-1]} if named else {}


def authorizations(user: str | None, password_file: str | None, token_file: str | None) -> list[str]:
    """A header for each way that is set: basic, which needs both of its parts, and bearer. Raises UserError."""
    found = []
    if user and password_file:
        found.append(basic(user, secret(password_file)))
    if token_file:
        found.append(f"Bearer {secret(token_file)}")
    return found


def basic(user: str, password: str) -> str:
    """The header of basic authentication."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def secret(file: str) -> str:
    """The text of a file, without the line's end. Raises UserError when there is nothing."""
    found = text_of(Path(file)).strip()
    if not found:
        raise UserError(f"{file} is empty; put the secret there")
    return found
