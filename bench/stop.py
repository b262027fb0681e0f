#!/usr/bin/env python3
"""How long a server takes to end, and what many tables cost to flush, make and drop.

    cargo build --profile optimized
    bench/stop.py [--binary target/optimized/helenus] [--old OTHER] [--tables 1,20,200] [--megabytes 500] [--times 5] [--folder DIR]

For each number of tables: a server in a directory of its own gets so many tables of one row each; then SIGTERM, and the time to
the end of the process is taken, --times times, each on a new directory. The same for one table of --megabytes in memory (0 for
none). Beside it, of the last run: `admin flush` of a second row in each table, CREATE TABLE and DROP TABLE of a table that has
been flushed, milliseconds a table. After each stop the server is started again, and every row must be there, with nothing
replayed. With --old the same of another binary, in turns. Prints the medians beside the targets; exit code 1 if one is missed.
What else the machine does shows in the figures, and so does the disk of --folder.
"""

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from servers import ROOT, Helenus

TARGET_MS = {1: 300, 20: 300}
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


def cql(server, statements):
    """Runs statements through the shell; milliseconds."""
    begin = time.monotonic()
    subprocess.run([server.binary, "shell", server.address, "-f", "-"], input="\n".join(statements), text=True, check=True,
                   stdout=subprocess.DEVNULL)
    return (time.monotonic() - begin) * 1000


def end(server):
    """SIGTERM; milliseconds until the process is gone."""
    begin = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    status = server.process.wait(timeout=600)
    took = (time.monotonic() - begin) * 1000
    if status != 0:
        raise SystemExit(f"the server ended with status {status}; its log is {server.folder / 'log'}")
    return took


def check(server, tables):
    """The next start replays nothing, and all rows are there."""
    log = server.folder / "log"
    before = log.stat().st_size
    server.start()
    told = log.read_bytes()[before:].decode()
    selects = [f"SELECT count(*) FROM k.t{table};" for table in range(tables)]
    out = subprocess.run([server.binary, "shell", server.address, "--format", "csv", "-e", " ".join(selects)], text=True,
                         check=True, capture_output=True).stdout
    rows = [line for line in out.splitlines() if line.strip().isdigit()]
    if len(rows) != tables or "0" in rows:
        raise SystemExit(f"{rows.count('0')} of {tables} rows are gone after a stop\n{told}")


def of_tables(binary, folder, tables, extras):
    server = Helenus(binary, folder, "group")
    server.start()
    made = cql(server, [f"CREATE KEYSPACE k WITH replication = {REPLICATION};",
                        *(f"CREATE TABLE k.t{table} (k int PRIMARY KEY, v text);" for table in range(tables))])
    cql(server, [f"INSERT INTO k.t{table} (k, v) VALUES (1, 'one');" for table in range(tables)])
    took = end(server)
    check(server, tables)
    costs = {"create": made / tables}
    if extras:
        cql(server, [f"INSERT INTO k.t{table} (k, v) VALUES (2, 'two');" for table in range(tables)])
        begin = time.monotonic()
        subprocess.run([binary, "admin", "flush", "--data", server.folder / "data"], check=True, stdout=subprocess.DEVNULL)
        costs["flush"] = (time.monotonic() - begin) * 1000 / tables
        costs["drop"] = cql(server, [f"DROP TABLE k.t{table};" for table in range(tables)]) / tables
    end(server)
    return took, costs


def of_bytes(binary, folder, megabytes):
    config = folder.parent / f"{folder.name}.yaml"
    config.write_text(f"memory_limit: 8GiB\nmemtable_heap_space: {8 * megabytes}MiB\n")
    server = Helenus(binary, folder, "periodic", flags=["--config", config])
    server.start()
    rows = megabytes * 1_000_000 // 250
    subprocess.run([binary, "stress", "--host", server.address, "insert", "--rows", str(rows)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return end(server)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", default=ROOT / "target/optimized/helenus", type=Path)
    parser.add_argument("--old", type=Path)
    parser.add_argument("--tables", default="1,20,200")
    parser.add_argument("--megabytes", default=500, type=int)
    parser.add_argument("--times", default=5, type=int)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    binaries = [path.resolve() for path in (args.old, args.binary) if path]
    missed = False
    with tempfile.TemporaryDirectory(prefix="helenus-stop-", dir=args.folder) as root:
        for tables in (int(count) for count in args.tables.split(",") if count):
            took = {binary: [] for binary in binaries}
            costs = {}
            for turn in range(args.times):
                for index, binary in enumerate(binaries):
                    folder = Path(root) / f"{tables}-{turn}-{index}"
                    ms, costs[binary] = of_tables(binary, folder, tables, turn + 1 == args.times)
                    took[binary].append(ms)
            for binary in binaries:
                median, target = statistics.median(took[binary]), TARGET_MS.get(tables)
                beside = ", ".join(f"{name} {ms:.1f} ms a table" for name, ms in costs[binary].items())
                wanted = f"target {target} ms" if target else "no target"
                print(f"{tables:4} tables: stop {median:6.0f} ms ({min(took[binary]):.0f} to {max(took[binary]):.0f}), {wanted}; "
                      f"{beside}  [{binary}]", flush=True)
                missed |= binary == args.binary.resolve() and target is not None and median > target
        if args.megabytes:
            for index, binary in enumerate(binaries):
                ms = of_bytes(binary, Path(root) / f"bytes-{index}", args.megabytes)
                print(f"{args.megabytes} MB in memory: stop {ms:.0f} ms, no target  [{binary}]", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
