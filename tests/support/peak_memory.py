"""The peak memory of a Spark application's processes, of which this one is the driver's Python."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

_SECONDS = 0.1  # between two looks, which only the peaks of processes that end depend on


@contextmanager
def peak_memory() -> Iterator[Counter[str]]:
    """Look at the processes while a block runs; the master must be `local-cluster`.

    Yields
    ------
    Counter
        Once the block is left: the peaks in bytes of `driver Python`, `driver JVM`, `executor JVM`
        and, where there are any, `executor Python` since they started. The last is the most that
        workers had at a time.
    """
    peaks: Counter[str] = Counter()
    is_over = Event()

    def look() -> None:
        is_last = False
        while not is_last:
            is_last = is_over.wait(_SECONDS)
            for role, size in _resident().items():
                peaks[role] = max(peaks[role], size)

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        is_over.set()
        thread.join()


def _resident() -> Counter[str]:
    """The peak resident memory of each role; pages that processes share count for each."""
    this: list[tuple[int, str, int]] = []
    children: defaultdict[int, list[tuple[int, str, int]]] = defaultdict(list)
    for file in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = 1024 * int(fields.get("VmHWM", "0 kB").split()[0])  # one that has ended has none
        pid = int(file.parent.name)
        siblings = this if pid == os.getpid() else children[int(fields["PPid"])]
        siblings.append((pid, fields["Name"], size))
    found: Counter[str] = Counter()
    todo = [("driver", "Python", *each) for each in this]
    while todo:
        owner, kind, pid, _, size = todo.pop()
        found[f"{owner} {kind}"] += size
        for child in children[pid]:
            if child[1] == "java":
                todo.append(("executor" if kind == "JVM" else owner, "JVM", *child))
            elif child[1].startswith("python"):
                todo.append((owner, "Python", *child))
    return found
