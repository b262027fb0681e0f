#!/usr/bin/env python3
"""Writes the licences of everything that the binary is built from into one file.

    packaging/licences.py --target TRIPLE --out FILE

Takes the crates from `cargo metadata` and the texts from their sources, those of libraries in C inside them included. A crate
without a licence is an error. Those of feature `analysis` alone are marked. Equal texts stand once. The same Cargo.lock makes the
same bytes. Needs Python and cargo.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("license", "licence", "copying", "notice", "unlicense")
# Folders below a crate that its authors keep for tests and tools: their licences are not of the binary.
LEFT_OUT = {"tests", "test", "benches", "examples", "fuzz", "ci", "doc", "docs", "contrib", "programs", "target"}
DEPTH = 3


def metadata(target, features):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    command += ["--manifest-path", "crates/helenus-cli/Cargo.toml", "--features", features]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def of_binary(found):
    """The packages that end up in `helenus-cli`, itself included: dependencies of builds and of tests do not."""
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    packages = {package["id"]: package for package in found["packages"]}
    waiting = [package["id"] for package in packages.values() if package["name"] == "helenus-cli"]
    seen = set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        for dependency in nodes[one]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return sorted((packages[one] for one in seen), key=lambda package: (package["name"], package["version"]))


def texts(folder):
    """The files of licences in a crate's folder, with their paths in it."""
    waiting = [(folder, 0)]
    while waiting:
        here, depth = waiting.pop(0)
        for path in sorted(here.iterdir()):
            if path.is_dir() and depth < DEPTH and path.name not in LEFT_OUT and not path.is_symlink():
                waiting.append((path, depth + 1))
            elif path.is_file() and path.name.lower().startswith(NAMES):
                yield path.relative_to(folder), path.read_text(errors="replace").strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", required=True)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    plain = {package["id"] for package in of_binary(metadata(options.target, "shared-crates"))}
    with_analysis = of_binary(metadata(options.target, "shared-crates,analysis"))
    packages = [package for package in with_analysis if package["source"]]
    missing = [package["name"] for package in packages if not package["license"] and not package["license_file"]]
    if missing:
        sys.exit(f"licences: without a licence: {', '.join(missing)}")
    places = {}
    lines = [
        "The binary helenus is under the Apache License 2.0 (file LICENSE). It contains these crates, each under the licence",
        "that its authors chose. Where there is a choice (OR), any one holds. Their texts follow.",
        "",
    ]
    for package in packages:
        name = f"{package['name']} {package['version']}"
        mark = "" if package["id"] in plain else " (in helenus-analysis alone)"
        lines.append(f"{name}{mark}: {package['license'] or package['license_file']}")
        for path, text in texts(Path(package["manifest_path"]).parent):
            places.setdefault(text, []).append(f"{name}: {path}")
    for text, of in sorted(places.items(), key=lambda place: place[1]):
        lines += ["", "=" * 100, *of, "=" * 100, "", *text.splitlines()]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines) + "\n")
    print(f"{len(packages)} crates, {len(places)} texts in {options.out}")


if __name__ == "__main__":
    main()
