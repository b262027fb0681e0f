#!/usr/bin/env python3
"""What metrics and the log of slow statements cost: two servers of one binary, one watched and one not, loaded in turns.

    cargo build --profile optimized
    bench/watching.py [--binary FILE] [--turns 40] [--seconds 2] [--work read insert]

The watched one has the HTTP port, is asked for /metrics each second (a Prometheus asks every 15), and looks for slow
statements; the other has neither (`--slow-query-log-timeout 0ms`). The counters of tables belong to both: what they cost is
counted in instructions (docs/performance.md). The measure is the server's CPU time an operation, which other work on the machine
moves less than its rate; each pair of turns gives one ratio, and the order within a pair changes from one to the next.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

from servers import ROOT, Helenus


def stress(binary, server, work, rows, seconds):
    """CPU microseconds of the server an operation, and operations a second."""
    command = [binary, "stress", work, "--host", server.address, "--rows", rows, "--duration", seconds, "--warmup", 0.2,
               "--server-pid", server.pid, "--json"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"stress {work}: {done.stderr}{done.stdout}")
    run = json.loads(done.stdout)
    run = run.get("runs", [run])[0]
    return run["server"]["cpu_us_per_op"], run["ops_per_s"]


def scrape(server, stop):
    while not stop.wait(1):
        with urllib.request.urlopen(f"http://{server.http}/metrics") as page:
            page.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/optimized/helenus")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--work", nargs="+", default=["read", "insert"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="helenus-watching-") as folder:
        watched = Helenus(options.binary, Path(folder) / "watched", "periodic", flags=["--http", "127.0.0.1:0"])
        plain = Helenus(options.binary, Path(folder) / "plain", "periodic", flags=["--slow-query-log-timeout", "0ms"])
        stop = threading.Event()
        try:
            for server in (watched, plain):
                server.start()
                insert = [options.binary, "stress", "insert", "--host", server.address, "--rows", options.rows]
                subprocess.run([str(word) for word in insert], check=True, capture_output=True)
                server.flush("stress")
                server.compact("stress")
            scraper = threading.Thread(target=scrape, args=(watched, stop), daemon=True)
            scraper.start()
            for work in options.work:
                pairs = []
                for turn in range(options.turns):
                    order = (watched, plain) if turn % 2 else (plain, watched)
                    found = {server: stress(options.binary, server, work, options.rows, options.seconds) for server in order}
                    pairs.append((found[watched], found[plain]))
                for at, name in ((0, "server CPU an operation, us"), (1, "operations a second")):
                    ratios = [first[at] / second[at] - 1 for first, second in pairs]
                    error = statistics.stdev(ratios) / math.sqrt(len(ratios))
                    middle = lambda side: statistics.median(pair[side][at] for pair in pairs)
                    print(f"{work}: {name}: watched {middle(0):,.2f}, plain {middle(1):,.2f} (medians of {len(pairs)}); ratio of a "
                          f"pair {statistics.mean(ratios) * 100:+.2f} % (median {statistics.median(ratios) * 100:+.2f} %, "
                          f"standard error {error * 100:.2f} %)", flush=True)
        finally:
            stop.set()
            for server in (watched, plain):
                server.stop()


main()
