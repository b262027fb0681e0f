#!/usr/bin/env python3
"""Writes and reads with far more data than memory, in a control group of its own: how smooth is the back-pressure?

    bench/pressure.py [--binary PATH]... [--cassandra HEAP] [--memory 256MiB] [--rows N] [--seconds S] [--rounds N]
    bench/pressure.py --memory 1GiB --cassandra 400M         the same of a Cassandra in such a group, beside it

For each binary in turn, and for a Cassandra with this heap, each round: a server in a control group with this much memory (its page
cache included) gets the rows,
then inserts at 128 in flight for some seconds, then point reads of random rows likewise. Printed: operations a second, p50, p99, the
longest, and what the device gives to random reads of 16 KiB from the same files by as many threads, past the page cache. Targets: p99 of
inserts <= 10 ms; reads >= 60 % of the device's. Needs root (control groups, v1 or v2).
"""

import argparse
import json
import mmap
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from servers import ROOT, Cassandra, Helenus

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
BLOCK = 16 << 10


def size(text):
    return next((int(float(text[:-3]) * factor) for unit, factor in UNITS.items() if text.endswith(unit)), None) or int(text)


class Group:
    """A control group with a limit of memory."""

    def __init__(self, name, limit):
        first = Path("/sys/fs/cgroup/memory")
        self.folder = (first if first.is_dir() else Path("/sys/fs/cgroup")) / name
        self.folder.mkdir(exist_ok=True)
        file = "memory.limit_in_bytes" if first.is_dir() else "memory.max"
        (self.folder / file).write_text(str(limit))

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        for _ in range(50):
            try:
                return self.folder.rmdir()
            except OSError:
                time.sleep(0.1)


@contextmanager
def within(group):
    """Programs that are started meanwhile run in the group."""
    popen = subprocess.Popen
    try:
        subprocess.Popen = partial(popen, preexec_fn=group.enter)
        yield
    finally:
        subprocess.Popen = popen


def stress(binary, server, *words):
    done = subprocess.run([binary, "stress", "--json", words[0], "--host", server.address, *map(str, words[1:])],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def figures(result):
    """Operations a second, and p50, p99 and the greatest latency in milliseconds."""
    found = result["results"][0] if "results" in result else result
    latency = found["latency_us"]
    return (found["ops_per_s"], *(latency[name] / 1000 for name in ("p50", "p99", "max")))


def device_reads(folder, seconds, threads):
    """Random reads of blocks a second, past the page cache."""
    files = [path for path in folder.rglob("*Data.db") if path.stat().st_size > 64 * BLOCK]
    until, counts = time.monotonic() + seconds, [0] * threads

    def read(number):
        rng, block = random.Random(number), mmap.mmap(-1, BLOCK)
        opened = [(os.open(path, os.O_RDONLY | os.O_DIRECT), path.stat().st_size // BLOCK) for path in files]
        weights = [blocks for _, blocks in opened]
        while time.monotonic() < until:
            for handle, blocks in rng.choices(opened, weights, k=64):
                os.preadv(handle, [block], rng.randrange(blocks) * BLOCK)
                counts[number] += 1
        for handle, _ in opened:
            os.close(handle)

    workers = [threading.Thread(target=read, args=(number,)) for number in range(threads)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    return sum(counts) / seconds


def measure(server, client, options):
    group = Group(f"helenus-pressure-{os.getpid()}", size(options.memory))
    # A node keeps its tables in `data`, a server in a folder of that.
    data = server.folder / ("data/data" if isinstance(server, Helenus) else "data")
    try:
        with within(group):
            server.start()
        load = figures(stress(client, server, "insert", "--rows", options.rows, "--in-flight", 128, "--fresh"))
        wrote = figures(stress(client, server, "insert", "--rows", options.rows, "--in-flight", 128,
                               "--duration", f"{options.seconds}s"))
        server.flush("stress") if options.flush else None
        read = figures(stress(client, server, "read", "--rows", options.rows, "--in-flight", 128,
                              "--duration", f"{options.seconds}s"))
        files = sum(path.stat().st_size for path in data.rglob("*Data.db")) / (1 << 30)
    finally:
        server.stop()
    device = device_reads(data, options.seconds, 8)
    group.remove()
    return load, wrote, read, files, device


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", action="append", default=[])
    parser.add_argument("--cassandra", metavar="HEAP", help="measure a Cassandra with this heap too, by the first binary's load")
    parser.add_argument("--client", help="the binary that loads; by default the measured one")
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--sync", default="group", help="group (as a container starts), batch or periodic")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--flush", action="store_true", help="flush before the reads")
    options = parser.parse_args()
    binaries = options.binary or [str(ROOT / "target/optimized/helenus")]
    servers = [(binary, partial(Helenus, binary, sync=options.sync)) for binary in binaries]
    if options.cassandra:
        servers.append((f"Cassandra with a heap of {options.cassandra}", partial(Cassandra, heap=options.cassandra)))
    for round_ in range(options.rounds):
        for name, server in servers:
            folder = Path(tempfile.mkdtemp(prefix="pressure-", dir=ROOT / "target"))
            client = options.client or (name if name in binaries else binaries[0])
            try:
                load, wrote, read, files, device = measure(server(folder=folder), client, options)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            print(f"{name}, {options.memory}, {files:.1f} GiB of data")
            for phase, (ops, p50, p99, longest) in (("load", load), ("inserts", wrote), ("reads", read)):
                print(f"  {phase:8} {ops:10,.0f}/s   p50 {p50:7.2f} ms   p99 {p99:7.2f} ms   longest {longest:8.1f} ms")
            print(f"  device   {device:10,.0f}/s   reads are {100 * read[0] / device:.0f} % of that", flush=True)


if __name__ == "__main__":
    main()
