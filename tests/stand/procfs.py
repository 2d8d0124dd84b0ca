"""What the kernel says of processes (Linux): which there are, what they hold, who serves a connection."""

import os
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
IS_THERE = (PROC / "self" / "fd").is_dir()


def state(pid: int) -> str:
    """`R`, `S`, `Z` for a zombie, …; empty where there is no such process."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_alive(pid: int) -> bool:
    """Whether the process runs."""
    return state(pid) not in ("", "Z")


def children(pid: int) -> list[int]:
    """Its children, zombies too."""
    found: list[int] = []
    for path in PROC.glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return found


def descriptors(pid: int) -> dict[int, str]:
    """What its descriptors lead to: a path, `socket:[inode]`, `pipe:[inode]`, `anon_inode:…`; none where it is gone."""
    found: dict[int, str] = {}
    names: list[str] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        names = os.listdir(PROC / str(pid) / "fd")  # noqa: PTH208  a Path would be read again
    for name in names:
        with suppress(FileNotFoundError, ProcessLookupError):
            found[int(name)] = os.readlink(PROC / str(pid) / "fd" / name)  # noqa: PTH115  as the kernel spells it
    return found


def resident_bytes(pid: int) -> int:
    """Its resident memory."""
    return int((PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes(pid: int) -> int:
    """The most resident memory that it ever had, or had since `forget_peak`."""
    text = (PROC / str(pid) / "status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmHWM:"))


def forget_peak(pid: int) -> None:
    """From now on `peak_bytes` counts anew."""
    (PROC / str(pid) / "clear_refs").write_text("5")


def cpu_s(pid: int) -> float:
    """What it has used of processors, in steps of 10 ms."""
    fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def queued_s(pid: int) -> float:
    """How long its first thread was ready to run and waited for a core; 0 where it is gone."""
    try:
        return int((PROC / str(pid) / "schedstat").read_text().split()[1]) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def server_of(client_port: int, port: int, pids: list[int]) -> int:
    """Which of the processes has the other end of the connection between two ports of 127.0.0.1; 0: none yet."""
    wanted = f"0100007F:{port:04X} 0100007F:{client_port:04X} 01"
    for line in (PROC / "net" / "tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if " ".join(fields[1:4]) == wanted:
            socket = f"socket:[{fields[9]}]"
            return next((pid for pid in pids if socket in descriptors(pid).values()), 0)
    return 0
