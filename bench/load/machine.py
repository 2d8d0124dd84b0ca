"""Names the machine and the software that a measurement was made on."""

import os
import platform
import re
import ssl
import subprocess
from importlib import metadata
from pathlib import Path

_DISTRIBUTIONS = ("uvloop", "httptools", "aiofastnet", "msgspec")


def describe_machine() -> dict[str, str]:
    """Processor, cores, kernel, interpreter, library versions; each a short text."""
    return {
        "cpu": _cpu_model(),
        "cores": str(len(os.sched_getaffinity(0))),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "openssl": ssl.OPENSSL_VERSION,
        "nginx": _nginx_version(),
    } | {name: metadata.version(name) for name in _DISTRIBUTIONS}


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _nginx_version() -> str:
    try:
        output = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return "not installed"
    found = re.search(r"nginx/(\S+)", output)
    return found[1] if found else "unknown"
