#!/usr/bin/env python3
"""What a read by an index costs over the size of the table, where the answer stays the same: ten rows.

    bench/index_sizes.py [--binary FILE] [--rows 10000,100000,1000000] [--seconds 3]

For each size a table of that many rows, each value of the indexed column in ten of them, loaded by the shell's COPY, flushed and
compacted; then one client asks for random values, one request at a time, once for each kind of index. Every answer is counted.
Needs the Python driver (tests/drivers).
"""

import argparse
import os
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from cassandra.cluster import Cluster

from servers import ROOT, Helenus

ROWS_A_VALUE = 10


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(binary, server, rows, folder):
    path = folder / "rows.csv"
    values = rows // ROWS_A_VALUE
    with path.open("w") as out:
        for k in range(rows):
            out.write(f"{k},{k % values},{k * 7},text of row {k}\n")
    columns = "(k,v,n,t)"
    statements = f"COPY b.t {columns} FROM '{path}'"
    subprocess.run([binary, "shell", server.address, "-e", statements], check=True, stdout=subprocess.DEVNULL)
    path.unlink()


def measure(session, pid, rows, seconds):
    statement = session.prepare("SELECT k, v, n, t FROM b.t WHERE v = ?")
    values = rows // ROWS_A_VALUE
    draw = random.Random(1)
    for _ in range(300):
        session.execute(statement, [draw.randrange(values)])
    took, began, used = [], time.monotonic(), cpu_s(pid)
    while time.monotonic() - began < seconds:
        value = draw.randrange(values)
        start = time.perf_counter()
        found = session.execute(statement, [value]).all()
        took.append(time.perf_counter() - start)
        assert len(found) == ROWS_A_VALUE and all(row.v == value for row in found), (value, found)
    return statistics.median(took) * 1e6, (cpu_s(pid) - used) / len(took) * 1e6, len(took)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=ROOT / "target/optimized/helenus")
    parser.add_argument("--rows", default="10000,100000,1000000")
    parser.add_argument("--seconds", type=float, default=3)
    asked = parser.parse_args()
    print("| rows | index | p50 at the client | CPU of the server a read |\n|---|---|---|---|")
    for rows in map(int, asked.rows.split(",")):
        for using in ("", "USING 'sai'"):
            with tempfile.TemporaryDirectory() as folder:
                server = Helenus(asked.binary, Path(folder), "periodic")
                server.start()
                host, port = server.address.rsplit(":", 1)
                cluster = Cluster([host], port=int(port))
                session = cluster.connect()
                session.execute("CREATE KEYSPACE b WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
                session.execute("CREATE TABLE b.t (k int PRIMARY KEY, v int, n bigint, t text)")
                session.execute(f"CREATE INDEX t_v ON b.t (v) {using}")
                load(asked.binary, server, rows, Path(folder))
                server.flush("b")
                server.compact("b")
                p50, cpu, count = measure(session, server.pid, rows, asked.seconds)
                kind = "sai" if using else "secondary"
                print(f"| {rows:,} | {kind} | {p50:.0f} us | {cpu:.0f} us ({count:,} reads) |", flush=True)
                cluster.shutdown()
                server.stop()


if __name__ == "__main__":
    main()
