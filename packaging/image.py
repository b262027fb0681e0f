#!/usr/bin/env python3
"""Makes a container image that stands in for cassandra:5, and one for scylladb/scylla, without a daemon: OCI layouts, and the same as files.

    packaging/image.py --version V --revision COMMIT --epoch SECONDS --out DIR amd64=HELENUS:BUSYBOX [arm64=...]

DIR/layout is the folder (`skopeo copy oci:DIR/layout:VERSION ...`), with the tags VERSION and VERSION-scylla, each for all
platforms. DIR/image.tar has the first tag's configuration and layers of the first platform in the form of `docker save`, which
`docker load` and `podman load` read with its HEALTHCHECK; DIR/image-scylla.tar has the second tag's. DIR/image-layout.tar is the
layout as one file (`skopeo copy oci-archive:DIR/image-layout.tar:VERSION ...`). The same input makes the same
bytes: times are those of the commit, owners are numbers, entries are in a fixed order. Needs nothing but Python.
"""

import argparse
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT = 40_000_000  # bytes of all layers, unpacked
CASSANDRA = 999  # number of the user and the group in the official image

# Programs of busybox that would stop the machine, and names that the image gives to others.
LEFT_OUT = {"init", "linuxrc", "halt", "poweroff", "reboot", "dpkg", "dpkg-deb", "rpm", "busybox"}

PASSWD = """root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
cassandra:x:999:999:cassandra:/var/lib/cassandra:/bin/sh
"""
GROUP = """root:x:0:
nogroup:x:65534:
cassandra:x:999:
"""
# Scripts for Cassandra's image begin with bash; busybox's shell runs the common part of it.
BASH = """#!/bin/sh
exec /bin/sh "$@"
"""


class Tag:
    """What the images for Cassandra and for ScyllaDB differ in. They have the same layers."""

    def __init__(self, end, stands_for, command, folder):
        self.end, self.stands_for, self.command, self.folder = end, stands_for, command, folder


TAGS = [
    Tag("", "Apache Cassandra", ["cassandra", "-f"], "cassandra"),
    Tag("-scylla", "ScyllaDB", ["scylla"], "scylla"),
]


