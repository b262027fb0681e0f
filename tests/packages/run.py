#!/usr/bin/env python3
"""Installs each package into a root with nothing else of ours, starts the server from it, and runs one query.

    tests/packages/run.py PACKAGES WORK       PACKAGES: the folder that packaging/package.py wrote

Needs root for `chroot`, Python 3 with venv, Node.js with npm, and dpkg. `cargo xtask package` calls it. No package is taken from
a registry.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

STATEMENT = "SELECT release_version FROM system.local"


def called(*words, **options):
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def answers(*program, **options):
    """Starts a server of the program in memory, asks it by the shell of the same program, and ends it."""
    program = [str(word) for word in program]
    server = subprocess.Popen(
        [*program, "serve", "--memory", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options,
    )
    try:
        line = next(line for line in server.stdout if line.startswith("listening"))
        found = called(*program, "shell", line.split()[1], "-e", STATEMENT, **options)
        assert "5.0." in found, found
    finally:
        server.terminate()
        server.stdout.close()
        assert server.wait() == 0, server.returncode


def digests(packages, work):
    """The digests of the manifest are those of the files, and of SHA256SUMS."""
    for package in json.loads((packages / "manifest.json").read_text())["packages"]:
        data = (packages / package["file"]).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (package["sha256"], package["bytes"]), package
    called("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=packages)


def tarball(packages, work):
    """An empty root with the binary alone: no library, no shell."""
    with tarfile.open(next(packages.glob("*-linux-x86_64.tar.gz"))) as archive:
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
    (work / "tmp").mkdir(mode=0o1777)
    answers("chroot", work, "/usr/bin/helenus")
    # With the settings that the service uses.
    data = work / "data"
    server = subprocess.Popen(
        ["chroot", str(work), "/usr/bin/helenus", "serve", "--config", "/etc/helenus/helenus.yaml", "--data", "/data", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    next(line for line in server.stdout if line.startswith("listening"))
    status = called("chroot", work, "/usr/bin/helenus", "admin", "--data", "/data", "status")
    assert "UN " in status and data.exists(), status
    server.terminate()
    server.stdout.close()
    assert server.wait() == 0


def wheel(packages, work):
    """An empty virtual environment, without an index."""
    called("python3", "-m", "venv", work)
    pip = [work / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links", packages]
    called(*pip, "helenus")
    answers(work / "bin/helenus")
    answers(work / "bin/python", "-m", "helenus")


def npm(packages, work):
    """An empty project, without a registry."""
    files = [path for path in packages.glob("*.tgz") if "arm64" not in path.name]
    (work / "package.json").write_text('{"name": "empty", "version": "1.0.0"}\n')
    called("npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", *files, cwd=work)
    answers(work / "node_modules/.bin/helenus")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    packages, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    failed, tests = 0, [digests, tarball, deb, wheel, npm]
    for test in tests:
        folder = work / test.__name__
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        begin = time.monotonic()
        try:
            test(packages, folder)
            print(f"ok     {test.__name__}, {time.monotonic() - begin:.1f} s", flush=True)
        except (AssertionError, OSError, StopIteration) as error:
            failed += 1
            print(f"FAILED {test.__name__}: {error!r}", flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
