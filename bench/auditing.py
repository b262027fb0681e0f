#!/usr/bin/env python3
"""What the audit log costs: two servers of one binary, one audited and one not, loaded in turns.

    cargo build --profile optimized
    bench/auditing.py [--binary FILE] [--turns 20] [--seconds 2] [--work read insert] [--format text|json] [--in-flight 128]

The audited one writes a line for each statement (FileAuditLogger, everything included, `block: true`). The measures are operations
a second and the server's CPU time an operation; each pair of turns gives one ratio, and the order within a pair changes from one to
the next. The target is a tenth fewer operations at most. At the end the lines are counted against the operations: none may be missing.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from servers import ROOT, Helenus

TARGET = -0.10


def stress(options, server, work):
    """Operations a second, CPU microseconds of the server an operation, and the number of operations."""
    command = [options.binary, "stress", work, "--host", server.address, "--rows", options.rows, "--duration", options.seconds,
               "--warmup", 0.2, "--server-pid", server.pid, "--in-flight", options.in_flight, "--json"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"stress {work}: {done.stderr}{done.stdout}")
    run = json.loads(done.stdout)
    run = run.get("runs", [run])[0]
    return run["ops_per_s"], run["server"]["cpu_us_per_op"]


def lines(server):
    """The lines of the audit log by what became of them."""
    with urllib.request.urlopen(f"http://{server.http}/metrics") as page:
        found = [line for line in page.read().decode().splitlines() if line.startswith("helenus_audit_lines_total{")]
    return {line.split('"')[1]: float(line.rsplit(" ", 1)[1]) for line in found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/optimized/helenus")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--in-flight", type=int, default=128)
    parser.add_argument("--format", choices=["text", "json"], default="text")
    parser.add_argument("--work", nargs="+", default=["read", "insert"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="helenus-auditing-") as folder:
        config = Path(folder) / "audited.yaml"
        config.write_text("audit_logging_options: {enabled: true, logger: [{class_name: FileAuditLogger, parameters: {format: "
                          f"{options.format}}}}}], max_log_size: 1073741824}}\n")
        flags = ["--config", str(config), "--http", "127.0.0.1:0"]
        audited = Helenus(options.binary, Path(folder) / "audited", "periodic", flags=flags)
        plain = Helenus(options.binary, Path(folder) / "plain", "periodic", flags=[])
        missed = False
        try:
            for server in (audited, plain):
                server.start()
                insert = [options.binary, "stress", "insert", "--host", server.address, "--rows", options.rows]
                subprocess.run([str(word) for word in insert], check=True, capture_output=True)
                server.flush("stress")
                server.compact("stress")
            for work in options.work:
                pairs = []
                for turn in range(options.turns):
                    order = (audited, plain) if turn % 2 else (plain, audited)
                    found = {server: stress(options, server, work) for server in order}
                    pairs.append((found[audited], found[plain]))
                for at, name in ((0, "operations a second"), (1, "server CPU an operation, us")):
                    ratios = [first[at] / second[at] - 1 for first, second in pairs]
                    error = statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else 0
                    middle = lambda side: statistics.median(pair[side][at] for pair in pairs)
                    print(f"{work}: {name}: audited {middle(0):,.2f}, plain {middle(1):,.2f} (medians of {len(pairs)}); ratio of a "
                          f"pair {statistics.mean(ratios) * 100:+.2f} % (median {statistics.median(ratios) * 100:+.2f} %, "
                          f"standard error {error * 100:.2f} %)", flush=True)
                    missed |= at == 0 and statistics.median(ratios) < TARGET
            found = lines(audited)
            print(f"lines: {found}")
            missed |= found["dropped"] + found["failed"] > 0
        finally:
            for server in (audited, plain):
                server.stop()
    sys.exit("the target is missed" if missed else 0)


main()
