"""Processes of a drill's driver: which there are, what they are called, and what they use. One that ended while it was
looked at is no error."""

import psutil


def descendants(pid: int) -> list[psutil.Process]:
    """The processes below a process; none when it has ended."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def command_line(process: psutil.Process) -> str:
    """The words of the command, separated by spaces; empty when the process has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def cpu_seconds(process: psutil.Process) -> float:
    """What a process and all processes below it have used of the CPU so far."""
    total = 0.0
    for child in (process, *descendants(process.pid)):
        try:
            times = child.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
