#!/usr/bin/env python3
"""What a gateway costs: the same load straight to a node of a cluster and through `helenus serve --gateway`, in turns, with the CPU time of
client, gateway and cluster.

    tests/tools/cluster.sh start 3 /tmp/ring --port 9142
    bench/gateway.py target/optimized/helenus --node 127.0.0.1:9142 --ring /tmp/ring [--rounds 5] [--operations 200000]

Prints each round and the medians: throughput with many requests in flight, and p50 with one, beside that of a process that only copies
bytes between client and node. The targets of issue 38: the gateway adds at most 40 us to p50 and keeps at least 60 % of the throughput. Direct, every request goes to one node, which asks the others; the gateway asks
the node that holds the row. With a cluster of one node (`start 1`) both ask the same, and the difference is the gateway alone.
"""

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process):
    """User and system time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def processes_of(ring):
    """The nodes of the cluster, by their directory in the command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if "CassandraDaemon" in words and str(ring) in words:
                found.append(int(entry.name))
    return found


def copy(source, target):
    """Copies bytes until the end of the stream."""
    while part := source.recv(1 << 16):
        target.sendall(part)
    target.close()


def copy_all(listener, node):
    """Copies what comes by each connection to a node, and back: what any process in the middle costs."""
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(node)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for pair in ((client, server), (server, client)):
            threading.Thread(target=copy, args=pair, daemon=True).start()


def stress(binary, kind, host, *more):
    command = [binary, "stress", kind, "--host", host, "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr}{done.stdout}")
    figures = json.loads(done.stdout)
    return figures.get("runs", [figures])[0]


def measured(binary, kind, host, watched, *more):
    """The figures of a run, with the CPU time of each watched group in us an operation."""
    before = {name: sum(map(cpu_seconds, found)) for name, found in watched.items()}
    figures = stress(binary, kind, host, *more)
    operations = figures["operations"]
    shares = {name: (sum(map(cpu_seconds, found)) - before[name]) * 1e6 / operations for name, found in watched.items()}
    shares["client"] = figures["client_cpu_us_per_op"]
    return figures["ops_per_s"], figures["latency_us"]["p50"], shares


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path)
    parser.add_argument("--node", default="127.0.0.1:9142")
    parser.add_argument("--ring", type=Path, default=Path("/tmp/ring"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--operations", type=int, default=200_000)
    parser.add_argument("--copy-to", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.copy_to:
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        host, port = options.copy_to.split(":")
        copy_all(listener, (host, int(port)))
    binary = options.binary.resolve()
    gateway = subprocess.Popen([binary, "serve", "--gateway", options.node, "--listen", "127.0.0.1:0"],
                               stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    # Another process, as the gateway is one.
    copying = subprocess.Popen([sys.executable, __file__, options.binary, "--copy-to", options.node], stdout=subprocess.PIPE, text=True)
    copied = f"127.0.0.1:{copying.stdout.readline().strip()}"
    found = {}
    listening = threading.Event()

    def read(stream):
        for line in stream:
            if (match := re.search(r"listening\S* +(127\.0\.0\.1:\d+)", line)):
                found["address"] = match.group(1)
                listening.set()

    for stream in (gateway.stdout, gateway.stderr):
        threading.Thread(target=read, args=(stream,), daemon=True).start()
    try:
        if not listening.wait(30):
            raise SystemExit("the gateway does not say its address")
        nodes = processes_of(options.ring)
        if not nodes:
            raise SystemExit(f"no node of {options.ring} runs")
        watched = {"gateway": [gateway.pid], "cluster": nodes}
        stress(binary, "insert", options.node, "--rows", str(options.rows), "--operations", str(options.rows), "--fresh")
        loads = [
            ("insert", ("--operations", str(options.operations))),
            ("read", ("--operations", str(options.operations))),
            ("read", ("--operations", str(options.operations // 20), "--connections", "1", "--in-flight", "1")),
        ]
        results = {}
        for number in range(options.rounds):
            for load, (kind, more) in enumerate(loads):
                for name, host in (("direct", options.node), ("gateway", found["address"]), ("copied", copied)):
                    if name == "copied" and "--in-flight" not in more:
                        continue
                    rate, p50, shares = measured(binary, kind, host, watched, "--rows", str(options.rows), *more)
                    results.setdefault((load, name), []).append((rate, p50, shares))
                    cpu = ", ".join(f"{part} {us:.1f}" for part, us in shares.items())
                    print(f"round {number + 1} {kind} {' '.join(more)} {name:8} {rate:10,.0f}/s p50 {p50:8.1f} us; CPU us/op: {cpu}", flush=True)
        for load, (kind, more) in enumerate(loads):
            middle = {name: [statistics.median(run[at] for run in results[load, name]) for at in (0, 1)] for name in ("direct", "gateway")}
            (rate, p50), (through, p50_through) = middle["direct"], middle["gateway"]
            print(f"{kind} {' '.join(more)}: {through:,.0f} of {rate:,.0f}/s = {through / rate:.0%}; p50 {p50_through:.1f} - {p50:.1f} = {p50_through - p50:+.1f} us")
            if (load, "copied") in results:
                through_copy = statistics.median(run[1] for run in results[load, "copied"])
                print(f"    through a process that copies bytes: p50 {through_copy:.1f} - {p50:.1f} = {through_copy - p50:+.1f} us")
    finally:
        copying.terminate()
        gateway.terminate()
        gateway.wait()


if __name__ == "__main__":
    main()
