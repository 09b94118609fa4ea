"""What the application's container allows it: the limits of its Linux control group, of version 1 or 2.

A machine's own figures do not show them: in a container of one core on a machine of 64, hardly any core is busy.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
NO_LIMIT_BYTES = 2**60  # version 1 writes a number that no machine has


class CpuLimit(NamedTuple):
    """CPU seconds that may be used each second, and the seconds, summed over CPUs, in which threads were held back
    because they had been used, since the group was made."""

    cores: float
    held_back_seconds: float


class MemoryLimit(NamedTuple):
    """Bytes that may be used, and how many of them are left or can be freed at once."""

    total: int
    available: int


def cpu_limit(root: Path = ROOT, own: Path = OWN) -> CpuLimit | None:
    """The smallest limit of the group and those around it that can be seen from within, and the longest that one of
    them held back, which may be another one that is shared; None without any."""
    limits = [limit for folder in _folders("cpu", root, own) if (limit := _cpu(folder)) is not None]
    if not limits:
        return None
    return CpuLimit(min(each.cores for each in limits), max(each.held_back_seconds for each in limits))


def memory_limit(root: Path = ROOT, own: Path = OWN) -> MemoryLimit | None:
    """The limit of the group, or one around it, that leaves least; None without any."""
    limits = [limit for folder in _folders("memory", root, own) if (limit := _memory(folder)) is not None]
    return min(limits, key=lambda limit: limit.available, default=None)


def _folders(controller: str, root: Path, own: Path) -> Iterator[Path]:
    """The group's folder and all around it. A container may see its own as the outermost, whatever name it has."""
    for line in _text(own).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(",") or not controllers:
            mount = root / controller if controllers else root
            folder = mount / path.lstrip("/")
            yield from (folder, *(outer for outer in folder.parents if outer.is_relative_to(mount)))


def _cpu(folder: Path) -> CpuLimit | None:
    quota, _, period = _text(folder / "cpu.max").strip().partition(" ")
    if not quota:  # version 1
        quota, period = (_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
    if not (quota.isdigit() and period.isdigit() and int(period)):
        return None
    counts = _counts(folder / "cpu.stat")
    held_back = counts["throttled_usec"] / 1e6 if "throttled_usec" in counts else counts.get("throttled_time", 0) / 1e9
    return CpuLimit(int(quota) / int(period), held_back)


def _memory(folder: Path) -> MemoryLimit | None:
    limit = _text(folder / "memory.max") or _text(folder / "memory.limit_in_bytes")
    used = _text(folder / "memory.current") or _text(folder / "memory.usage_in_bytes")
    if not limit.strip().isdigit() or int(limit) >= NO_LIMIT_BYTES or not used.strip().isdigit():
        return None
    counts = _counts(folder / "memory.stat")
    cache = counts.get("total_inactive_file", counts.get("inactive_file", 0))
    return MemoryLimit(int(limit), min(int(limit), max(0, int(limit) - int(used) + cache)))


def _counts(file: Path) -> dict[str, int]:
    pairs = (line.split() for line in _text(file).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _text(file: Path) -> str:
    try:
        return file.read_text("ascii")
    except (OSError, ValueError):
        return ""
