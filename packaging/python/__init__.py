"""Helenus, a wide-column database in one program, which this package installs as the command `helenus`.

    with helenus.Server() as server:                    # in memory; Server(data="rows") keeps them
        cluster = cassandra.cluster.Cluster([server.host], port=server.port)

In tests with pytest, the fixture `helenus_server` is such a server, one for all tests of a run.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
import threading

__all__ = ["Server", "binary"]


def binary():
    """The path of the program, in the environment that this package is installed in."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user"), os.path.join(sys.prefix, "bin")]
    for folder in folders:
        path = os.path.join(folder, "helenus")
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"no helenus in {', '.join(folders)}; install this package again")


class Server:
    """A server of its own, for a test or a program. It ends with `stop()`, or with the `with` that it was started in.

    data       directory of the rows; None keeps them in memory, and they end with the server
    options    further words of `helenus serve`, such as ["--set", "memory_limit=256MiB"]
    listen     where it listens; port 0 is a free one

    host, port and address (`HOST:PORT`) say where clients connect, log() what the server has logged.
    """

    def __init__(self, data=None, *, options=(), listen="127.0.0.1:0"):
        where = ["--memory"] if data is None else ["--data", os.fspath(data)]
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [binary(), "serve", *where, "--listen", listen, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        for line in self._process.stdout:
            word, _, rest = line.partition(" ")
            if word == "listening":
                self.address = rest.split()[0]
                break
        else:
            self._process.wait()
            raise RuntimeError(f"the server did not start: {self.log().strip()}")
        host, _, port = self.address.rpartition(":")
        self.host, self.port = host.strip("[]"), int(port)
        # A pipe that nobody reads would fill.
        self._reader = threading.Thread(target=self._process.stdout.read, daemon=True)
        self._reader.start()

    def execute(self, statements):
        """Runs statements by the program's own shell, and returns what it prints. For schemas and small tests; programs use a driver."""
        command = [binary(), "shell", self.address, "-e", statements]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def log(self):
        """What the server has written to its log."""
        with open(f"/proc/self/fd/{self._log.fileno()}", encoding="utf-8", errors="replace") as log:
            return log.read()

    def stop(self):
        """Ends the server, which writes everything first. Does nothing where it has ended."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
