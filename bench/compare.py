#!/usr/bin/env python3
"""Helenus and Cassandra 5.0.9 under the same loads in one run, side by side, with what Helenus is to reach.

    cargo build --profile optimized -p helenus-cli -p bench
    bench/compare.py [--runs 5] [--seconds 5] [--rows 1000000] [--wide 1000000] [--write docs/measurements/DATE.md]

Both servers run at once and are loaded in turn by `helenus stress`, which checks every answer; a wrong one ends the
run. Figures are medians of --runs. Both sync their log periodically, as Cassandra does by default, but for the rows
named `synced`. The floor is a server of canned answers. Before each kind of load Cassandra is warmed until it gets no
faster (for --warm seconds at most), and what is read stands in one compacted SSTable a table; Cassandra's caches are off.
Then the engine is timed in process. Prints a section in Markdown. Needs a JDK 17 (tests/tools/cassandra.sh).
"""

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from servers import ROOT, Canned, Cassandra, Helenus, cpu_seconds, machine, memory_mib, removed, write_section

SLICES = [  # table, reversed, start
    ("asc", False, "first"), ("asc", False, "middle"), ("asc", False, "random"), ("asc", True, "first"),
    ("asc", True, "random"), ("desc", True, "first"), ("desc", True, "random"), ("desc", False, "random"),
]


SCAN = ["slice", "--start", "random", "--limit", "5000"]
WARM_ROUND = 10  # seconds
SETTLED_WITHIN = 60  # seconds
AT_REST = 0.1  # of a core
STEPS = ["starts", "warm", "single_rows", "indexed_and_counters", "loads", "wide_reads", "restarts", "synced"]
TIMEOUTS = {"READ_TIMEOUT", "WRITE_TIMEOUT", "OVERLOADED"}


class Row:
    """A line of the table: a figure of each side, and what ours is to be.

    `ratio`: so many times better than Cassandra's. `at_most`: a figure of its own. `over_floor`: so much above that of
    canned answers. `higher`: more is better.
    """

    def __init__(self, what, unit, ratio=None, at_most=None, over_floor=None, higher=False, note=""):
        self.what, self.unit, self.higher, self.note = what, unit, higher, note
        self.ratio, self.at_most, self.over_floor = ratio, at_most, over_floor
        self.figures = {"Helenus": [], "Cassandra": [], "floor": []}

    def add(self, side, figure):
        self.figures[side].append(figure)

    def text(self):
        ours, theirs, floor = (statistics.median(side) if side else None for side in self.figures.values())
        times = (ours / theirs if self.higher else theirs / ours) if ours and theirs else None
        targets, met = [], []
        if self.ratio is not None:
            targets.append(f">= {self.ratio:g} x")
            met.append(times is not None and times >= self.ratio)
        if self.at_most is not None:
            targets.append(f"<= {shown(self.at_most, self.unit)}")
            met.append(ours is not None and ours <= self.at_most)
        if self.over_floor is not None and floor:
            targets.append(f"<= floor + {self.over_floor:g} {self.unit}")
            met.append(ours is not None and ours <= floor + self.over_floor)
        verdict = "" if not met else "yes" if all(met) else "**no**"
        cells = [self.what, shown(ours, self.unit), shown(theirs, self.unit), f"{times:.1f} x" if times else "",
                 ", ".join(targets), verdict, shown(floor, self.unit), self.note]
        return "| " + " | ".join(cells) + " |"


def shown(figure, unit):
    if figure is None:
        return ""
    return f"{figure:,.{0 if figure >= 100 else 1 if figure >= 10 else 2}f} {unit}"


