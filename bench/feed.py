#!/usr/bin/env python3
"""What the feed of changes costs an insert: the same load into an unwatched table, a watched one, a watched one with a
consumer that follows, and a watched one with whole rows before and after each change; the four in turns, each with a server and a directory of its own.

    bench/feed.py target/optimized/helenus [--rows 1000000] [--rounds 5]

Prints the rate of each round and the medians. The target of issue 38: watched at least 90 % of unwatched.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

KINDS = ("unwatched", "watched", "followed", "row images")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr}{done.stdout}")
    return done.stdout


def round_of(binary, kind, rows):
    """The rate of inserts into a fresh table of this kind."""
    folder = Path(tempfile.mkdtemp(prefix="helenus-feed-"))
    images = ["--set", "cdc_row_images=stress"] if kind == "row images" else []
    server = subprocess.Popen([binary, "serve", "--data", folder / "data", "--listen", "127.0.0.1:0", *images],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    follower = None
    try:
        address = next(found.group(0) for line in server.stdout if (found := re.search(r"127\.0\.0\.1:\d+", line)))
        # Makes the keyspace and the table, with the shape that the load wants.
        run(binary, "stress", "insert", "--rows", "1000", "--operations", "1000", "--fresh", "--host", address, "--json")
        name = "stress.standard1"
        if kind != "unwatched":
            run(binary, "shell", *address.split(":"), "-e", f"ALTER TABLE {name} WITH cdc = true")
        if kind == "followed":
            follower = subprocess.Popen(
                [binary, "changes", name, "--consumer", "bench", "--from", "now", "--follow", "--ack-all", "--json",
                 "--data", folder / "data"], stdout=subprocess.DEVNULL)
        figures = json.loads(run(binary, "stress", "insert", "--rows", str(rows), "--host", address, "--json"))
        return figures.get("runs", [figures])[0]["ops_per_s"]
    finally:
        if follower:
            follower.terminate()
            follower.wait()
        server.terminate()
        server.wait()
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rates = {kind: [] for kind in KINDS}
    for number in range(options.rounds):
        for kind in KINDS:
            rates[kind].append(round_of(options.binary.resolve(), kind, options.rows))
        print(f"round {number + 1}: " + ", ".join(f"{kind} {rates[kind][-1]:,.0f}/s" for kind in KINDS), flush=True)
    base = statistics.median(rates["unwatched"])
    for kind in KINDS:
        median = statistics.median(rates[kind])
        print(f"{kind:10} {median:12,.0f}/s  {median / base:6.1%}")


if __name__ == "__main__":
    main()
