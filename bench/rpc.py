#!/usr/bin/env python3
"""The old RPC interface beside CQL, and the mailings of "First Experience With Cassandra" (2009) over both and on Cassandra 5.0.6, in one run.

    cargo build --profile optimized
    bench/rpc.py [--runs 5] [--seconds 3] [--users 200000] [--as-in-the-text] [--no-cassandra] [--only doors|mailings]
        [--write docs/measurements/DATE.md]

Two tables. The first: the same requests on the same tables (of COMPACT STORAGE) of one Helenus, as prepared statements
and as calls of the old interface, in turn. The second: `helenus stress mailings` over Helenus' RPC, Helenus' CQL and
Cassandra's CQL, each into keyspaces of its own: load, flush and compaction with the bytes on disk before and after, a get
of each user's email, a slice of each user's mails. `stress` checks every answer and counts the users with 0, 1 and 2
mails; a wrong one ends the run. Figures are medians of --runs. Before Cassandra is measured it gets the same work until it
is no faster, for --warm seconds at most. Needs a JDK 17 (tests/tools/cassandra.sh) unless --no-cassandra is given.
"""

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from servers import ROOT, Cassandra, Helenus, machine, write_section

RPC_SHARE = 0.9  # of CQL's operations a second, at least
CASSANDRA_TIMES = 3

DOORS = [  # what, arguments of stress, rows, requests in flight
    ("insert 5 columns (batch_mutate)", ["insert"], "rows", 128),
    ("read 5 columns (get_slice)", ["read"], "rows", 128),
    ("add to 5 counters (batch_mutate)", ["count"], "rows", 128),
    ("100 columns of a wide row (batch_mutate)", ["load"], "wide", 32),
    ("slice of 100 from anywhere (get_slice)", ["slice", "--start", "random"], "wide", 32),
    ("slice of 10 from anywhere (get_slice)", ["slice", "--start", "random", "--limit", "10"], "wide", 128),
    ("reversed slice of 100 (get_slice)", ["slice", "--start", "random", "--reversed"], "wide", 32),
    ("100 names on 100 pages (get_slice)", ["names"], "wide", 32),
]
PHASES = [("first_day", "load, first day"), ("second_day", "load, second day"), ("get", "get of each email"),
          ("slice", "slice of each user")]
SIDES = ["Helenus RPC", "Helenus CQL", "Cassandra CQL"]


