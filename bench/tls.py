#!/usr/bin/env python3
"""What TLS and logins cost: requests by TLS beside requests in the clear, logins a second, and a storm of wrong passwords.

    cargo build --profile optimized
    bench/tls.py [--rows 1000000] [--runs 5] [--seconds 10] [--only requests,logins,storm] [--write docs/measurements/DATE.md]

One server serves both kinds of connections on one port (--tls-optional). `requests` runs `helenus stress` in the clear and by TLS in
turn, with 128 requests in flight, and checks every answer. `logins` logs in with the right password as often as it can. `storm` reads
at a fixed rate, alone and while 10,000 logins with wrong passwords come from 250 addresses of the loopback; what is compared is
the readers' p99. Prints a section in Markdown.
"""

import argparse
import json
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date
from pathlib import Path

from servers import ROOT, STARTUP, Helenus, cpu_seconds, frame, machine, write_section

AUTH_RESPONSE, AUTHENTICATE, AUTH_SUCCESS, ERROR = 0x0F, 0x03, 0x10, 0x00
PASSWORD = "a long password"
IN_FLIGHT = 128
LOGIN_THREADS = 32
STORM = 10_000
STORM_THREADS = 128


def stress(options, server, access, words):
    command = [options.binary, "stress", *words, "--host", server.address, "--server-pid", str(server.pid), "--json", *access]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return json.loads(done.stdout)


def requests(options, server, login, cafile):
    """Inserts and reads in turn, in the clear and by TLS: medians."""
    kinds = {"in the clear": login, "TLS": [*login, "--cafile", cafile]}
    rows, load = ["--rows", str(options.rows)], ["--in-flight", str(IN_FLIGHT), "--warmup", str(options.warmup)]
    stress(options, server, login, ["insert", *rows])
    lines = ["| workload | connection | requests/s | to the clear | least to most | p50 | p99 | server CPU |", "|---" * 8 + "|"]
    for workload in ("insert", "read"):
        runs = {kind: [] for kind in kinds}
        for _ in range(options.runs):
            for kind, access in kinds.items():
                runs[kind].append(stress(options, server, access, [workload, *rows, *load, "--duration", str(options.seconds)]))
        base = None
        for kind, some in runs.items():
            rates = [run["ops_per_s"] for run in some]
            rate = statistics.median(rates)
            base = base or rate
            median = lambda pick: statistics.median(map(pick, some))
            lines.append(
                f"| {workload} | {kind} | {rate:,.0f} | {(rate / base - 1) * 100:+.0f} % | {min(rates):,.0f} to {max(rates):,.0f} | "
                f"{median(lambda run: run['latency_us']['p50']):,.0f} us | {median(lambda run: run['latency_us']['p99']):,.0f} us | "
                f"{median(lambda run: run['server']['cpu_us_per_op']):.2f} us |")
    return "\n".join(lines)


def answer(stream):
    header = stream.read(9)
    if len(header) < 9:
        raise ConnectionError("the server closed the connection")
    return header[4], stream.read(struct.unpack(">I", header[5:])[0])


def log_in(address, source, user, password):
    """One login on a connection of its own. Gives the opcode of the answer; None where the server refuses the connection."""
    host, port = address.rsplit(":", 1)
    token = f"\0{user}\0{password}".encode()
    try:
        with socket.create_connection((host, int(port)), timeout=60, source_address=(source, 0)) as connection:
            stream = connection.makefile("rb")
            connection.sendall(STARTUP)
            if answer(stream)[0] != AUTHENTICATE:
                return None
            connection.sendall(frame(AUTH_RESPONSE, struct.pack(">I", len(token)) + token))
            return answer(stream)[0]
    except (ConnectionError, TimeoutError, OSError):
        return None


def in_threads(count, threads, once):
    """Calls `once(number)` for each number below `count`; gives the results and the seconds."""
    results, numbers, lock = [], iter(range(count)), threading.Lock()

    def run():
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            results.append(once(number))

    begin = time.monotonic()
    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results, time.monotonic() - begin


