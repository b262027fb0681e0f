#!/usr/bin/env python3
"""The four tests of "CQL benchmarking" (2011) over every interface of Helenus: RPC against CQL, in one run.

    cargo build --profile optimized
    bench/interfaces.py [--rows 1000000] [--runs 5] [--warmup 3] [--as-in-the-text] [--write docs/measurements/DATE.md]

Starts a server with both interfaces in a directory of its own and runs `helenus stress interfaces` on it, which checks every
answer; a wrong one ends the run. Prints a section in Markdown: medians of --runs, and of how many runs how far they lay
apart.
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

from servers import ROOT, Helenus, machine, write_section

TITLES = {
    "rpc": "RPC", "cql": "CQL", "prepared": "CQL prepared", "cql2": "CQL 2 over RPC",
    "insert": "insert 5 columns", "insert with an index": "the same with an index on one", "count": "add to 5 counters",
    "read": "read 5 columns",
}
TEXT = {  # what the text measured: op rate and latency of CQL beside RPC
    "insert": "-8 %, +9 %", "insert with an index": "-6 %, +4 %", "count": "-2 %, 0 %", "read": "-11 %, +10 %",
}


def percent(value, base):
    return f"{(value / base - 1) * 100:+.0f} %" if base else ""


def table(runs):
    lines = ["| test | interface | op rate | to RPC | least to most | mean | to RPC | p50 | p99 | p99.9 | server CPU | text 004: CQL to RPC |",
             "|---" * 12 + "|"]
    for test in dict.fromkeys(run["workload"] for run in runs):
        base = None
        for interface in dict.fromkeys(run["interface"] for run in runs):
            some = [run for run in runs if (run["workload"], run["interface"]) == (test, interface)]
            median = lambda pick: statistics.median(pick(run) for run in some)
            rate, mean = median(lambda run: run["ops_per_s"]), median(lambda run: run["latency_us"]["mean"])
            base = base or (rate, mean)
            least, most = (limit(run["ops_per_s"] for run in some) for limit in (min, max))
            quantiles = [f"{median(lambda run: run['latency_us'][name]):,.0f} us" for name in ("p50", "p99", "p99.9")]
            lines.append("| " + " | ".join([
                TITLES[test], TITLES[interface], f"{rate:,.0f}/s", percent(rate, base[0]) if interface != "rpc" else "",
                f"{least:,.0f} to {most:,.0f}", f"{mean:,.0f} us", percent(mean, base[1]) if interface != "rpc" else "",
                *quantiles, f"{median(lambda run: run['server']['cpu_us_per_op']):.2f} us",
                TEXT[test] if interface == "cql" else ""]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/optimized/helenus")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--as-in-the-text", action="store_true", help="20 million rows, 10 million with an index and of counters")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--warmup", type=float, default=2, help="seconds before each run")
    parser.add_argument("--duration", type=float, help="seconds of each run, in the place of every row once")
    parser.add_argument("--in-flight", type=int, default=128)
    parser.add_argument("--folder", type=Path, help="where the server keeps its data; a temporary one by default")
    parser.add_argument("--report", type=Path, help="write the page of stress here")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the text into this page")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # the server is stopped then too
    if not options.binary.exists():
        sys.exit(f"no binary at {options.binary}: run `cargo build --profile optimized`")
    load = float(Path("/proc/loadavg").read_text().split()[0])
    if options.folder:
        Path(options.folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="helenus-interfaces-", dir=options.folder) as folder:
        server = Helenus(options.binary, Path(folder), "periodic", serves_rpc=True)
        try:
            server.start()
            command = [options.binary, "stress", "interfaces", "--host", server.address, "--rpc", server.rpc, "--rows",
                       options.rows, "--runs", options.runs, "--warmup", options.warmup, "--in-flight", options.in_flight,
                       "--server-pid", server.pid, "--server-data", Path(folder) / "data", "--json"]
            command += ["--as-in-the-text"] if options.as_in_the_text else []
            command += ["--duration", options.duration] if options.duration else []
            command += ["--report", options.report] if options.report else []
            done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE)
            if done.returncode:
                sys.exit(f"stress ended with status {done.returncode}: {done.stdout.decode()}")
        finally:
            server.stop()
    runs = json.loads(done.stdout)["runs"]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    rows = "the text's 20 and 10 million rows" if options.as_in_the_text else f"{options.rows:,} rows"
    limited = [run for run in runs if run["client"]["cpu_share"] + run["client"]["waited_share"] >= 0.9]
    text = f"""## RPC against CQL: the four tests of text 004

{date.today():%d %b %Y}, commit {commit.stdout.strip()}. {machine()}; server and client on it, load average {load:.1f} at the start. Command:

    {" ".join(["bench/interfaces.py", *sys.argv[1:]])}

Medians of {options.runs} runs in turn, {rows}, 4 connections, {options.in_flight} in flight; tables of COMPACT STORAGE, which all
interfaces see; log periodic; every answer checked. In {len(limited)} of {len(runs)} runs the client was busy or without a core for 90 % of its time.

{table(runs)}
"""
    print(text)
    if options.write:
        write_section(options.write, "interfaces.py", text)


main()