class Run:
    def __init__(self, options, folder):
        self.options = options
        self.ours = Helenus(options.binary, folder / "helenus", "periodic", serves_rpc=True)
        self.theirs = None if options.no_cassandra or options.only == "doors" else Cassandra(folder / "cassandra", options.heap)

    def stress(self, side, *args):
        """One run of the client; what it prints as JSON."""
        server = self.theirs if side == "Cassandra CQL" else self.ours
        door = ["--rpc", server.rpc] if side == "Helenus RPC" else ["--host", server.address]
        command = [self.options.stress or self.options.binary, "stress", *map(str, args), *door, "--json",
                   "--server-pid", str(server.pid)]
        done = subprocess.run(command, stdout=subprocess.PIPE)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, command))}\nended with status {done.returncode}: {done.stdout.decode()}")
        return json.loads(done.stdout)

    def sides(self):
        return SIDES if self.theirs else SIDES[:2]

    def doors(self):
        """Both interfaces of one server, the same work in turn. RPC goes first and makes the tables."""
        lines = []
        for what, args, rows, in_flight in DOORS:
            rates, costs = {}, {}
            for run in range(self.options.runs + 1):
                for side in SIDES[:2]:
                    fresh = ["--fresh"] if run == 0 and side == "Helenus RPC" and args[0] in ("insert", "count") else []
                    keyspace = "counters" if args[0] == "count" else "doors"
                    figures = self.stress(side, *args, "--rows", getattr(self.options, rows), "--keyspace", keyspace,
                                          "--in-flight", in_flight, "--duration", self.options.seconds, *fresh)
                    if run == 0:  # all rows written once, caches filled
                        continue
                    rates.setdefault(side, []).append(figures["ops_per_s"])
                    costs.setdefault(side, []).append(figures["server"]["cpu_us_per_op"])
            rpc, cql = (statistics.median(rates[side]) for side in SIDES[:2])
            rpc_us, cql_us = (statistics.median(costs[side]) for side in SIDES[:2])
            print(f"  {what}: RPC {rpc:,.0f}, CQL {cql:,.0f} ops/s; server {rpc_us:.2f}, {cql_us:.2f} us",
                  file=sys.stderr, flush=True)
            verdict = "yes" if rpc >= RPC_SHARE * cql else "**no**"
            as_fast = "yes" if cql >= rpc else f"**{cql / rpc - 1:+.0%}**"
            lines.append(f"| {what} | {rpc:,.0f} | {cql:,.0f} | {rpc / cql:.2f} x | {verdict} | {as_fast} | "
                         f"{rpc_us:.2f} | {cql_us:.2f} |")
            # The wide rows are read from one file.
            if args[0] == "load":
                for side in SIDES[:2]:
                    self.stress(side, "load", "--rows", self.options.wide, "--keyspace", "doors")
                self.ours.flush("doors")
                self.ours.compact("doors")
        head = (f"| the same work, one server | RPC ops/s | CQL ops/s | RPC/CQL | >= {RPC_SHARE} x | CQL at least as fast | "
                "RPC server us | CQL server us |")
        return "\n".join([head, "|---" * 8 + "|", *lines])

    def mailings(self, side, keyspace, *parts, users=None):
        sizes = ["--users", users or self.options.users]
        if self.options.as_in_the_text and users is None:
            sizes = ["--as-in-the-text"]
        fresh = ["--fresh"] if "load" in parts else []
        return self.stress(side, "mailings", *sizes, "--parts", ",".join(parts), "--keyspace", keyspace, *fresh)

    def warm(self):
        """The same work with fewer users, until Cassandra is no faster in any phase."""
        best, no_better, spent = {}, 0, 0.0
        while no_better < 2 and spent < self.options.warm:
            figures = self.mailings("Cassandra CQL", "warm", "load", "get", "slice", users=min(100_000, self.options.users))
            rates = {phase: figures[phase]["ops_per_s"] for phase, _ in PHASES}
            spent += sum(figures[phase]["seconds"] for phase, _ in PHASES)
            better = any(rates[phase] > best.get(phase, 0) * 1.03 for phase in rates)
            best = {phase: max(rates[phase], best.get(phase, 0)) for phase in rates}
            no_better = 0 if better else no_better + 1
            print(f"  warming Cassandra: {', '.join(f'{rate:,.0f}' for rate in rates.values())} ops/s",
                  file=sys.stderr, flush=True)

    def phases(self):
        rates = {(side, phase): [] for side in SIDES for phase, _ in PHASES}
        rest = {(side, what): [] for side in SIDES for what in ("flush", "before", "compact", "after")}
        matches = set()
        for run in range(self.options.runs):
            for side in self.sides():
                keyspace = f"mailings_{side.split()[1].lower()}"
                server = self.theirs if side == "Cassandra CQL" else self.ours
                loaded = self.mailings(side, keyspace, "load")
                rest[side, "flush"].append(server.flush(keyspace))
                rest[side, "before"].append(server.keyspace_mib(keyspace))
                rest[side, "compact"].append(server.compact(keyspace))
                rest[side, "after"].append(server.keyspace_mib(keyspace))
                read = self.mailings(side, keyspace, "get", "slice")
                figures = {phase: (read if phase in ("get", "slice") else loaded)[phase] for phase, _ in PHASES}
                for phase, _ in PHASES:
                    rates[side, phase].append(figures[phase]["ops_per_s"])
                matches.add(tuple(figures["slice"]["matches"]))
                shown = ", ".join(f"{figures[phase]['ops_per_s']:,.0f}" for phase, _ in PHASES)
                print(f"  {side}: {shown} ops/s", file=sys.stderr, flush=True)
        if len(matches) != 1:
            raise SystemExit(f"the sides found different numbers of mails: {matches}")
        return rates, rest, matches.pop()

    def mailings_table(self):
        rates, rest, matches = self.phases()
        lines = []
        for phase, what in PHASES:
            rpc, cql, theirs = (statistics.median(rates[side, phase]) if rates[side, phase] else None for side in SIDES)
            share = f"{rpc / cql:.2f} x (>= {RPC_SHARE}): {'yes' if rpc >= RPC_SHARE * cql else '**no**'}"
            times = ("" if theirs is None else
                     f"{cql / theirs:.1f} x (>= {CASSANDRA_TIMES}): {'yes' if cql >= CASSANDRA_TIMES * theirs else '**no**'}")
            cells = [what, f"{rpc:,.0f} ops/s", f"{cql:,.0f} ops/s", f"{theirs:,.0f} ops/s" if theirs else "", share, times]
            lines.append("| " + " | ".join(cells) + " |")
        for what, text, unit in (("flush", "flush", "s"), ("before", "on disk before compaction", "MiB"),
                                 ("compact", "compaction of everything", "s"), ("after", "on disk after it", "MiB")):
            figures = (rest[side, what] for side in SIDES)
            cells = [f"{statistics.median(some):.2f} {unit}" if some else "" for some in figures]
            lines.append(f"| {text} | {' | '.join(cells)} | | |")
        head = "| | Helenus RPC | Helenus CQL | Cassandra CQL | RPC/CQL | Helenus CQL/Cassandra |"
        counts = ", ".join(f"{number}: {count:,}" for number, count in enumerate(matches))
        return "\n".join([head, "|---" * 6 + "|", *lines, "", f"Users by mails found, on each side: {counts}."])


