#!/usr/bin/env python3
"""What a login costs: two binaries in turns, each with PasswordAuthenticator and CassandraAuthorizer.

    bench/logins.py --binary OLD NEW [--turns 6] [--logins 200] [--at-once 8]

A login is a connection with STARTUP, AUTH_RESPONSE and one SELECT; then it is closed. The measures are logins a second and the server's
CPU time a login, the check of the bcrypt hash (cost 10) included. The target: not dearer than the older binary.
"""

import argparse
import socket
import statistics
import struct
import tempfile
import threading
import time
from pathlib import Path

from servers import QUERY, ROOT, STARTUP, Helenus, cpu_seconds, frame

PASSWORD = "a password of the bench"


def login(address):
    """Whether a login was taken and a SELECT answered."""
    host, port = address.rsplit(":", 1)
    token = b"\0cassandra\0" + PASSWORD.encode()
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        stream = connection.makefile("rb")
        for request, wanted in ((STARTUP, 3), (frame(15, struct.pack(">i", len(token)) + token), 16), (QUERY, 8)):
            connection.sendall(request)
            header = stream.read(9)
            if len(header) < 9 or header[4] != wanted:
                return False
            stream.read(struct.unpack(">I", header[5:])[0])
    return True


def turn(options, server):
    """Logins a second, and CPU milliseconds of the server for each."""
    left, lock, refused = [options.logins], threading.Lock(), []

    def work():
        while True:
            with lock:
                if left[0] == 0:
                    return
                left[0] -= 1
            if not login(server.address):
                refused.append(server)

    threads = [threading.Thread(target=work) for _ in range(options.at_once)]
    begin, cpu = time.monotonic(), cpu_seconds(server.pid)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if refused:
        raise SystemExit(f"{len(refused)} logins were refused")
    return options.logins / (time.monotonic() - begin), 1000 * (cpu_seconds(server.pid) - cpu) / options.logins


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, nargs="+", default=[ROOT / "target/release/helenus"])
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--logins", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="helenus-logins-") as folder:
        file = Path(folder) / "password"
        file.write_text(PASSWORD)
        file.chmod(0o600)
        flags = ["--password-file", str(file), "--authorizer", "CassandraAuthorizer"]
        servers = [Helenus(binary, Path(folder) / str(at), "periodic", flags=flags) for at, binary in enumerate(options.binary)]
        found = {}
        try:
            for server in servers:
                server.start()
            for number in range(options.turns):
                order = servers if number % 2 else servers[::-1]
                for server in order:
                    found.setdefault(server, []).append(turn(options, server))
        finally:
            for server in servers:
                server.stop()
    for server, turns in found.items():
        rate, cpu = (statistics.median(of[at] for of in turns) for at in (0, 1))
        print(f"{server.binary}: {rate:.1f} logins/s, {cpu:.2f} ms of the server's CPU each")


if __name__ == "__main__":
    main()
