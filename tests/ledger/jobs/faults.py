"""What a crash leaves behind, made by hand."""

from pathlib import Path


def uncommit(checkpoint: Path) -> None:
    """As if the driver had been killed after the newest batch was written, before Spark noted that it was."""
    logs = [file for file in (checkpoint / "commits").iterdir() if file.name.isdigit()]
    newest = max(logs, key=lambda file: int(file.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