def page(options, doors, mailings, load):
    """The section; either table may be None."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    users = "the text's numbers of users" if options.as_in_the_text else f"{options.users:,} users"
    of_doors = f"""The tables are of COMPACT STORAGE, which both doors of Helenus read and write; {options.rows:,} rows of five columns,
wide rows of {options.wide:,} columns.

{doors}
"""
    of_mailings = f"""The mailings of text 003: {users}, 4 connections with 32 requests in flight on each; three statements in a batch or one
batch_mutate a mail.

{mailings}
"""
    both = "\n".join(part for part, made in ((of_doors, doors), (of_mailings, mailings)) if made)
    title = " and ".join(name for name, made in (("The old interface beside CQL", doors), ("The mailings of text 003", mailings)) if made)
    return f"""## {title}

{date.today():%d %b %Y}, commit {commit.stdout.strip()}. {machine()}; servers and client on it, load average {load:.1f} at the start. Command:

    {" ".join(["bench/rpc.py", *sys.argv[1:]])}

Medians of {options.runs} runs. All logs sync periodically; every answer was checked.

{both}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/optimized/helenus")
    parser.add_argument("--stress", type=Path, help="another binary that has `stress`")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each run of the first table")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--wide", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--as-in-the-text", action="store_true", help="3,660,761 users, 1,576,592 on the second day")
    parser.add_argument("--no-cassandra", action="store_true")
    parser.add_argument("--only", choices=["doors", "mailings"], help="one of the two tables")
    parser.add_argument("--warm", type=float, default=180, help="seconds at most of work before Cassandra is measured")
    parser.add_argument("--heap", default="4G", help="Cassandra's")
    parser.add_argument("--folder", type=Path, help="where the servers keep their data; a temporary one by default")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the text into this page")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # the servers are stopped then too
    if not options.binary.exists():
        sys.exit(f"no binary at {options.binary}: run `cargo build --profile optimized`")
    load = float(Path("/proc/loadavg").read_text().split()[0])
    with tempfile.TemporaryDirectory(prefix="helenus-rpc-", dir=options.folder) as folder:
        run = Run(options, Path(folder))
        servers = [server for server in (run.ours, run.theirs) if server]
        try:
            for server in servers:
                server.start()
            doors = run.doors() if options.only != "mailings" else None
            mailings = None
            if options.only != "doors":
                if run.theirs:
                    run.warm()
                mailings = run.mailings_table()
            text = page(options, doors, mailings, load)
        finally:
            for server in servers:
                server.stop()
    print(text)
    if options.write:
        write_section(options.write, "-".join(filter(None, ["rpc.py", options.only])), text)


main()