class Comparison:
    def __init__(self, options, folder):
        self.options, self.folder, self.rows = options, folder, []
        self.client_us = []
        self.repeated = 0
        self.ours = Helenus(options.binary, folder / "helenus", "periodic")
        self.theirs = Cassandra(folder / "cassandra", options.heap)
        self.sides = [self.ours, self.theirs]
        self.loaded = [*self.sides, Canned(options.canned)] if options.canned.exists() else self.sides

    def row(self, *args, **kwargs):
        self.rows.append(Row(*args, **kwargs))
        return self.rows[-1]

    def stress(self, server, *args, rows=None):
        """One run of the client; its figures."""
        command = [self.options.stress or self.options.binary, "stress", *args, "--host", server.address, "--json",
                   "--server-pid", str(server.pid), "--rows", str(rows or self.options.rows)]
        self.settle()
        for attempts_left in (2, 1, 0):
            done = subprocess.run(command, stdout=subprocess.PIPE)
            figures = json.loads(done.stdout or "{}")
            if done.returncode == 0:
                break
            # A busy machine makes Cassandra time out now and then, which is no wrong answer; ours must not.
            if server is not self.theirs or not attempts_left or set(figures.get("errors", {"?"})) - TIMEOUTS:
                text = " ".join(map(str, command))
                raise SystemExit(f"{text}\nended with status {done.returncode}: {done.stdout.decode()}")
            self.repeated += 1
        print(f"  {server.name:9} {figures['workload']}, {figures['in_flight']} in flight: "
              f"{figures['ops_per_s']:,.0f} ops/s, p50 {figures['latency_us']['p50']:,.1f} us, client "
              f"{figures['client_cpu_us_per_op']:.2f} us/op", file=sys.stderr, flush=True)
        return figures

    def settle(self):
        """Waits until no server flushes or compacts what the turn before has left: that would be in the next one's figures."""
        begun = time.monotonic()
        while time.monotonic() - begun < SETTLED_WITHIN:
            before = [cpu_seconds(server.pid) for server in self.loaded]
            time.sleep(1)
            if all(cpu_seconds(server.pid) - at < AT_REST for server, at in zip(self.loaded, before)):
                return
        print(f"  a server is still busy after {SETTLED_WITHIN} s", file=sys.stderr, flush=True)

    def seconds(self):
        return ["--duration", str(self.options.seconds), "--warmup", str(max(1, self.options.seconds / 5))]

    def starts(self):
        """Starts on empty directories, and memory at rest."""
        empty = self.row("start to first answered SELECT, empty directory", "ms", at_most=50)
        for _ in range(max(3, self.options.runs)):
            ours = Helenus(self.options.binary, removed(self.folder / "start"), "periodic")
            empty.add("Helenus", ours.start() * 1e3)
            ours.stop()
        for server in self.loaded:
            if server is not self.theirs:
                server.start()
        empty.add("Cassandra", self.theirs.start() * 1e3)
        time.sleep(5)
        idle = self.row("resident memory, idle", "MiB", at_most=30, note=f"Cassandra: heap {self.options.heap}")
        for server in self.sides:
            idle.add(server.name, memory_mib(server.pid)[0])

    def until_steady(self, *args, server=None, rows=None):
        """Loads a server, Cassandra unless another is named, until its JIT and its caches have nothing left to gain: two
        rounds in a row that are not 3 % better than the best before them, or the end of --warm."""
        best, no_better, spent = 0.0, 0, 0
        while no_better < 2 and spent < self.options.warm:
            rate = self.stress(server or self.theirs, *args, "--duration", str(WARM_ROUND), rows=rows)["ops_per_s"]
            no_better = 0 if rate > best * 1.03 else no_better + 1
            best, spent = max(best, rate), spent + WARM_ROUND

    def warm(self):
        """Lets the JIT see what is coming, gives both servers their memory, and writes the rows that are read."""
        for server in self.sides:
            self.stress(server, "insert", "--fresh")
        # Cassandra's heap has been touched when it starts; our memory is when it is used first, so it is used before.
        self.stress(self.ours, "insert", "--duration", "40")
        for name in ("insert", "read"):
            self.until_steady(name)
        self.until_steady("read", server=self.ours)

    def single_rows(self):
        """Inserts and reads by key."""
        for name in ("insert", "read"):
            many = self.row(f"{name} 5 columns, 128 in flight", "ops/s", 3, higher=True, note="6 x is the aim")
            tail = self.row("the same, p99", "us", 6)
            cost = self.row("the same, server CPU an operation", "us", 10)
            ratio, over = (2, 15) if name == "read" else (None, None)
            one = self.row(f"{name} 5 columns, one at a time, p50", "us", ratio, over_floor=over)
            for _ in range(self.options.runs):
                for server in self.loaded:
                    figures = self.stress(server, name, *self.seconds())
                    self.client_us.append(figures["client_cpu_us_per_op"])
                    many.add(server.name, figures["ops_per_s"])
                    tail.add(server.name, figures["latency_us"]["p99"])
                    cost.add(server.name, figures["server"]["cpu_us_per_op"])
                    figures = self.stress(server, name, "--in-flight", "1", *self.seconds())
                    one.add(server.name, figures["latency_us"]["p50"])

    def indexed_and_counters(self):
        """Inserts that keep an index, reads by it, and counters."""
        for server in self.sides:
            self.stress(server, "insert", "--indexed", "--fresh", "--keyspace", "indexed")
        for what, args, ratio in (("insert 5 columns, one with an index", ["insert", "--indexed"], 4),
                                  ("read 5 columns by the index", ["find"], None),
                                  ("add to 5 counters", ["count"], 8)):
            keyspace = ["--keyspace", "counters" if args == ["count"] else "indexed"]
            self.until_steady(*args, *keyspace)
            many = self.row(f"{what}, 128 in flight", "ops/s", ratio, higher=True)
            tail = self.row("the same, p99", "us")
            cost = self.row("the same, server CPU an operation", "us")
            for _ in range(self.options.runs):
                for server in self.sides:
                    figures = self.stress(server, *args, *keyspace, *self.seconds())
                    many.add(server.name, figures["ops_per_s"])
                    tail.add(server.name, figures["latency_us"]["p99"])
                    cost.add(server.name, figures["server"]["cpu_us_per_op"])

    def loads(self):
        """The wide partition into an empty table, its flush included."""
        wide = self.options.wide
        for order, ratio in (("asc", 3), ("desc", 2.5)):
            what = f"load of a {wide:,}-row partition, batches of 100, flush included, {order.upper()}"
            row = self.row(what, "rows/s", ratio, higher=True)
            for number in range(self.options.runs):
                for server in self.sides:
                    keyspace = f"load_{order}_{number}"
                    args = ["load", "--order", order, "--keyspace", keyspace, "--fresh", "--in-flight", "32"]
                    figures = self.stress(server, *args, rows=wide)
                    seconds = figures["seconds"] + server.flush(keyspace)
                    row.add(server.name, wide / seconds)
        peak = self.row("resident memory, most so far", "MiB")
        for server in self.sides:
            peak.add(server.name, memory_mib(server.pid)[1])

    def wide_reads(self):
        """Slices and names of the loaded partitions, one at a time, from one SSTable a table."""
        wide = self.options.wide
        for server in self.sides:
            for order in ("asc", "desc"):
                server.compact(f"load_{order}_0")
        measured = [(slice_row(self, *shape), ["slice", "--start", shape[2], *(["--reversed"] if shape[1] else [])],
                     shape[0]) for shape in SLICES]
        for order in ("asc", "desc"):
            row = self.row(f"100 names on 100 random pages, {order.upper()} table, p50", "us", 6)
            measured.append((row, ["names"], order))
        # The JIT is to have seen slices and names, too.
        for args in (["slice", "--start", "random"], ["slice", "--start", "random", "--reversed"], ["names"], SCAN):
            for order in ("asc", "desc"):
                self.until_steady(*args, "--order", order, "--keyspace", f"load_{order}_0", "--in-flight", "4", rows=wide)
        for order in ("asc", "desc"):
            scan = self.row(f"the partition in pages of 5,000 rows, {order.upper()} table", "rows/s", 3, higher=True)
            for _ in range(self.options.runs):
                for server in self.sides:
                    figures = self.stress(server, *SCAN, "--order", order, "--keyspace", f"load_{order}_0",
                                          "--in-flight", "1", *self.seconds(), rows=wide)
                    scan.add(server.name, figures["rows_per_s"])
        for row, args, order in measured:
            for _ in range(self.options.runs):
                for server in self.loaded:
                    figures = self.stress(server, *args, "--order", order, "--keyspace", f"load_{order}_0",
                                          "--in-flight", "1", *self.seconds(), rows=wide)
                    row.add(server.name, figures["latency_us"]["p50"])

    def restarts(self):
        """Our start with data: after a clean stop, and after a kill with writes in the log."""
        clean = self.row("start with data after a clean stop", "ms", at_most=500)
        self.ours.stop()
        clean.add("Helenus", self.ours.start() * 1e3)
        self.stress(self.ours, "insert", rows=min(self.options.rows, 200_000))
        log_mib = sum(file.stat().st_blocks * 512 for file in (self.ours.folder / "data/commitlog").glob("*")) / 2**20
        self.ours.process.kill()
        self.ours.process.wait()
        killed = self.row("start after a kill", "ms", note=f"{log_mib:.0f} MiB of log files")
        killed.add("Helenus", self.ours.start() * 1e3)
        self.stress(self.ours, "read", *self.seconds(), rows=min(self.options.rows, 200_000))

    def synced(self):
        """Both where an answer waits for the disk: our default mode, and Cassandra's that promises the same."""
        self.ours.sync, self.theirs.sync = "group", "batch"
        for server in self.sides:
            server.stop()
            server.start()
        self.until_steady("insert")
        many = self.row("insert 5 columns, synced, 128 in flight", "ops/s", higher=True, note="group here, batch there")
        one = self.row("insert 5 columns, synced, one at a time, p50", "us", note="the same")
        for _ in range(self.options.runs):
            for server in self.sides:
                many.add(server.name, self.stress(server, "insert", *self.seconds())["ops_per_s"])
                figures = self.stress(server, "insert", "--in-flight", "1", *self.seconds())
                one.add(server.name, figures["latency_us"]["p50"])

    def table(self):
        head = "| what | Helenus | Cassandra 5.0.9 | ratio | target | met | floor | |"
        return "\n".join([head, "|---" * 8 + "|", *(row.text() for row in self.rows)])


