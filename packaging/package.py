#!/usr/bin/env python3
"""Packs the static binary for those who install it: tarball, Debian package, Python wheel and npm packages.

    packaging/package.py --version V --epoch SECONDS --out DIR [--also FILE].. [--analysis amd64=HELENUS].. [--also-analysis FILE]..
                         [--image FILE].. amd64=HELENUS [arm64=HELENUS]

The first binary must run on this machine: it writes the manual pages and completions that all packages share. DIR gets the
packages, the files of --also (each package contains them too), SHA256SUMS and manifest.json with sizes and digests. The binaries of
--analysis, which have Parquet and Arrow, go into a tarball of their own, with the files of --also-analysis in place of --also. The files of
--image stand beside the packages. The same input makes the same bytes. Needs nothing but Python.
"""

import argparse
import base64
import copy
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SUMMARY = "A wide-column database that speaks Cassandra's CQL and keeps Cassandra's files, in one small program"
HOMEPAGE = "https://github.com/helenus-db/helenus"
# The name in registries, where another program has the plain one (docs/decisions/2026-11-29-names-in-registries.md).
REGISTERED = "helenusdb"
# `uvx helenusdb` and `pipx run helenusdb` look for a command of the package's name.
SAME_COMMAND = b'#!/bin/sh\nexec "$(dirname "$0")/helenus" "$@"\n'
# The names of a processor: in Debian, in Rust and Python, in Node.js.
PROCESSORS = {"amd64": ("x86_64", "x64"), "arm64": ("aarch64", "arm64")}
COMPLETIONS = {"bash": "helenus", "zsh": "_helenus", "fish": "helenus.fish"}
DOCUMENTS = ["README.md", "CHANGELOG.md"]


def packed(epoch, entries):
    """A tar file, compressed; `entries` are pairs of a path and bytes, with `*` at the end of a program's path and `!` at the end of
    the path of a file that others may not read."""
    out, folders = io.BytesIO(), set()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, data in sorted(entries):
            name = path.rstrip("*!")
            parents = list(Path(name).parents)[::-1]
            for folder in [str(parent) for parent in parents if str(parent) != "."]:
                if folder not in folders:
                    folders.add(folder)
                    info = tarfile.TarInfo(f"{folder}/")
                    info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, epoch
                    tar.addfile(info)
            info = tarfile.TarInfo(name)
            mode = {"*": 0o755, "!": 0o640}.get(path[-1], 0o644)
            info.size, info.mode, info.mtime = len(data), mode, epoch
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(out.getvalue(), 9, mtime=0)


class Shared:
    """What every package has besides the binary."""

    def __init__(self, options, binary):
        with tempfile.TemporaryDirectory() as folder:
            pages = Path(folder) / "man"
            subprocess.run([binary, "man", pages], check=True, capture_output=True)
            self.pages = {page.name: page.read_bytes() for page in sorted(pages.iterdir())}
        self.completions = {
            shell: subprocess.run([binary, "completions", shell], check=True, capture_output=True).stdout
            for shell in COMPLETIONS
        }
        self.documents = {name: linked(options, (ROOT / name).read_text()).encode() for name in DOCUMENTS}
        self.documents["LICENSE"] = (ROOT / "LICENSE").read_bytes()
        self.also = read(options.also)

    def with_also(self, also):
        """The same with other files of --also."""
        other = copy.copy(self)
        other.also = read(also)
        return other


def linked(options, text):
    """A document whose links into the repository lead there, since the repository is not in a package."""
    place = r"\]\((?!https?:|#)([^)]+)\)"
    text = re.sub(rf"(!\[[^]]*){place}", rf"\1]({HOMEPAGE}/raw/v{options.version}/\2)", text)
    return re.sub(place, rf"]({HOMEPAGE}/blob/v{options.version}/\1)", text)


def read(paths):
    return {path.name: path.read_bytes() for path in paths}


def tarball(options, processor, binary, shared, name="helenus"):
    top = f"{name}-{options.version}-linux-{PROCESSORS[processor][0]}"
    entries = [(f"{top}/helenus*", binary)]
    entries += [(f"{top}/{name}", data) for name, data in (shared.documents | shared.also).items()]
    entries += [(f"{top}/man/man1/{name}", data) for name, data in shared.pages.items()]
    entries += [(f"{top}/completions/{COMPLETIONS[shell]}", data) for shell, data in shared.completions.items()]
    return f"{top}.tar.gz", packed(options.epoch, entries)


