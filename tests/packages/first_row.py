#!/usr/bin/env python3
"""Measures each way to install: bytes, and the time from the file to the first row that is written and read.

    tests/packages/first_row.py PACKAGES WORK [--runs N]    PACKAGES: the folder of `cargo xtask release`

Every way begins in a root, environment or store with nothing of ours, with the file on this machine. The clock runs over the
installation, the start of a server with its data on the disk, and a keyspace, a table, an INSERT and a SELECT by the package's own
shell. Prints the table of docs/performance.md with medians. What each way needs besides, see `WAYS`. The roots are those of run.py.
"""

import argparse
import importlib.util
import shutil
import statistics
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS = (
    "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; CREATE TABLE k.t (k int PRIMARY KEY); "
    "INSERT INTO k.t (k) VALUES (42); SELECT k FROM k.t;"
)


def module(name, path):
    found = importlib.util.spec_from_file_location(name, path)
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


packages_of, containers = module("packages", HERE / "run.py"), module("containers", HERE.parent / "containers/run.py")
called, running = packages_of.called, packages_of.running


def first_row(work, *program):
    """A server, and a row by the shell of the same program."""
    with running(*program, "serve", "--data", work / "data", "--listen", "127.0.0.1:0") as line:
        found = called(*program, "shell", line.split()[1], "-e", ROWS)
    assert "42" in found, found


def tarball(packages, work):
    file = next(packages.glob("helenus-[0-9]*-linux-x86_64.tar.gz"))

    def install():
        called("tar", "-xzf", file, cwd=work)
        return [next(work.glob("helenus-*")) / "helenus"]

    return [file], install, lambda program: first_row(work, *program)


def wheel(packages, work):
    file = next(packages.glob("*x86_64*.whl"))
    called("python3", "-m", "venv", work / "venv")

    def install():
        called(work / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", file)
        return [work / "venv/bin/helenus"]

    return [file], install, lambda program: first_row(work, *program)


def npm(packages, work):
    files = [next(packages.glob(name)) for name in ["helenus-linux-x64-*.tgz", "helenus-[0-9]*.tgz"]]
    (work / "package.json").write_text('{"name": "empty", "version": "1.0.0"}\n')

    def install():
        called("npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", *files, cwd=work)
        return [work / "node_modules/.bin/helenus"]

    return files, install, lambda program: first_row(work, *program)


def deb(packages, work):
    file, root = next(packages.glob("*_amd64.deb")), work.parent / "debian-root"
    inside = ["chroot", root]
    shutil.copy(file, root / "tmp/helenus.deb")
    called(*inside, "dpkg", "--purge", "helenus")
    shutil.rmtree(root / "tmp/first-row", ignore_errors=True)

    def install():
        called(*inside, "dpkg", "--install", "/tmp/helenus.deb")
        return [*inside, "helenus"]

    def row(program):
        first_row(Path("/tmp/first-row"), *program)
        called(*inside, "dpkg", "--purge", "helenus")

    return [file], install, row


def image(packages, work):
    file = next(packages.glob("helenus-*-image.tar"))
    podman = containers.Podman(work)

    def install():
        return podman.run("load", "--quiet", "--input", str(file)).split()[-1]

    def row(loaded):
        podman.start(image=loaded)
        assert "42" in podman.run("exec", "it", "cqlsh", "-e", ROWS)
        podman.run("rm", "--force", "it")
        podman.run("rmi", "--force", loaded)

    return [file], install, row


# Name, way, and what is there before the clock starts.
WAYS = [
    ("tarball", tarball, "tar"),
    ("wheel", wheel, "an empty virtual environment"),
    ("npm, two packages", npm, "an empty project"),
    ("deb", deb, "Debian 13, its dpkg"),
    ("image", image, "podman, storage driver vfs"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    packages, work = options.packages.resolve(), options.work.resolve()
    print("| way | needs | MB | install | until the first row |\n|---|---|---|---|---|")
    for name, way, needs in WAYS:
        times = []
        for _ in range(options.runs):
            folder = work / "first-row"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            files, install, row = way(packages, folder)
            begin = time.monotonic()
            program = install()
            installed = time.monotonic()
            row(program)
            times.append((installed - begin, time.monotonic() - begin))
        size = sum(file.stat().st_size for file in files) / 1e6
        one, all_of_it = (statistics.median(column) for column in zip(*times))
        print(f"| {name} | {needs} | {size:.1f} | {one:.2f} s | {all_of_it:.2f} s |", flush=True)


if __name__ == "__main__":
    main()
