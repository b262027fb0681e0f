#!/usr/bin/env python3
"""Point reads beside many SSTables: what does a read cost when a table has 1, 1,140 and 10,000 files?

    bench/many_files.py [--binary PATH] [--files 1 1140 10000] [--rows 40000] [--seconds 3]

Two tables without compaction have the same rows in as many files: in `spread` each file has rows of every part of the token range, so
a read asks the filter of every file; in `narrow` each file has one partition, so that the tokens of a file exclude nearly all.
Printed for each table and number of files: reads of rows that are there and of rows that are not, one at a time and 128 in flight.
"""

import argparse
import json
import socket
import struct
import subprocess
import tempfile
from pathlib import Path

from servers import ROOT, Helenus

READ = """keyspace = "many"
schema = []
[[statement]]
name = "{name}"
cql = "SELECT v FROM {table} WHERE k = :k AND c = :c"
weight = 1
[values]
k = {{ uniform = [{first}, {last}] }}
c = {{ uniform = [0, {clusterings}] }}
"""


class Client:
    """A connection of the native protocol, version 4, for statements without values."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.call(1, b"\0\x01\0\x0bCQL_VERSION\0\x053.0.0")

    def call(self, opcode, body):
        self.socket.sendall(struct.pack(">BBhBI", 4, 0, 1, opcode, len(body)) + body)
        head = self.exactly(9)
        answer = self.exactly(struct.unpack(">I", head[5:])[0])
        if head[4] == 0:
            raise SystemExit(answer[6:].decode())
        return answer

    def exactly(self, count):
        read = b""
        while len(read) < count:
            read += self.socket.recv(count - len(read)) or exit("the server has closed the connection")
        return read

    def run(self, statement):
        text = statement.encode()
        return self.call(7, struct.pack(">I", len(text)) + text + b"\0\x01\0")


class Admin:
    """The admin socket."""

    def __init__(self, folder):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(folder / "data/admin.sock"))
        self.file = self.socket.makefile("rw")

    def flush(self, table):
        self.file.write(json.dumps({"verb": "flush", "which": {"keyspace": "many", "tables": [table]}}) + "\n")
        self.file.flush()
        answer = json.loads(self.file.readline())
        if "error" in answer:
            raise SystemExit(str(answer))


def fill(server, client, admin, files, rows):
    """The rows in this many files: row `n` is partition n % files, clustering n / files, in `narrow`; both are swapped in `spread`."""
    per_file = max(1, rows // files)
    for table in ("narrow", "spread"):
        client.run(f"CREATE TABLE many.{table} (k int, c int, v text, PRIMARY KEY (k, c)) WITH compaction = "
                   "{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}")
        for file in range(files):
            for at in range(0, per_file, 200):
                some = range(at, min(per_file, at + 200))
                place = (lambda n: (file, n)) if table == "narrow" else (lambda n: (n, file))
                client.run("BEGIN UNLOGGED BATCH " + " ".join(
                    f"INSERT INTO many.{table} (k, c, v) VALUES ({k}, {c}, '{'v' * 100}');" for k, c in map(place, some)) + " APPLY BATCH")
            admin.flush(table)
    return per_file


def read(server, folder, name, table, keys):
    first, last, clusterings = keys
    file = folder / "read.toml"
    file.write_text(READ.format(name=name, table=table, first=first, last=last, clusterings=clusterings))
    found = []
    for more in (["--in-flight", "1", "--connections", "1"], ["--in-flight", "128"]):
        done = subprocess.run([server.binary, "stress", "run", file, "--host", server.address, "--json", "--duration",
                               f"{options.seconds}s", *more], stdout=subprocess.PIPE, check=True)
        found.append(json.loads(done.stdout))
    return found


def main():
    print("| files | table | rows asked for | one at a time, p50 | 128 in flight | p99 |\n|---|---|---|---|---|---|")
    for files in options.files:
        with tempfile.TemporaryDirectory(prefix="many-files-", dir=ROOT / "target") as folder:
            folder = Path(folder)
            server = Helenus(options.binary, folder, "periodic")
            server.start()
            try:
                client = Client(server.address)
                client.run("CREATE KEYSPACE many WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
                per_file = fill(server, client, Admin(folder), files, options.rows)
                for table, partitions, rows in (("narrow", files, per_file), ("spread", per_file, files)):
                    for name, keys in (("there", (0, partitions - 1, rows - 1)),
                                       ("not there", (10**9, 2 * 10**9, rows - 1))):
                        one, many = read(server, folder, name.replace(" ", "_"), table, keys)
                        print(f"| {files:,} | {table} | {name} | {one['latency_us']['p50']:.0f} us | {many['ops_per_s']:,.0f}/s | "
                              f"{many['latency_us']['p99'] / 1000:.1f} ms |", flush=True)
            finally:
                server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=ROOT / "target/optimized/helenus", type=Path)
    parser.add_argument("--files", type=int, nargs="+", default=[1, 1140, 10_000])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    main()
