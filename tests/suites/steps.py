"""What the suites share: one step of a run, the server that a suite gets, and the outcome of a test."""

import collections
import contextlib
import socket
import subprocess
import sys
import tempfile
import time

Result = collections.namedtuple("Result", "name outcome message")


def run(command, **how):
    return subprocess.run([str(part) for part in command], **how)


def must(command, **how):
    done = run(command, **how)
    if done.returncode:
        sys.exit(f"run.py: {' '.join(map(str, command))} ended with {done.returncode}")


def clone(git, tag, into):
    if not into.exists():
        must(["git", "clone", "-q", "--depth", "1", "--branch", tag, git, into], stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def served(binary, datacenter, *more):
    """A fresh server on the port of the suites, if its binary is given."""
    if not binary:
        yield
        return
    command = [binary, "serve", "--memory", "--datacenter", datacenter, *more]
    log = tempfile.TemporaryFile("w+")
    server = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=log)
    try:
        for _ in range(200):
            if server.poll() is not None:
                log.seek(0)
                sys.exit(f"run.py: {binary} ended while starting:\n{log.read()}")
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", 9042)):
                break
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()
        log.close()
