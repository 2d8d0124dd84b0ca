"""What the kernel knows about processes: CPU clocks, memory, trees, who holds a port's connections.

CPU is read from the process CPU clock, `clock_gettime(2)` with the clock id that `clock_getcpuclockid(3)` makes from a
pid: user + system time of all threads, ended ones included, in nanoseconds, so a window need not be long to escape the
10 ms ticks of /proc/PID/stat. Without IRQ time accounting (the usual kernel) it includes the network softirq that ran
in the process's context; on loopback the sender pays for the receiver's TCP input.
"""

import os
import time
from pathlib import Path

_CPUCLOCK_SCHED = 2
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_ESTABLISHED = "01"
_QUIET_LOOK_S, _QUIET_CORES = 1.0, 0.15


def cpu_ns(pid: int) -> int:
    """CPU time of a process so far; 0 once it has ended."""
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return 0


def machine_cpu_s() -> tuple[float, float]:
    """CPU seconds so far, at 10 ms resolution: what all processes used, and what the hypervisor took away."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in fields[:8])
    return (user + nice + system + irq + softirq) * _TICK_S, steal * _TICK_S


def await_quiet(limit_s: float) -> float:
    """Wait until the machine has been nearly idle for a moment, at most `limit_s`; seconds waited."""
    started_s = time.monotonic()
    while (waited_s := time.monotonic() - started_s) < limit_s:
        before_s, _ = machine_cpu_s()
        time.sleep(_QUIET_LOOK_S)
        if (machine_cpu_s()[0] - before_s) / _QUIET_LOOK_S < _QUIET_CORES:
            break
    return waited_s


def rss_bytes(pid: int) -> int:
    """Resident memory of a process; 0 once it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def tree(root: int) -> list[int]:
    """`root` and its living descendants."""
    pids = [root]
    for pid in pids:
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                pids += [int(child) for child in path.read_text().split()]
            except OSError:
                continue
    return pids


def command(pid: int) -> str:
    """The command line of a process, shortened for a table; of the program its name, for the path is the machine's."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return "(ended)"
    text = " ".join([Path(words[0]).name, *words[1:]])
    return text if len(text) <= 60 else text[:57] + "..."


def holders(pids: list[int], port: int) -> list[int]:
    """Those of `pids` that hold an established server-side connection of a local TCP port: the workers."""
    inodes = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == _ESTABLISHED and int(fields[1].rpartition(":")[2], 16) == port:
            inodes.add(f"socket:[{fields[9]}]")
    return [pid for pid in pids if inodes & _open_files(pid)]


def _open_files(pid: int) -> set[str]:
    names = set()
    for path in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            names.add(str(path.readlink()))
        except OSError:
            continue
    return names
