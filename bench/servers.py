"""The servers that compare.py measures: each a process in a directory of its own, started and stopped here.

A server has `name`, `address` and `pid`, `start` and `stop`; those that store also `flush` and `compact`.
"""

import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_section(page, name, text):
    """Puts `text` between the page's marks `<!-- begin NAME -->` and `<!-- end NAME -->`, or behind all else."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    old = page.read_text() if page.exists() else "# Figures\n"
    section = f"{begin}\n{text.strip()}\n{end}"
    if begin in old and end in old:
        before, rest = old.split(begin, 1)
        after = rest.split(end, 1)[1]
        page.write_text(before + section + after)
    else:
        page.write_text(f"{old.rstrip()}\n\n{section}\n")


START_MAX = 180  # seconds


def frame(opcode, body=b""):
    """A request of protocol v4 on stream 0."""
    return struct.pack(">BBhBI", 4, 0, 0, opcode, len(body)) + body


STARTUP = frame(1, b"\0\1\0\x0bCQL_VERSION\0\x053.0.0")
SELECT = b"SELECT key FROM system.local"
QUERY = frame(7, struct.pack(">I", len(SELECT)) + SELECT + b"\0\1\0")


def answers(address):
    """Whether STARTUP and a SELECT from system.local are answered, by READY and by a row; or STARTUP by a wish for a login."""
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout=START_MAX) as connection:
            stream = connection.makefile("rb")
            for request, opcode in ((STARTUP, 2), (QUERY, 8)):
                connection.sendall(request)
                header = stream.read(9)
                if len(header) == 9 and header[4] == 3:
                    return True
                if len(header) < 9 or header[4] != opcode:
                    return False
                body = stream.read(struct.unpack(">I", header[5:])[0])
            return b"local" in body
    except (ConnectionError, TimeoutError):
        return False


def until_answered(address, process):
    """Asks until the server answers; an attempt costs about 0.1 ms."""
    begin = time.monotonic()
    while not answers(address):
        if process.poll() is not None:
            raise SystemExit(f"a server ended with status {process.returncode} before it answered on {address}")
        if time.monotonic() - begin > START_MAX:
            raise SystemExit(f"no answer on {address} within {START_MAX} s")
        time.sleep(0.000_5)


def cpu_seconds(pid):
    """CPU time that a process has used, the kernel's part included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid):
    """Resident memory now, and the most it was."""
    status = Path(f"/proc/{pid}/status").read_text()
    return tuple(int(re.search(rf"^{name}:\s+(\d+)", status, re.M).group(1)) / 1024 for name in ("VmRSS", "VmHWM"))


class Helenus:
    """`helenus serve` on a free port; with `serves_rpc` the old interface on another, `rpc`; `flags` are more of its flags."""

    def __init__(self, binary, folder, sync, serves_rpc=False, flags=()):
        self.binary, self.folder, self.sync = Path(binary).resolve(), Path(folder), sync
        self.serves_rpc, self.rpc, self.flags, self.http = serves_rpc, None, flags, None
        self.name = "Helenus"
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        """Starts; gives the seconds from the process's start to its first answered SELECT."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "log", "ab") as log:
            begin = time.monotonic()
            self.process = subprocess.Popen(
                [self.binary, "serve", "--data", self.folder / "data", "--listen", "127.0.0.1:0", "--sync", self.sync,
                 *(["--rpc", "127.0.0.1:0"] if self.serves_rpc else []), *self.flags],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
            for line in self.process.stdout:
                words = line.decode().split()
                if words[:1] == ["rpc"]:
                    self.rpc = words[1]
                if words[:1] == ["http"]:
                    self.http = words[1]
                if words[:1] == ["listening"]:
                    self.address = words[1]
                    break
            else:
                raise SystemExit(f"{self.binary} did not say where it listens; its log is {self.folder / 'log'}")
            until_answered(self.address, self.process)
            return time.monotonic() - begin

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            if self.process.wait(timeout=START_MAX) != 0:
                raise SystemExit(f"helenus ended with status {self.process.returncode}")

    def flush(self, keyspace):
        """Seconds of a flush."""
        begin = time.monotonic()
        subprocess.run([self.binary, "admin", "flush", keyspace, "--data", self.folder / "data"], check=True,
                       stdout=subprocess.DEVNULL)
        return time.monotonic() - begin

    def compact(self, keyspace):
        """Seconds of a compaction of everything."""
        begin = time.monotonic()
        subprocess.run([self.binary, "admin", "compact", keyspace, "--data", self.folder / "data"], check=True,
                       stdout=subprocess.DEVNULL)
        return time.monotonic() - begin

    def keyspace_mib(self, keyspace):
        """What a keyspace's files take."""
        return size_mib(self.folder / "data/data" / keyspace)


class Canned:
    """`bench/src/canned`: answers without a database, the floor of sockets and client."""

    def __init__(self, binary):
        self.binary, self.name, self.process = Path(binary).resolve(), "floor", None

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        self.process = subprocess.Popen([self.binary], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.address = self.process.stdout.readline().decode().split()[1]

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class Cassandra:
    """The judge of the tests, with its own script."""

    def __init__(self, folder, heap, port=19342):
        self.folder, self.heap, self.port, self.sync = Path(folder), heap, port, "periodic"
        self.script = ROOT / "tests/tools/cassandra.sh"
        self.name, self.address = "Cassandra", f"127.0.0.1:{port}"

    @property
    def pid(self):
        return int((self.folder / "pid").read_text())

    def run(self, *args, **kwargs):
        return subprocess.run([self.script, *args], check=True, stdout=subprocess.DEVNULL, **kwargs)

    def start(self):
        """Starts; gives the seconds to the first answer, to a tenth: the script asks ten times a second."""
        self.run("jars")
        begin = time.monotonic()
        self.run("start", self.folder, "--port", str(self.port), "--heap", self.heap, "--sync", self.sync,
                 "--as-released")
        while not answers(self.address):
            time.sleep(0.000_5)
        return time.monotonic() - begin

    def stop(self):
        if (self.folder / "pid").exists():
            self.run("stop", self.folder)

    def nodetool(self, *args):
        begin = time.monotonic()
        self.run("nodetool", self.folder, *args)
        return time.monotonic() - begin

    def flush(self, keyspace):
        """Seconds of a flush: those of nodetool less those of a nodetool with nothing to flush."""
        idle = self.nodetool("flush", "system_traces")
        return max(0.0, self.nodetool("flush", keyspace) - idle)

    def compact(self, keyspace):
        """Seconds of a compaction of everything, less those of a nodetool with nothing to do."""
        idle = self.nodetool("compact", "system_traces")
        return max(0.0, self.nodetool("compact", keyspace) - idle)

    def keyspace_mib(self, keyspace):
        """What a keyspace's files take."""
        return size_mib(self.folder / "data" / keyspace)


def size_mib(folder):
    """What a folder's files take on the disk; files may go meanwhile."""
    bytes_of = 0
    for file in folder.rglob("*"):
        try:
            bytes_of += file.stat().st_blocks * 512
        except FileNotFoundError:
            pass
    return bytes_of / 2**20


def removed(folder):
    """Removes a directory; gives its path."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def machine():
    """This machine in a line."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    total = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text()).group(1)) >> 20
    return (f"{cpu.group(1) if cpu else 'unknown CPU'}, {os.cpu_count()} cores, {total} GiB, "
            f"Linux {os.uname().release}")
