"""Makes the passwords of the stack on its first start; each file can be read by the one user that needs it.

argument: the folder, which belongs to whoever runs this
"""

import os
import secrets
import sys
from pathlib import Path

LEDGER, POSTGRES, GRAFANA = 1000, 999, 472  # users of the images
DONE = "done"


def make(folder: Path) -> bool:
    """Whether the passwords are new; those that were made whole before stay."""
    if (folder / DONE).exists():
        return False
    database = secrets.token_hex(24)  # without signs that a URL or .pgpass would need to escape
    for name, content, owner in (
        ("postgres_password", database, POSTGRES),
        ("pgpass", f"postgres:5432:ledger:ledger:{database}\n", LEDGER),
        ("grafana_password", secrets.token_hex(24), GRAFANA),
    ):
        file = folder / name
        file.unlink(missing_ok=True)  # of a first start that was cut off
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(content)
        os.chown(file, owner, owner)
    (folder / DONE).touch()
    return True


if __name__ == "__main__":
    print("new passwords" if make(Path(sys.argv[1])) else "the passwords of an earlier start")
