"""Authorization headers, with secrets that stand in files: what an exporter asks for, and what is given to one."""

from __future__ import annotations

import base64
from pathlib import Path

from ledgerops.errors import UserError


def authorizations(user: str | None, password_file: str | None, token_file: str | None) -> list[str]:
    """A header for each way that is set: basic, which needs both of its parts, and bearer. Raises UserError."""
    found = []
    if user and password_file:
        pair = f"{user}:{secret(password_file)}".encode()
        found.append(f"Basic {base64.b64encode(pair).decode()}")
    if token_file:
        found.append(f"Bearer {secret(token_file)}")
    return found


def secret(file: str) -> str:
    """What stands in a file, without the line's end. Raises UserError when there is nothing."""
    try:
        found = Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot read {file}: {reason.lower()}") from None
    if not found:
        raise UserError(f"{file} is empty: it must hold the secret")
    return found