def slice_row(comparison, order, is_reversed, start):
    direction = "descending names" if is_reversed else "ascending names"
    where = {"first": "no start", "middle": "from the middle", "random": "from anywhere"}[start]
    return comparison.row(f"slice of 100, {order.upper()} table, {direction}, {where}, p50", "us", 2, over_floor=15)


def in_process(options):
    """The table of the engine's own bench, if it is built."""
    if not options.engine.exists():
        return ""
    command = [options.engine, "--rows", str(options.wide), "--seconds", str(options.seconds / 2)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return f"""
### The engine in process, same run

`cargo run --profile optimized -p bench --bin engine -- {" ".join(map(str, command[1:]))}`: one thread, no socket and no CQL, log
in periodic mode; single calls timed one by one, answers checked.

{done.stdout.decode()}"""


def page(comparison, load):
    """What goes into the page."""
    options = comparison.options
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    client = statistics.median(comparison.client_us)
    return f"""## Beside Cassandra, over the socket

{date.today():%d %b %Y}, commit {commit.stdout.strip()}. {machine()}; servers and client on it, load average {load:.1f} at the start. Command:

    {" ".join(["bench/compare.py", *sys.argv[1:]])}

- Helenus and Apache Cassandra 5.0.9 (a release's JVM options, BTI SSTables, heap {options.heap}, caches off, one SSTable
  a wide table, warmed with each kind of load until it got no faster) ran at once and were loaded in turn by `helenus
  stress`: protocol v4, prepared statements, medians of {options.runs} runs of {options.seconds:g} s. Times drift on a shared
  machine: compare within one run, as ratios. A ratio says how many times better Helenus is.
- Both logs sync periodically, but for the rows named synced. The floor is a server of canned answers (`bench/src/canned`).
- Every answer was checked: rows, order, values. {options.rows:,} single rows have keys of 7 bytes and five values of 34; wide
  rows have names of 10 bytes and values of 25, {options.wide:,} in a partition.
- {comparison.repeated} runs were repeated because Cassandra timed out in them.
- The client cost {client:.2f} us of CPU an operation at 128 in flight (median of all runs), which the servers had not.

{comparison.table()}
{in_process(options)}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/optimized/helenus")
    parser.add_argument("--canned", type=Path, default=ROOT / "target/optimized/canned")
    parser.add_argument("--engine", type=Path, default=ROOT / "target/optimized/engine")
    parser.add_argument("--stress", type=Path, help="another binary that has `stress`")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--warm", type=float, default=240,
                        help="seconds at most of each kind of load before Cassandra is measured")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--wide", type=int, default=1_000_000)
    parser.add_argument("--heap", default="4G", help="Cassandra's")
    parser.add_argument("--folder", type=Path, help="where the servers keep their data; a temporary one by default")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS, metavar="STEP",
                        help=f"only these, in this order; `starts` and `warm` are needed by what follows: {', '.join(STEPS)}")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the text into this page")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # the servers are stopped then too
    if not options.binary.exists():
        sys.exit(f"no binary at {options.binary}: run `cargo build --profile optimized`")
    load = float(Path("/proc/loadavg").read_text().split()[0])
    with tempfile.TemporaryDirectory(prefix="helenus-compare-", dir=options.folder) as folder:
        comparison = Comparison(options, Path(folder))
        try:
            for step in options.steps:
                print(f"{step}:", file=sys.stderr, flush=True)
                getattr(comparison, step)()
        finally:
            for server in comparison.loaded:
                server.stop()
    text = page(comparison, load)
    print(text)
    if options.write:
        write_section(options.write, "compare.py", text)


main()
