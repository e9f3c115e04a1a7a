"""What a server costs, read from /proc and the file system: CPU, memory, disk."""

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_KIB = 1024


@dataclass(frozen=True)
class Memory:
    """Bytes, over a process and all its descendants. `anonymous` is the part of `pss` that no
    file backs and that therefore cannot be given back under pressure."""

    rss: int
    pss: int
    anonymous: int


@dataclass(frozen=True)
class Disk:
    """Bytes below a directory: as allocated in blocks, and as the files claim to be long."""

    allocated: int
    apparent: int


def process_tree(pid: int) -> list[int]:
    """The process and its living descendants."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _stat(int(name))
            if fields is not None:
                children.setdefault(int(fields[1]), []).append(int(name))
    tree, todo = [], [pid]
    while todo:
        current = todo.pop()
        tree.append(current)
        todo += children.get(current, [])
    return tree


def cpu_seconds(pid: int) -> float:
    """User and system time of the process, of its descendants, and of children already reaped."""
    total = 0
    for member in process_tree(pid):
        fields = _stat(member)
        if fields is not None:
            total += sum(int(field) for field in fields[11:15])
    return total / _TICKS


def machine_busy_seconds() -> float:
    """CPU time that all processes of the machine have used, over all cores, since it started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, _, _, irq, softirq = map(int, fields[1:8])
    return (user + nice + system + irq + softirq) / _TICKS


def memory(pid: int) -> Memory:
    rss = pss = anonymous = 0
    for member in process_tree(pid):
        try:
            lines = Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()[1:]
        except (FileNotFoundError, ProcessLookupError):
            continue
        sizes = {line.split(":")[0]: int(line.split()[1]) * _KIB for line in lines}
        rss += sizes["Rss"]
        pss += sizes["Pss"]
        anonymous += sizes["Pss_Anon"]
    return Memory(rss, pss, anonymous)


def forget_peak(pid: int) -> None:
    """From now on `peak` counts anew. The processes must be ours."""
    for member in process_tree(pid):
        Path(f"/proc/{member}/clear_refs").write_text("5")


def peak(pid: int) -> int:
    """The highest resident size, in bytes: the sum of what each process had at its own worst."""
    total = 0
    for member in process_tree(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            lines = Path(f"/proc/{member}/status").read_text().splitlines()
            total += sum(int(line.split()[1]) * _KIB for line in lines if line[:6] == "VmHWM:")
    return total


def disk(directory: Path) -> Disk:
    """Files that vanish while they are counted are left out."""
    allocated = apparent = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                stat = os.lstat(os.path.join(folder, name))
            except FileNotFoundError:
                continue
            allocated += stat.st_blocks * 512
            apparent += stat.st_size
    return Disk(allocated, apparent)


def wait_until_quiet(pid: int, directory: Path, limit_s: float, quiet_s: float) -> bool:
    """Wait until the server has used under 3% of a core and its disk size has not changed for
    `quiet_s`. False when that has not come about within `limit_s`."""
    deadline = time.monotonic() + limit_s
    since, cpu, size = time.monotonic(), cpu_seconds(pid), disk(directory)
    while time.monotonic() < deadline:
        time.sleep(0.25)
        now, cpu_now, size_now = time.monotonic(), cpu_seconds(pid), disk(directory)
        if size_now != size or cpu_now - cpu > 0.03 * max(now - since, 1.0):
            since, cpu, size = now, cpu_now, size_now
        elif now - since >= quiet_s:
            return True
    return False


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on (field 3 in proc(5)); None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()
