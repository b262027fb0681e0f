#!/usr/bin/env python3
"""Installs each package into a root with nothing else of ours, starts the server from it, and runs one query.

    tests/packages/run.py PACKAGES WORK       PACKAGES: the folder that packaging/package.py wrote

Needs root for `chroot`, Python 3 with venv, Node.js with npm, and dpkg; for the packages of arm64, Debian's `qemu-user-static`.
A root of Debian, made once by `debootstrap` where that is installed, takes the Debian package as users do. `cargo xtask package`
calls it. No package is taken from a registry.
"""

import hashlib
import json
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path

STATEMENT = "SELECT release_version FROM system.local"
# A program that uses the wheel.
PROGRAM = """
import helenus
create = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; CREATE TABLE k.t (k int PRIMARY KEY);"
with helenus.Server() as server:
    server.execute(create + "INSERT INTO k.t (k) VALUES (42)")
    assert "42" in server.execute("SELECT k FROM k.t")
    assert server.address == f"{server.host}:{server.port}" and server.port > 0
for _ in range(2):
    with helenus.Server(data="rows") as server:
        server.execute(create.replace("KEYSPACE", "KEYSPACE IF NOT EXISTS").replace("TABLE", "TABLE IF NOT EXISTS"))
try:
    helenus.Server(options=["--set", "no_such_key=1"])
except RuntimeError as error:
    assert "no_such_key" in str(error), error
else:
    raise AssertionError("it started")
"""


def called(*words, **options):
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@contextmanager
def running(*words):
    """Starts a server, gives the line with its address, and ends it."""
    server = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield next(line for line in server.stdout if line.startswith("listening"))
    finally:
        server.terminate()
        server.stdout.close()
        assert server.wait() == 0, server.returncode


def answers(*program):
    """Starts a server of the program in memory, asks it by the shell of the same program, and ends it."""
    with running(*program, "serve", "--memory", "--listen", "127.0.0.1:0") as line:
        found = called(*program, "shell", line.split()[1], "-e", STATEMENT)
        assert "5.0." in found, found


