#!/usr/bin/env python3
"""Measures helenus move: back-fill beside `helenus stress insert` against the same cluster, CPU per row, lag of the tail; by option beside
Cassandra's sstableloader, which loads the same rows as files.

    bench/move.py --binary target/release/helenus --to 127.0.0.1:9142 --rows 2000000

Needs a running cluster (tests/tools/cluster.sh start 3 DIR --port 9142). It makes the keyspace `move_bench` there and drops it at the
end. Prints one JSON object.
"""
import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/helenus")
    parser.add_argument("--to", required=True, help="a node of the cluster, HOST:PORT")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--partition-rows", type=int, default=100, help="rows of a partition; as many as --rows: one partition")
    parser.add_argument("--sstableloader", action="store_true", help="load the same rows by helenus export and sstableloader too")
    parser.add_argument("--verify", action="store_true", help="compare both sides at the end, cell by cell")
    parser.add_argument("--listen", default="127.0.0.1:19556")
    parser.add_argument("--tail-rows", type=int, default=100_000, help="rows that are written while the tail is watched")
    return parser.parse_args()


class Bench:
    def __init__(self, args):
        self.args = args
        self.data = tempfile.mkdtemp(prefix="helenus-move-bench-")
        command = [args.binary, "serve", "--data", self.data, "--listen", args.listen]
        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while subprocess.run([args.binary, "admin", "--data", self.data, "status"], capture_output=True).returncode:
            time.sleep(0.1)

    def tool(self, *args):
        done = subprocess.run([self.args.binary, *args], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(args)}: {done.stderr}")
        return done.stdout

    def status(self):
        return json.loads(self.tool("move", "status", "--json", "--data", self.data))

    def cpu_seconds(self):
        fields = open(f"/proc/{self.server.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cql(self, host, text):
        self.tool("shell", "--host", host, "-e", text)

    def fill(self):
        """Rows of the shape that is moved."""
        self.cql(
            self.args.listen,
            "CREATE KEYSPACE move_bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};"
            "CREATE TABLE move_bench.t (p int, c int, v text, PRIMARY KEY (p, c))",
        )
        per_file = 100_000
        for first in range(0, self.args.rows, per_file):
            with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
                per_partition = self.args.partition_rows
                for row in range(first, min(first + per_file, self.args.rows)):
                    file.write(f"{row // per_partition},{row % per_partition},value of the row with the number {row:012d}\n")
                file.flush()
                self.cql(self.args.listen, f"COPY move_bench.t (p, c, v) FROM '{file.name}'")

    def back_fill(self):
        begun, cpu = time.time(), self.cpu_seconds()
        self.tool("move", "start", "--to", self.args.to, "--tables", "move_bench", "--target-p99", "1000", "--data", self.data)
        while True:
            table = self.status()["tables"][0]
            if table["phase"] == "stopped":
                raise SystemExit(table["reason"])
            if table["phase"] == "tail":
                break
            time.sleep(0.2)
        seconds, cpu = time.time() - begun, self.cpu_seconds() - cpu
        return {"rows_per_s": round(table["rows"] / seconds), "cpu_us_per_row": round(cpu / table["rows"] * 1e6, 2)}

    def tail(self):
        """The lag while rows are copied in."""
        lags = []
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            for row in range(self.args.tail_rows):
                file.write(f"{row // 100},{row % 100},written while the tail is watched\n")
            file.flush()
            copy = f"COPY move_bench.t (p, c, v) FROM '{file.name}'"
            writer = subprocess.Popen(
                [self.args.binary, "shell", "--host", self.args.listen, "-e", copy], stdout=subprocess.DEVNULL
            )
            while writer.poll() is None:
                lags.append(self.status()["tables"][0]["lag_s"] or 0.0)
                time.sleep(0.1)
        lags.sort()
        return {"median_s": lags[len(lags) // 2], "max_s": lags[-1]} if lags else {}

    def sstableloader(self):
        """The same rows as files, into an empty table. Its clients would have to stop for the whole time."""
        self.cql(self.args.to, "TRUNCATE move_bench.t")
        folder = tempfile.mkdtemp(prefix="helenus-move-export-")
        shutil.rmtree(folder)
        host, port = self.args.to.rsplit(":", 1)
        begun = time.time()
        self.tool("export", folder, "move_bench.t", "--data", self.data)
        export = time.time() - begun
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/tools/cassandra.sh")
        files = os.path.join(folder, "move_bench", "t")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [script, "tool", "sstableloader", "-d", host, "-p", port, "--storage-port", "7000", files]
        done = subprocess.run(command, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise SystemExit(f"sstableloader: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        shutil.rmtree(folder)
        seconds = time.time() - begun
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {
            "export_s": round(export, 1),
            "seconds": round(seconds, 1),
            "rows_per_s": round(self.args.rows / seconds),
            "cpu_us_per_row": round(cpu / self.args.rows * 1e6, 2),
        }

    def verify(self):
        """Every cell of both sides. Fails if one differs."""
        begun = time.time()
        report = self.tool("move", "verify", "--data", self.data)
        return {"report": report.strip().splitlines()[0], "seconds": round(time.time() - begun, 1)}

    def end(self):
        self.tool("move", "abort", "--data", self.data)
        self.cql(self.args.to, "DROP KEYSPACE IF EXISTS move_bench")
        self.server.send_signal(signal.SIGTERM)
        self.server.wait()
        shutil.rmtree(self.data, ignore_errors=True)


def main():
    bench = Bench(options())
    try:
        bench.fill()
        result = {"rows": bench.args.rows, "back_fill": bench.back_fill(), "tail_lag": bench.tail()}
        if bench.args.verify:
            result["verify"] = bench.verify()
        if bench.args.sstableloader:
            result["sstableloader"] = bench.sstableloader()
        print(json.dumps(result, indent=2))
    finally:
        bench.end()
    print("beside it: helenus stress insert against the same cluster (its own output says rows/s)")


if __name__ == "__main__":
    main()