def logins(options, server):
    count = options.logins
    before = cpu_seconds(server.pid)
    once = lambda number: log_in(server.address, f"127.0.1.{number % 250 + 1}", "cassandra", PASSWORD)
    results, seconds = in_threads(count, LOGIN_THREADS, once)
    if any(result != AUTH_SUCCESS for result in results):
        sys.exit(f"{sum(result != AUTH_SUCCESS for result in results)} of {count} logins were refused")
    cpu = (cpu_seconds(server.pid) - before) / count * 1000
    return f"{count:,} logins from {LOGIN_THREADS} threads: {count / seconds:,.0f} a second, {cpu:.1f} ms of CPU each."


def storm(options, server, login):
    words = ["read", "--rows", str(options.rows), "--rate", str(options.rate), "--warmup", "2", "--duration", str(options.seconds)]
    alone = statistics.median(stress(options, server, login, words)["latency_us"]["p99"] for _ in range(options.runs))
    during, outcomes = [], []
    for _ in range(options.runs):
        once = lambda number: log_in(server.address, f"127.0.2.{number % 250 + 1}", f"nobody{number % 50}", "wrong")
        worker = threading.Thread(target=lambda: outcomes.append(in_threads(STORM, STORM_THREADS, once)))
        worker.start()
        during.append(stress(options, server, login, words)["latency_us"]["p99"])
        worker.join()
    if any(AUTH_SUCCESS in results for results, _ in outcomes):
        sys.exit("a wrong password was accepted")
    seconds = statistics.median(seconds for _, seconds in outcomes)
    median = statistics.median(during)
    return (f"Reads at {options.rate:,}/s: p99 {alone:,.0f} us alone, {median:,.0f} us ({median / alone:.2f} x; "
            f"{', '.join(f'{value:,.0f}' for value in during)}) while {STORM:,} logins with wrong passwords come, which took {seconds:.0f} s.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/optimized/helenus")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--warmup", type=float, default=2, help="seconds before each run")
    parser.add_argument("--seconds", type=float, default=10, help="seconds of each run")
    parser.add_argument("--logins", type=int, default=2000)
    parser.add_argument("--rate", type=int, default=20_000, help="reads a second beside the storm")
    parser.add_argument("--only", default="requests,logins,storm")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the text into this page")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # the server is stopped then too
    if not options.binary.exists():
        sys.exit(f"no binary at {options.binary}: run `cargo build --profile optimized`")
    load = float(Path("/proc/loadavg").read_text().split()[0])
    wanted = options.only.split(",")
    with tempfile.TemporaryDirectory(prefix="helenus-tls-") as folder:
        folder = Path(folder)
        certificates, password = folder / "certs", folder / "password"
        password.write_text(PASSWORD + "\n")
        subprocess.run([options.binary, "cert", certificates], check=True, stdout=subprocess.DEVNULL)
        login = ["-u", "cassandra", "--password-file", str(password)]
        flags = ["--tls-cert", certificates / "server.pem", "--tls-optional", "--password-file", password]
        server = Helenus(options.binary, folder / "server", "periodic", flags=flags)
        parts = []
        try:
            server.start()
            if "requests" in wanted:
                parts.append(requests(options, server, login, str(certificates / "ca.pem")))
            elif "storm" in wanted:
                stress(options, server, login, ["insert", "--rows", str(options.rows)])
            if "logins" in wanted:
                parts.append(logins(options, server))
            if "storm" in wanted:
                parts.append(storm(options, server, login))
        finally:
            server.stop()
    text = (f"## TLS and logins, {date.today()}\n\n{machine()}; load before: {load:.2f}. TLS 1.3 with the cipher suite that "
            f"`system_views.clients` shows; {options.runs} runs of {options.seconds:.0f} s, medians.\n\n" + "\n\n".join(parts) + "\n")
    print(text)
    if options.write:
        write_section(options.write, "tls and logins", text)


if __name__ == "__main__":
    main()