def digests(packages, work):
    """The digests of the manifest are those of the files, and of SHA256SUMS."""
    for package in json.loads((packages / "manifest.json").read_text())["packages"]:
        data = (packages / package["file"]).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (package["sha256"], package["bytes"]), package
    called("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=packages)


def tarball(packages, work):
    """An empty root with the binary alone: no library, no shell."""
    with tarfile.open(next(packages.glob("helenus-[0-9]*-linux-x86_64.tar.gz"))) as archive:
        archive.extractall(work)
    [top] = work.glob("helenus-*")
    assert (top / "man/man1/helenus-serve.1").exists() and (top / "completions/_helenus").exists()
    (work / "tmp").mkdir(mode=0o1777)
    (work / "dev").mkdir()
    answers("chroot", work, f"/{top.name}/helenus")


def deb(packages, work):
    """A root with the package's files alone, and what dpkg finds in it."""
    package = next(packages.glob("*_amd64.deb"))
    called("dpkg-deb", "--extract", package, work)
    about = called("dpkg-deb", "--field", package, "Package", "Architecture")
    assert "helenus" in about and "amd64" in about, about
    for path in ["usr/lib/systemd/system/helenus.service", "etc/helenus/helenus.yaml", "usr/share/man/man1/helenus.1.gz"]:
        assert (work / path).exists(), path
    # It may hold the password of a key store.
    mode = (work / "etc/helenus/helenus.yaml").stat().st_mode & 0o777
    assert mode == 0o640, oct(mode)
    (work / "tmp").mkdir(mode=0o1777)
    answers("chroot", work, "/usr/bin/helenus")
    # With the settings that the service uses.
    program = ["chroot", work, "/usr/bin/helenus"]
    with running(*program, "serve", "--config", "/etc/helenus/helenus.yaml", "--data", "/data", "--listen", "127.0.0.1:0"):
        status = called(*program, "admin", "--data", "/data", "status")
        assert "UN " in status and (work / "data").exists(), status


def debian(packages, work):
    """A Debian without anything of ours: dpkg installs, the service's user runs the server, dpkg removes, and data stays."""
    root = work.parent / "debian-root"
    if not (root / "etc/debian_version").exists():
        called("debootstrap", "--variant=minbase", "stable", root)
    shutil.copy(next(packages.glob("*_amd64.deb")), root / "tmp/helenus.deb")
    inside = ["chroot", root]
    called(*inside, "dpkg", "--purge", "helenus")
    called(*inside, "dpkg", "--install", "/tmp/helenus.deb")
    assert "helenus" in called(*inside, "id", "helenus")
    assert (root / "etc/systemd/system/multi-user.target.wants/helenus.service").is_symlink()
    unit = work / "helenus.service"
    unit.write_text((root / "usr/lib/systemd/system/helenus.service").read_text().replace("=/usr/bin/", f"={root}/usr/bin/"))
    called("systemd-analyze", "verify", "--man=no", unit)
    # An exposure of 2.0 at most.
    called("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", unit)
    configuration = called(*inside, "stat", "--format=%a %U:%G", "/etc/helenus/helenus.yaml")
    assert configuration.strip() == "640 root:helenus", configuration
    data = root / "var/lib/helenus"
    called(*inside, "install", "-d", "-o", "helenus", "-g", "helenus", "-m", "700", "/var/lib/helenus")
    as_user = [*inside, "setpriv", "--reuid=helenus", "--regid=helenus", "--clear-groups", "helenus"]
    service = ["serve", "--config", "/etc/helenus/helenus.yaml", "--data", "/var/lib/helenus", "--listen", "127.0.0.1:0"]
    with running(*as_user, *service) as line:
        assert "5.0." in called(*as_user, "shell", line.split()[1], "-e", STATEMENT)
    called(*inside, "dpkg", "--remove", "helenus")
    assert (data / "data").exists() and not (root / "usr/bin/helenus").exists()
    told = called(*inside, "dpkg", "--purge", "helenus")
    assert "/var/lib/helenus stays" in told and (data / "data").exists(), told
    assert not (root / "etc/helenus/helenus.yaml").exists()


def foreign(packages, work):
    """The binaries of arm64, run by qemu: a row is written and read."""
    qemu = shutil.which("qemu-aarch64-static")
    assert qemu, "apt-get install qemu-user-static"
    with tarfile.open(next(packages.glob("helenus-[0-9]*-linux-aarch64.tar.gz"))) as archive:
        archive.extractall(work)
    [top] = work.glob("helenus-*")
    answers(qemu, top / "helenus")
    rows = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; CREATE TABLE k.t (k int PRIMARY KEY); "
    rows += "INSERT INTO k.t (k) VALUES (42); SELECT k FROM k.t;"
    assert "42" in called(qemu, top / "helenus", "shell", "--memory", "-e", rows)
    same = (top / "helenus").read_bytes()
    with zipfile.ZipFile(next(packages.glob("*aarch64*.whl"))) as archive:
        assert archive.read(next(name for name in archive.namelist() if name.endswith("scripts/helenus"))) == same
    called("dpkg-deb", "--extract", next(packages.glob("*_arm64.deb")), work / "deb")
    assert (work / "deb/usr/bin/helenus").read_bytes() == same


def analysis(packages, work):
    """The second tarball has Parquet and Arrow; the first says where they are."""
    tops = []
    for name in ["helenus-analysis-*", "helenus-[0-9]*"]:
        with tarfile.open(next(packages.glob(f"{name}-linux-x86_64.tar.gz"))) as archive:
            archive.extractall(work / str(len(tops)))
        tops += (work / str(len(tops))).glob("helenus-*")
    assert "with feature analysis" in called(tops[0] / "helenus", "--version")
    rows = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; CREATE TABLE k.t (k int PRIMARY KEY); "
    called(top / "helenus", "shell", "--data", work / "data", "-e", rows + "INSERT INTO k.t (k) VALUES (42);")
    called(top / "helenus", "export", work / "out", "k.t", "--data", work / "data", "--parquet")
    files = list((work / "out").rglob("*.parquet"))
    assert files and files[0].read_bytes()[:4] == b"PAR1", files


def runs_everywhere(packages, work):
    """The binary asks for no interpreter and no library, so a glibc of any age, or none, is enough."""
    with tarfile.open(next(packages.glob("helenus-[0-9]*-linux-x86_64.tar.gz"))) as archive:
        archive.extractall(work)
    [top] = work.glob("helenus-*")
    found = called("readelf", "--program-headers", "--dynamic", top / "helenus")
    assert "INTERP" not in found and "NEEDED" not in found, found


def wheel(packages, work):
    """An empty virtual environment, without an index."""
    called("python3", "-m", "venv", work)
    pip = [work / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links", packages]
    called(*pip, "helenusdb")
    for program in [[work / "bin/helenus"], [work / "bin/helenusdb"], [work / "bin/python", "-m", "helenus"]]:
        answers(*program)
    called(work / "bin/python", "-c", PROGRAM, cwd=work)


def npm(packages, work):
    """An empty project, without a registry."""
    files = [path for path in packages.glob("*.tgz") if "arm64" not in path.name]
    (work / "package.json").write_text('{"name": "empty", "version": "1.0.0"}\n')
    called("npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", *files, cwd=work)
    answers(work / "node_modules/.bin/helenus")
    for name in ["helenus", "helenusdb"]:
        assert "helenus " in called("npx", "--offline", name, "--version", cwd=work)
    # Whoever ends npx leaves no server behind, which would keep its port.
    serve = ["serve", "--memory", "--listen", "127.0.0.1:0"]
    npx = subprocess.Popen(["npx", "--offline", "helenus", *serve], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = next(line for line in npx.stdout if line.startswith("listening"))
    npx.terminate()
    npx.wait()
    address = line.split()[1]
    for _ in range(400):
        with socket.socket() as client:
            if client.connect_ex((address.rsplit(":", 1)[0], int(address.rsplit(":", 1)[1]))) != 0:
                break
        time.sleep(0.05)
    else:
        raise AssertionError(f"the server at {address} goes on without npx")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    packages, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    failed, tests = 0, [digests, tarball, runs_everywhere, deb, wheel, npm]
    if list(packages.glob("helenus-analysis*")):
        tests.append(analysis)
    if shutil.which("debootstrap"):
        tests.append(debian)
    else:
        print("not tried: the Debian package in a root of Debian; apt-get install debootstrap")
    if list(packages.glob("*aarch64*")):
        tests.append(foreign)
    for test in tests:
        folder = work / test.__name__
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        begin = time.monotonic()
        try:
            test(packages, folder)
            print(f"ok     {test.__name__}, {time.monotonic() - begin:.1f} s", flush=True)
        except (AssertionError, OSError, ValueError, StopIteration) as error:
            failed += 1
            print(f"FAILED {test.__name__}: {error!r}", flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
