"""The machine a benchmark ran on: enough to judge the figures, nothing that identifies the host."""

import os
import platform
import re
import time
from pathlib import Path

import msgspec

from bench.stats import median


class Machine(msgspec.Struct, frozen=True):
    """`memory_bytes`: of the machine, not of the benchmark."""

    cpu: str
    cores: int
    memory_bytes: int
    kernel: str
    filesystem: str
    python: str


def describe(directory: Path) -> Machine:
    """`directory`: where the servers keep their data, for the kind of file system."""
    return Machine(
        cpu=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=_leading_version(platform.release()),
        filesystem=_filesystem(directory.resolve()),
        python=platform.python_version(),
    )


def sync_ms(directory: Path) -> float:
    """What making 400 bytes durable takes there, by append and fdatasync: the median of 50."""
    path, times = directory / "sync-probe", []
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(50):
        start = time.perf_counter()
        os.write(descriptor, bytes(400))
        os.fdatasync(descriptor)
        times.append(time.perf_counter() - start)
    os.close(descriptor)
    path.unlink()
    return median(times) * 1e3


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _leading_version(release: str) -> str:
    match = re.match(r"[0-9]+(\.[0-9]+)*", release)
    return f"Linux {match.group() if match else 'of unknown version'}"


def _filesystem(directory: Path) -> str:
    """The type of the file system mounted nearest above the directory."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, mounted_kind, *_ = line.split()
        if directory.is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, mounted_kind
    return kind
