#!/usr/bin/env python3
"""What TLS and logins cost: requests by TLS beside requests in the clear, logins a second, and a storm of wrong passwords.

    cargo build --profile optimized
    bench/tls.py [--rows 1000000] [--runs 3] [--seconds 10] [--only requests,logins,storm] [--write docs/measurements/DATE.md]

One server serves both kinds of connections on one port (--tls-optional). `requests` runs `helenus stress` in the clear and by TLS in
turn, with 128 requests in flight, and checks every answer. `logins` logs in with the right password as often as it can, in the clear
and by TLS. `storm` reads at a fixed rate, alone and while 10,000 logins with wrong passwords come from 250 addresses of the loopback,
one after the other at an even pace within the same seconds, however long their answers take; those that have none 10 s after the last
are given up. What is compared is the readers' p99. `logins` takes about half a minute, `storm` two and a half minutes. Prints a
section in Markdown.
"""

import argparse
import asyncio
import json
import signal
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import date
from pathlib import Path

from servers import ROOT, STARTUP, Helenus, cpu_seconds, frame, machine, write_section

AUTH_RESPONSE, AUTHENTICATE, AUTH_SUCCESS, ERROR = 0x0F, 0x03, 0x10, 0x00
PASSWORD = "a long password"
IN_FLIGHT = 128
LOGINS_AT_ONCE = 32
STORM = 10_000
PATIENCE = 10  # seconds that the answers to a storm are waited for


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


async def answer(reader):
    header = await reader.readexactly(9)
    return header[4], await reader.readexactly(struct.unpack(">I", header[5:])[0])


async def log_in(address, source, token, context=None):
    """One login on a connection of its own. Gives the opcode of the answer; None where the server refuses the connection."""
    host, port = address.rsplit(":", 1)
    try:
        reader, writer = await asyncio.open_connection(host, int(port), local_addr=(source, 0), ssl=context)
    except OSError:
        return None
    try:
        writer.write(STARTUP)
        if (await answer(reader))[0] != AUTHENTICATE:
            return None
        writer.write(frame(AUTH_RESPONSE, struct.pack(">I", len(token)) + token))
        return (await answer(reader))[0]
    except (OSError, asyncio.IncompleteReadError):
        return None
    finally:
        writer.transport.abort()


async def many_logins(address, count, token, context):
    """Logs in as often as it can, with some logins at once. Gives the outcomes and the seconds."""
    numbers, outcomes = iter(range(count)), Counter()

    async def one_after_the_other():
        for number in numbers:
            outcomes[await log_in(address, f"127.0.1.{number % 250 + 1}", token, context)] += 1

    begin = time.monotonic()
    await asyncio.gather(*(one_after_the_other() for _ in range(LOGINS_AT_ONCE)))
    return outcomes, time.monotonic() - begin


def logins(options, server, cafile):
    lines = []
    for kind, context in (("in the clear", None), ("by TLS", ssl.create_default_context(cafile=cafile))):
        count, before = options.logins, cpu_seconds(server.pid)
        token = f"\0cassandra\0{PASSWORD}".encode()
        outcomes, seconds = asyncio.run(many_logins(server.address, count, token, context))
        if outcomes[AUTH_SUCCESS] != count:
            sys.exit(f"of {count} logins {kind} not all succeeded: {dict(outcomes)} (by opcode of the answer)")
        cpu = (cpu_seconds(server.pid) - before) / count * 1000
        lines.append(f"{count:,} logins {kind}, {LOGINS_AT_ONCE} at once: {count / seconds:,.0f} a second, {cpu:.1f} ms of CPU each.")
    return "\n".join(lines)


async def wrong_logins(address, seconds):
    """Begins the logins of a storm at an even pace. Gives the outcomes."""
    outcomes, begin = Counter(), time.monotonic()

    async def once(number):
        # Each address tries all fifty roles.
        token = f"\0nobody{number // 250 % 50}\0wrong".encode()
        outcomes[await log_in(address, f"127.0.2.{number % 250 + 1}", token)] += 1

    tasks = []
    for number in range(STORM):
        await asyncio.sleep(max(0, begin + seconds * number / STORM - time.monotonic()))
        tasks.append(asyncio.create_task(once(number)))
    _, late = await asyncio.wait(tasks, timeout=PATIENCE)
    for task in late:
        task.cancel()
    outcomes["late"] = len(late)
    return outcomes


def storm(options, server, login):
    words = ["read", "--rows", str(options.rows), "--rate", str(options.rate), "--warmup", "2", "--duration", str(options.seconds)]
    reads = lambda: stress(options, server, login, words)["latency_us"]["p99"]
    alone = statistics.median(reads() for _ in range(options.runs))
    during, outcomes = [], Counter()
    for _ in range(options.runs):
        # It begins with the readers' two seconds of warm-up.
        worker = threading.Thread(target=lambda: outcomes.update(asyncio.run(wrong_logins(server.address, options.seconds + 2))))
        worker.start()
        during.append(reads())
        worker.join()
    if outcomes[AUTH_SUCCESS]:
        sys.exit("a wrong password was accepted")
    median = statistics.median(during)
    return (f"Reads at {options.rate:,}/s: p99 {alone:,.0f} us alone, {median:,.0f} us ({median / alone:.2f} x; "
            f"{', '.join(f'{value:,.0f}' for value in during)}) while {STORM:,} logins with wrong passwords come within "
            f"{options.seconds + 2:.0f} s. Of all, {outcomes[ERROR]:,} got an error, {outcomes[None]:,} connections were refused or "
            f"closed, and {outcomes['late']:,} had no answer {PATIENCE} s after the last.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/optimized/helenus")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warmup", type=float, default=2, help="seconds before each run")
    parser.add_argument("--seconds", type=float, default=10, help="seconds of each run")
    parser.add_argument("--logins", type=int, default=500)
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
                parts.append(logins(options, server, str(certificates / "ca.pem")))
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