def debian(options, processor, binary, shared):
    """A .deb: an `ar` file of the format's version, the control files and the data (deb(5))."""
    folders = {
        "bash": "usr/share/bash-completion/completions",
        "zsh": "usr/share/zsh/vendor-completions",
        "fish": "usr/share/fish/vendor_completions.d",
    }
    data = [("usr/bin/helenus*", binary)]
    data += [(f"usr/share/doc/helenus/{name}", text) for name, text in (shared.documents | shared.also).items()]
    data += [("usr/share/doc/helenus/copyright", (HERE / "deb/copyright").read_bytes())]
    data += [(f"usr/share/man/man1/{name}.gz", gzip.compress(page, 9, mtime=0)) for name, page in shared.pages.items()]
    data += [(f"{folders[shell]}/{COMPLETIONS[shell]}", text) for shell, text in shared.completions.items()]
    data += [("usr/lib/systemd/system/helenus.service", (HERE / "deb/helenus.service").read_bytes())]
    data += [("etc/helenus/helenus.yaml!", (HERE / "deb/helenus.yaml").read_bytes())]
    control = f"""Package: helenus
Version: {options.version}
Architecture: {processor}
Maintainer: The Helenus project <helenus@localhost>
Installed-Size: {sum(len(text) for _, text in data) // 1024}
Section: database
Priority: optional
Homepage: {HOMEPAGE}
Description: {SUMMARY.split(",")[0]}
 {SUMMARY}.
"""
    sums = "".join(f"{hashlib.md5(text).hexdigest()}  {path.rstrip('*!')}\n" for path, text in sorted(data))
    about = [("control", control.encode()), ("md5sums", sums.encode()), ("conffiles", b"/etc/helenus/helenus.yaml\n")]
    about += [(f"{name}*", (HERE / "deb" / name).read_bytes()) for name in ["postinst", "prerm", "postrm"]]
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", packed(options.epoch, about)),
        ("data.tar.gz", packed(options.epoch, data)),
    ]
    out = b"!<arch>\n"
    for name, content in members:
        out += f"{name:<16}{options.epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content
        out += b"\n" * (len(content) % 2)
    return f"helenus_{options.version}_{processor}.deb", out