class Layer:
    """One layer, as a tar file in memory."""

    def __init__(self, epoch):
        self.epoch, self.entries = epoch, {}

    def add(self, path, kind=tarfile.REGTYPE, data=b"", mode=0o644, owner=0, link=""):
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.uid, info.gid, info.mtime = kind, mode, owner, owner, self.epoch
        info.linkname, info.size = link, len(data)
        self.entries[path] = (info, data)

    def folder(self, path, mode=0o755, owner=0):
        self.add(path, tarfile.DIRTYPE, mode=mode, owner=owner)

    def link(self, path, to):
        self.add(path, tarfile.SYMTYPE, mode=0o777, link=to)

    def packed(self):
        """The tar file, and the same compressed."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(self.entries):
                info, data = self.entries[path]
                tar.addfile(info, io.BytesIO(data))
        plain = out.getvalue()
        return plain, gzip.compress(plain, 9, mtime=0)


def base(epoch, busybox, applets):
    """What is the same in every version: a shell, users and folders."""
    layer = Layer(epoch)
    for path in ["etc", "opt", "run", "usr", "usr/bin", "usr/local", "usr/local/bin", "usr/share", "var", "var/lib", "var/log"]:
        layer.folder(path)
    for path in ["bin", "sbin"]:
        layer.link(path, "usr/bin")
    layer.link("usr/sbin", "bin")
    layer.folder("root", mode=0o700)
    layer.folder("tmp", mode=0o1777)
    layer.add("usr/bin/busybox", data=busybox, mode=0o755)
    for name in applets:
        layer.link(f"usr/bin/{name}", "busybox")
    layer.add("usr/bin/bash", data=BASH.encode(), mode=0o755)
    layer.add("etc/passwd", data=PASSWD.encode())
    layer.add("etc/group", data=GROUP.encode())
    return layer


def application(epoch, binary):
    """The server under its names, and its configuration."""
    layer = Layer(epoch)
    layer.add("usr/local/bin/helenus", data=binary, mode=0o755)
    for path in ["opt/cassandra", "opt/cassandra/bin"]:
        layer.folder(path)
    for name in ["cassandra", "cqlsh", "nodetool", "scylla"]:
        layer.link(f"opt/cassandra/bin/{name}", "/usr/local/bin/helenus")
    layer.link("opt/cassandra/conf", "/etc/cassandra")
    layer.link("opt/cassandra/data", "/var/lib/cassandra")
    layer.link("opt/cassandra/logs", "/var/log/cassandra")
    # As in the official image: any user may be given to the container.
    for path in [f"{top}/{tag.folder}" for tag in TAGS for top in ["etc", "var/lib", "var/log"]]:
        layer.folder(path, mode=0o1777, owner=CASSANDRA)
    for folder, name in [("cassandra", "cassandra.yaml"), ("cassandra", "cassandra-rackdc.properties"), ("scylla", "scylla.yaml")]:
        data = (HERE / "image" / name).read_bytes()
        layer.add(f"etc/{folder}/{name}", data=data, mode=0o666, owner=CASSANDRA)
    layer.folder("docker-entrypoint-initdb.d")
    entrypoint = (HERE / "image/docker-entrypoint.sh").read_bytes()
    layer.add("usr/local/bin/docker-entrypoint.sh", data=entrypoint, mode=0o755)
    layer.link("docker-entrypoint.sh", "usr/local/bin/docker-entrypoint.sh")
    layer.folder("usr/share/doc")
    layer.folder("usr/share/doc/helenus")
    layer.add("usr/share/doc/helenus/LICENSE", data=(HERE.parent / "LICENSE").read_bytes())
    notice = (HERE / "image/NOTICE").read_bytes()
    layer.add("usr/share/doc/helenus/NOTICE", data=notice)
    return layer


def configuration(options, tag, architecture, diff_ids):
    """The image's configuration, in Docker's form: HEALTHCHECK is not part of OCI's, whose readers ignore it."""
    created = datetime.fromtimestamp(options.epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    second = 1_000_000_000
    return {
        "architecture": architecture,
        "os": "linux",
        "created": created,
        "config": {
            "Env": [
                "PATH=/opt/cassandra/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "CASSANDRA_HOME=/opt/cassandra",
                f"CASSANDRA_CONF=/etc/{tag.folder}",
                f"CASSANDRA_VERSION={options.cassandra}",
                f"HELENUS_STANDS_FOR={tag.folder}",
                f"HELENUS_VERSION={options.version}",
            ],
            "Entrypoint": ["docker-entrypoint.sh"],
            "Cmd": tag.command,
            # The port that is served. Podman 4 lists an exposed port that is not published as bound to nothing, and
            # Testcontainers for Node.js waits in vain for it.
            "ExposedPorts": {"9042/tcp": {}},
            "Volumes": {f"/var/lib/{tag.folder}": {}},
            "StopSignal": "SIGTERM",
            "Healthcheck": {
                "Test": ["CMD-SHELL", "nodetool statusbinary | grep -qx running"],
                "Interval": 5 * second,
                "Timeout": 5 * second,
                "StartPeriod": 30 * second,
                "StartInterval": second // 4,
                "Retries": 3,
            },
            "Labels": {
                "org.opencontainers.image.title": "helenus",
                "org.opencontainers.image.description": f"A wide-column database that stands in for one node of {tag.stands_for}",
                "org.opencontainers.image.version": options.version,
                "org.opencontainers.image.revision": options.revision,
                "org.opencontainers.image.created": created,
                "org.opencontainers.image.licenses": "Apache-2.0 AND GPL-2.0-only",
                "org.opencontainers.image.source": options.source,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": [
            {"created": created, "created_by": "packaging/image.py: busybox, users, folders"},
            {"created": created, "created_by": "packaging/image.py: helenus"},
        ],
    }


class Layout:
    """The folder of an OCI layout."""

    def __init__(self, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "blobs/sha256").mkdir(parents=True)

    def blob(self, data, media):
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs/sha256" / digest).write_bytes(data)
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    def document(self, value, media):
        return self.blob(encoded(value), media)

    def write(self, name, value):
        (self.folder / name).write_bytes(encoded(value))


def encoded(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def applets(busybox):
    """The programs of a busybox, asked from the one of this machine where the other's is foreign."""
    for program in [busybox, "busybox"]:
        try:
            listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
            return sorted(set(listed) - LEFT_OUT)
        except (OSError, subprocess.CalledProcessError):
            continue
    sys.exit(f"image.py: cannot run {busybox} --list; install busybox-static")


def build(options):
    layout = Layout(options.out / "layout")
    images, loadable = {tag: [] for tag in TAGS}, {}
    for given in options.platforms:
        architecture, _, files = given.partition("=")
        binary, _, busybox = files.partition(":")
        layers, diff_ids, size = [], [], 0
        for layer in [
            base(options.epoch, Path(busybox).read_bytes(), applets(busybox)),
            application(options.epoch, Path(binary).read_bytes()),
        ]:
            plain, packed = layer.packed()
            diff_ids.append(f"sha256:{hashlib.sha256(plain).hexdigest()}")
            layers.append(layout.blob(packed, "application/vnd.oci.image.layer.v1.tar+gzip"))
            size += len(plain)
        if size > LIMIT:
            sys.exit(f"image.py: the image for {architecture} has {size} bytes, more than {LIMIT}")
        for tag in TAGS:
            config = layout.document(
                configuration(options, tag, architecture, diff_ids), "application/vnd.oci.image.config.v1+json"
            )
            manifest = {
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": config,
                "layers": layers,
            }
            image = layout.document(manifest, manifest["mediaType"])
            images[tag].append(image | {"platform": {"architecture": architecture, "os": "linux"}})
            loadable.setdefault(tag, (config, layers))
            packed_size = sum(one["size"] for one in layers)
            print(f"{options.version}{tag.end} {architecture}: {size} bytes, {packed_size} compressed, {image['digest']}")
    top = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json"}
    named = []
    for tag, of_platforms in images.items():
        if len(of_platforms) > 1:
            # A name stands for the images of all platforms, from which a reader chooses.
            of_platforms = [layout.document(top | {"manifests": of_platforms}, top["mediaType"])]
        name = {"org.opencontainers.image.ref.name": f"{options.version}{tag.end}"}
        named += [image | {"annotations": name} for image in of_platforms]
    layout.write("index.json", top | {"manifests": named})
    layout.write("oci-layout", {"imageLayoutVersion": "1.0.0"})
    for tag in TAGS:
        pack(layout, (tag, *loadable[tag]), options.out / f"image{tag.end}.tar", options)
    whole = Layer(options.epoch)
    for path in sorted(path for path in layout.folder.rglob("*") if path.is_file()):
        whole.add(str(path.relative_to(layout.folder)), data=path.read_bytes())
    write(whole, options.out / "image-layout.tar")


def pack(layout, image, file, options):
    """One image as a tar file for `docker load` and `podman load`."""
    whole = Layer(options.epoch)

    def add(blob, end):
        name = blob["digest"].removeprefix("sha256:") + end
        whole.add(name, data=(layout.folder / "blobs/sha256" / blob["digest"].removeprefix("sha256:")).read_bytes())
        return name

    tag, config, layers = image
    names = {"Config": add(config, ".json"), "Layers": [add(layer, ".tar.gz") for layer in layers]}
    whole.add("manifest.json", data=encoded([names | {"RepoTags": [f"helenus:{options.version}{tag.end}"]}]))
    write(whole, file)


def write(layer, file):
    plain, _ = layer.packed()
    file.write_bytes(plain)
    print(f"{file}: {len(plain)} bytes, sha256:{hashlib.sha256(plain).hexdigest()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", required=True)
    parser.add_argument("--cassandra", required=True, help="the release of Cassandra that it stands in for")
    parser.add_argument("--revision", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--epoch", required=True, type=int)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("platforms", nargs="+", metavar="ARCHITECTURE=HELENUS:BUSYBOX")
    build(parser.parse_args())


if __name__ == "__main__":
    main()
