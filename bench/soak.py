#!/usr/bin/env python3
"""A mixed load for as long as it is told: do answers stay right, compaction keep up, memory and descriptors stay flat?

    cargo build --profile optimized
    bench/soak.py --minutes 1440 [--rate 4000] [--rows 300000] [--write docs/measurements/DATE.md]

Starts a server with small memtables in a directory of its own, and three loads of `helenus stress` at fixed rates on it:
rows overwritten with the values they have, the same rows read and compared, and the statements of soak.toml (rows with a
time to live, deletions, logged batches, conditions, an index, counters, slices of what lives a minute). The set
of keys is bounded, so that what is on the disk must be too. Every ten minutes a snapshot is taken and removed. Prints a
line each --every seconds and a verdict: the second half is held against the first. A wrong answer ends it.

    bench/soak.py --day --minutes 60

Compresses a day: 24 lines, each an hour with its chores (`soak_day.py`) beside the load: flushes, compactions, tables made and
dropped, imports after TRUNCATE, consumers of changes that come, fall behind and leave, snapshots, a stop and a `kill -9`.
At the end all of that is taken back, and log, files, memory and descriptors must be where they began. The snapshots that stay until then do not
count as growth.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from servers import ROOT, Helenus, machine, write_section
from soak_day import Day

CONFIG = """commitlog_sync: group
memtable_heap_space: 32MiB
commitlog_segment_size: 8MiB
tombstone_purge_grace: 0s
"""
COLUMNS = ("minute", "requests/s", "wrong", "p99 ms", "RSS MiB", "files", "log MiB", "disk MiB", "SSTables", "pending",
           "compacted MiB", "CPU")


class Soaked(Helenus):
    """The server, with the figures it tells."""

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "soak.yaml"
        config.write_text(CONFIG)
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--data", self.folder / "data", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
                 "--config", config], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        for line in self.process.stdout:
            words = line.decode().split()
            if words[:1] == ["http"]:
                self.http = words[1]
            if words[:1] == ["listening"]:
                self.address = words[1]
                return
        raise SystemExit(f"{self.binary} did not say where it listens; its log is {self.folder / 'log'}")

    def admin(self, *words):
        subprocess.run([self.binary, "admin", *words, "--data", self.folder / "data"], check=True,
                       stdout=subprocess.DEVNULL)

    def shell(self, statements):
        """What the shell prints of them."""
        return subprocess.run([self.binary, "shell", "--host", self.address, "-e", statements], check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def run(self, *words):
        """A command on the data directory."""
        return subprocess.run([self.binary, *map(str, words), "--data", self.folder / "data"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def kill(self):
        """As `kill -9`: the process has no say."""
        self.process.kill()
        self.process.wait()

    def figures(self):
        page = urllib.request.urlopen(f"http://{self.http}/metrics", timeout=60).read().decode()
        found = {}
        for name, labels, value in re.findall(r"^(\w+)(\{.*\})? ([\d.e+-]+|NaN)", page, re.M):
            if name.startswith(("helenus_", "process_")) and 'keyspace="system' not in labels and value != "NaN":
                found[name] = found.get(name, 0) + float(value)
        data = self.folder / "data"
        found["log"] = sum(file.stat().st_size for file in (data / "commitlog").glob("*.log"))
        found["disk"], found["snapshots"] = disk_bytes(data / "data")
        found["rss"], found["files"] = resident_bytes(self.pid), len(list(Path(f"/proc/{self.pid}/fd").iterdir()))
        found["cpu"] = cpu_seconds(self.pid)
        return found


def resident_bytes(pid):
    return int(re.search(r"^VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M).group(1)) << 10


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def disk_bytes(folder):
    """Of all files, and of those in snapshots. Files go while we look."""
    total, of_snapshots = 0, 0
    for file in folder.rglob("*"):
        try:
            size = file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            continue
        total += size
        of_snapshots += size if "snapshots" in file.parts else 0
    return total, of_snapshots


def loads(arguments, server, seconds):
    """The three loads: names and commands."""
    each = max(1, arguments.rate // 3)
    common = ["--host", server.address, "--rate", str(each), "--duration", str(seconds), "--connections", "4", "--quiet"]
    rows = ["--rows", str(arguments.rows), "--keyspace", "soak"]
    return {
        "overwrite": ["insert", *rows, *common],
        "read": ["read", *rows, *common],
        "mixed": ["run", str(ROOT / "bench/soak.toml"), *common],
    }


def run_loads(arguments, server, seconds):
    """Starts the loads for some seconds; gives the processes and where their results go."""
    started = {}
    for name, words in loads(arguments, server, seconds).items():
        to = server.folder / f"{name}.json"
        to.unlink(missing_ok=True)
        with open(server.folder / f"{name}.log", "ab") as log:
            started[name] = subprocess.Popen([server.binary, "stress", *words, f"--json={to}"], stdout=log, stderr=log), to
    return started


def results(started, folder):
    """Requests, wrong ones and the worst p99 of loads that have ended."""
    requests, wrong, p99 = 0, 0, 0
    for name, (process, to) in started.items():
        status = process.wait()
        if not to.exists():
            raise SystemExit(f"the load {name} ended with status {status}: {(folder / f'{name}.log').read_text()[-2000:]}")
        result = json.loads(to.read_text())
        requests += result["operations"]
        wrong += sum(kind["count"] for kind in result["errors"].values())
        p99 = max(p99, result["latency_us"]["p99"] / 1000)
    return requests, wrong, p99


def row_of(minute, seconds, before, now, outcome):
    requests, wrong, p99 = outcome
    # Counters begin anew with a process.
    before = {name: value if now.get(name, 0) >= value else 0 for name, value in before.items()}
    return {
        "minute": minute, "requests": requests, "requests/s": requests / seconds, "wrong": wrong, "p99 ms": p99, "RSS MiB": now["rss"] / 2**20,
        "files": now["files"], "log MiB": now["log"] / 2**20, "disk MiB": (now["disk"] - now["snapshots"]) / 2**20,
        "SSTables": now["helenus_table_sstables"], "pending": now["helenus_compactions_pending"],
        "compacted MiB": (now["helenus_compaction_written_bytes_total"] - before["helenus_compaction_written_bytes_total"])
        / 2**20,
        "CPU": (now["cpu"] - before["cpu"]) / seconds,
    }


def shown(row):
    kinds = {"minute": ".0f", "requests/s": ",.0f", "p99 ms": ".1f", "CPU": ".2f"}
    return "| " + " | ".join(format(row[name], kinds.get(name, ",.0f")) for name in COLUMNS) + " |"


def verdict(rows, figures):
    """What is wrong with a run, in words; nothing if nothing is."""
    problems = []
    wrong = sum(row["wrong"] for row in rows)
    if wrong:
        problems.append(f"{wrong} requests failed or had wrong answers")
    # What fills first (caches, memtables, the first compactions) is not what it comes to.
    steady = rows[len(rows) // 5:]
    first, second = steady[:len(steady) // 2], steady[len(steady) // 2:]
    for name, share, least in (("RSS MiB", 1.10, 24), ("files", 1.20, 24), ("disk MiB", 1.25, 64), ("SSTables", 1.25, 12),
                               ("log MiB", 1.25, 32)):
        if not first:
            problems.append("it was too short for a verdict")
            break
        before, after = (statistics.mean(row[name] for row in half) for half in (first, second))
        if after > before * share and after > before + least:
            problems.append(f"{name} grew from {before:,.0f} in the first half to {after:,.0f} in the second")
    if max((row["pending"] for row in second), default=0) > 8 and second[-1]["pending"] >= first[0]["pending"] + 4:
        problems.append(f"compaction does not keep up: {second[-1]['pending']:.0f} pending at the end")
    for name in ("helenus_flush_failures_total", "helenus_compaction_failures_total", "helenus_reads_failed_total",
                 "helenus_table_unreadable_sstables"):
        if figures.get(name):
            problems.append(f"{name} is {figures[name]:.0f}")
    return problems


def soak(arguments, server):
    subprocess.run([server.binary, "stress", "insert", "--rows", str(arguments.rows), "--keyspace", "soak", "--host",
                    server.address, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    began, rows = time.monotonic(), []
    day = Day(server) if arguments.day else None
    before = server.figures()
    while time.monotonic() - began < arguments.minutes * 60:
        turn = time.monotonic()
        started = run_loads(arguments, server, arguments.every)
        if day:
            day.hour(len(rows))
        outcome = results(started, server.folder)
        if day:
            day.between(len(rows))
        elif len(rows) % max(1, 600 // arguments.every) == 0:
            server.admin("snapshot", "-t", "soak", "soak")
            server.admin("clearsnapshot", "-t", "soak", "soak")
        now = server.figures()
        rows.append(row_of((time.monotonic() - began) / 60, time.monotonic() - turn, before, now, outcome))
        before = now
        print(shown(rows[-1]), flush=True)
        if rows[-1]["wrong"]:
            break
    return rows, before, day.end() if day else []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/optimized/helenus")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--every", type=int, default=60, help="seconds a line")
    parser.add_argument("--day", action="store_true", help="the chores of a day, an hour with each line; sets --every")
    parser.add_argument("--rate", type=int, default=4000, help="requests a second, a third of each load")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--folder", type=Path, help="for the data; a temporary one by default")
    parser.add_argument("--write", type=Path, help="write the last lines and the verdict into this page")
    arguments = parser.parse_args()
    if arguments.day:
        arguments.every = max(1, int(arguments.minutes * 60 / 24))
    with tempfile.TemporaryDirectory(prefix="helenus-soak-", dir=arguments.folder) as folder:
        server = Soaked(arguments.binary, Path(folder), "group")
        server.start()
        try:
            rows, figures, left = soak(arguments, server)
            problems = verdict(rows, figures) + left
            high = int(re.search(r"^VmHWM:\s+(\d+)", Path(f"/proc/{server.pid}/status").read_text(), re.M).group(1)) / 1024
        finally:
            server.stop()
        total = sum(row["requests"] for row in rows)
        words = "; ".join(problems) or "flat, nothing wrong"
        last = f"{rows[-1]['minute']:.0f} minutes, {total:,.0f} requests, peak {high:,.0f} MiB: {words}"
        print(last)
        if arguments.write:
            some = rows[::max(1, len(rows) // 12)]
            head = "| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|\n"
            write_section(arguments.write, "soak", f"{machine()}\n\n{head}" + "\n".join(map(shown, some)) + f"\n\n{last}")
        return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