def wheel(options, processor, binary, shared):
    """A wheel with the binary as its script. A static binary fits every Linux, hence all tags."""
    machine = PROCESSORS[processor][0]
    tags = [f"manylinux_2_17_{machine}", f"manylinux2014_{machine}", f"musllinux_1_1_{machine}"]
    top = f"{REGISTERED}-{options.version}"
    metadata = (
        f"Metadata-Version: 2.1\nName: {REGISTERED}\nVersion: {options.version}\nSummary: {SUMMARY}\nHome-page: {HOMEPAGE}\n"
        f"License: Apache-2.0\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n"
    ).encode() + shared.documents["README.md"]
    about = "Wheel-Version: 1.0\nGenerator: packaging/package.py\nRoot-Is-Purelib: false\n"
    about += "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
    files = {
        "helenus/__init__.py": (HERE / "python/__init__.py").read_bytes(),
        "helenus/__main__.py": (HERE / "python/__main__.py").read_bytes(),
        "helenus/pytest_plugin.py": (HERE / "python/pytest_plugin.py").read_bytes(),
        f"{top}.data/scripts/helenus": binary,
        f"{top}.data/scripts/{REGISTERED}": SAME_COMMAND,
        f"{top}.dist-info/entry_points.txt": b"[pytest11]\nhelenus = helenus.pytest_plugin\n",
        f"{top}.dist-info/METADATA": metadata,
        f"{top}.dist-info/WHEEL": about.encode(),
        f"{top}.dist-info/LICENSE": shared.documents["LICENSE"],
    }
    files |= {f"{top}.dist-info/{name}": data for name, data in shared.also.items()}
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{top}.dist-info/RECORD"] = (record + f"{top}.dist-info/RECORD,,\n").encode()
    out = io.BytesIO()
    moment = datetime.fromtimestamp(options.epoch, timezone.utc).timetuple()[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in files.items():
            info = zipfile.ZipInfo(path, moment)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            archive.writestr(info, data)
    return f"{top}-py3-none-{'.'.join(tags)}.whl", out.getvalue()


def npm_platform(options, processor, binary, shared):
    """The npm package with the binary for one processor, which the package that users name depends on."""
    cpu = PROCESSORS[processor][1]
    about = npm_about(options, f"{REGISTERED}-linux-{cpu}") | {"os": ["linux"], "cpu": [cpu], "files": ["bin", *shared.also]}
    entries = [
        ("package/package.json", encoded(about)),
        ("package/LICENSE", shared.documents["LICENSE"]),
        ("package/bin/helenus*", binary),
    ]
    entries += [(f"package/{name}", data) for name, data in shared.also.items()]
    return f"{REGISTERED}-linux-{cpu}-{options.version}.tgz", packed(options.epoch, entries)


def npm_main(options, shared):
    """The npm package that users name: it starts the binary of the package for their processor."""
    platforms = {f"{REGISTERED}-linux-{cpu}": options.version for _, cpu in PROCESSORS.values()}
    about = npm_about(options, REGISTERED) | {
        "bin": {"helenus": "bin/helenus.js", REGISTERED: "bin/helenus.js"},
        "optionalDependencies": platforms,
        "engines": {"node": ">=18"},
    }
    entries = [
        ("package/package.json", encoded(about)),
        ("package/README.md", shared.documents["README.md"]),
        ("package/LICENSE", shared.documents["LICENSE"]),
        ("package/bin/helenus.js*", (HERE / "npm/helenus.js").read_bytes()),
    ]
    return f"{REGISTERED}-{options.version}.tgz", packed(options.epoch, entries)


def npm_about(options, name):
    return {
        "name": name,
        "version": options.version,
        "description": SUMMARY,
        "license": "Apache-2.0",
        "repository": {"type": "git", "url": f"git+{HOMEPAGE}.git"},
    }


def encoded(value):
    return (json.dumps(value, indent=2) + "\n").encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", required=True)
    parser.add_argument("--epoch", required=True, type=int)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--also", action="append", default=[], type=Path)
    parser.add_argument("--also-analysis", action="append", default=[], type=Path)
    parser.add_argument("--image", action="append", default=[], type=Path)
    parser.add_argument("--analysis", action="append", default=[], metavar="PROCESSOR=HELENUS")
    parser.add_argument("binaries", nargs="+", metavar="PROCESSOR=HELENUS")
    options = parser.parse_args()
    binaries = dict(given.split("=", 1) for given in options.binaries)
    shared = Shared(options, next(iter(binaries.values())))
    packages = [("npm", "any", *npm_main(options, shared))]
    for processor, path in binaries.items():
        binary = Path(path).read_bytes()
        for kind, make in [("tarball", tarball), ("deb", debian), ("wheel", wheel), ("npm", npm_platform)]:
            packages.append((kind, processor, *make(options, processor, binary, shared)))
    shared_of_analysis = shared.with_also(options.also_analysis)
    for given in options.analysis:
        processor, _, path = given.partition("=")
        made = tarball(options, processor, Path(path).read_bytes(), shared_of_analysis, name="helenus-analysis")
        packages.append(("tarball", processor, *made))
    about = shared.also | shared_of_analysis.also
    packages += [("about", "any", name, data) for name, data in about.items()]
    packages += [("image", "any", f"helenus-{options.version}-{path.name}", path.read_bytes()) for path in options.image]
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    manifest = []
    for kind, processor, name, data in packages:
        (options.out / name).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        manifest.append({"file": name, "kind": kind, "processor": processor, "bytes": len(data), "sha256": digest})
        print(f"{len(data):>10}  {name}")
    sums = "".join(f"{one['sha256']}  {one['file']}\n" for one in manifest)
    (options.out / "SHA256SUMS").write_text(sums)
    (options.out / "manifest.json").write_bytes(encoded({"version": options.version, "packages": manifest}))


if __name__ == "__main__":
    main()
