#!/usr/bin/env python3
"""Helenus beside other stores, and beside Cassandra: everything in one command.

    bench/peers/run.py [--rows 10000000] [--seconds 1] [--write docs/measurements/DATE.md]     all of it, about an hour
    bench/peers/run.py --only-stores [--rows 100000 --seconds 0.2]                       the stores alone
    bench/peers/run.py --instructions [--rows 200000]                                    instructions a read, by callgrind
    bench/peers/run.py --curve 0.1,1,10 [--stores helenus]                               reads as a store grows, GB

The stores (RocksDB, LMDB, SQLite, a B-tree map) run in one process with Helenus's engine over the same bytes; then
bench/compare.py measures Helenus and Cassandra 5.0.6 over sockets, with a server of canned answers as the floor.
--write puts each part between its marks of that page. RocksDB is its authors' release build, which their Java artefact
holds: Maven fetches it once. --compile-rocksdb compiles it instead, an hour on one core. Either needs libclang for the
bindings: Debian's libclang-dev, else pip fetches it.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from servers import ROOT, machine, write_section  # noqa: E402

ROCKSDB = "10.4.2"  # that of the bindings in Cargo.lock
LIBCLANG = "18.1.1"
TURNS = 20  # ROUNDS of src/workloads.rs
CURVES = {10_000_000: "partitions of ten million rows", 10: "partitions of ten rows"}
COUNTED = ["slice of 100, anywhere, forward", "slice of 100, anywhere, reversed", "100 names on 100 random pages",
           "100 adjacent names, anywhere", "one row by its whole key", "scan, rows"]


def target():
    return Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target")).resolve()


def environment(options):
    """What the build of the bindings needs."""
    found = dict(os.environ)
    if not options.compile_rocksdb:
        found["ROCKSDB_LIB_DIR"] = str(rocksdb())
    if "LIBCLANG_PATH" not in found:
        clangs = sorted(Path("/usr/lib").glob("llvm-*/lib/libclang*.so*"))
        clangs = [path for path in clangs if not path.name.startswith("libclang-cpp")]
        found["LIBCLANG_PATH"] = str(clangs[-1].parent if clangs else libclang())
        if not clangs:
            headers = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, check=True, text=True)
            found.setdefault("BINDGEN_EXTRA_CLANG_ARGS", f"-I{headers.stdout.strip()}")
    return found


def libclang():
    """The folder of the library out of Python's registry, for systems that have none. It has no headers: gcc's will do."""
    folder = target() / f"libclang-{LIBCLANG}"
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, f"libclang=={LIBCLANG}"],
                       check=True)
    return folder / "clang/native"


def rocksdb():
    """The folder of the library, fetched if it is not there. It exports the C functions beside Java's."""
    folder = target() / f"rocksdb-{ROCKSDB}"
    if not (folder / "librocksdb.so").exists():
        system = {"x86_64": "linux64", "aarch64": "linux-aarch64"}[os.uname().machine]
        artifact = f"org.rocksdb:rocksdbjni:{ROCKSDB}:jar:linux64"  # which has every Linux
        subprocess.run(["mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
                        f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"], check=True)
        with zipfile.ZipFile(next(folder.glob("*.jar"))) as jar:
            (folder / "librocksdb.so").write_bytes(jar.read(f"librocksdbjni-{system}.so"))
    return folder


def build(options):
    """Builds the program; gives its path."""
    subprocess.run(["cargo", "build", "--release"], cwd=HERE, env=environment(options), check=True)
    return target() / "release/peers"


def command(program, options, *more, only=None):
    args = [program, "--rows", options.rows, "--seconds", options.seconds, *more]
    if only or options.stores:
        args += ["--stores", only or options.stores]
    if options.dir:
        args += ["--dir", options.dir]
    if options.granularity:
        args += ["--granularity", options.granularity]
    return [str(arg) for arg in args]


def output(args):
    return subprocess.run(args, stdout=subprocess.PIPE, check=True, text=True).stdout


def heading(title, options):
    """The head of a section: when, what, where, and what disturbed it."""
    last = ["git", "log", "-1", "--format=%h", "--", "crates"]
    commit = subprocess.run(last, cwd=ROOT, capture_output=True, text=True)
    load = Path("/proc/loadavg").read_text().split()[0]
    rust = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.split()[1]
    typed = shlex.join(["bench/peers/run.py", *(arg for arg in sys.argv[1:] if arg not in ("--note", options.note))])
    note = f" {options.note}" if options.note else ""
    return f"""### {title}

{date.today():%d %b %Y}, engine of commit {commit.stdout.strip()}, rustc {rust}. {machine()}; load average {load} before
the run.{note} Command:

    {typed}
"""


def stores(program, options):
    """The section of the stores in one process."""
    text = heading("In one process", options)
    rocksdb = "" if options.compile_rocksdb else """ RocksDB is a shared library here,
and a tenth of its instructions go into that (bench/peers/README.md)."""
    return f"""{text}
How to read it: every store holds the same {options.rows:,} rows of one partition (names of 10 bytes, values of 25; keys are
`row-10000000` and the name) and answers on one thread, from memory. A call ends with names and values copied into a buffer,
which is compared with what was written, outside the timed part; a whole scan is compared so once, those that are timed by
their count. The stores took {TURNS} turns of {options.seconds * 1000 / TURNS:g} ms in each read. The machine's speed swings by half and more within
seconds, so stores are compared by their best turn: a cell is the median of single calls of that turn, microseconds, and in
brackets the median and the 95th percentile of all turns. Rates are rows a second, of the best of five scans (and of the one in
the middle). `of ...'s time` is ours divided by theirs: under 1 we are faster. Targets are those of the design; BTreeMap has
none, it is what the machine allows. Loads came one after another, once each, so the swings are in their ratios; what a store
does on other threads meanwhile is not in their first line.{rocksdb}

{output(command(program, options))}"""


def instructions(program, options):
    """Instructions of a call: repeatable where times are not."""
    names = (options.stores or "helenus,rocksdb,lmdb,sqlite,map").split(",")
    lines = []
    for read in COUNTED:
        cells = []
        for name in names:
            calls = 1 if read.startswith("scan") else 200
            each = counted(command(program, options, "--only", read, "--calls", 200, only=name)) / calls
            cells.append(each / options.rows if read.startswith("scan") else each)
        lines.append(f"| {read} | " + " | ".join(f"{cell:,.0f}" for cell in cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    head = "| instructions | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1)
    return f"""{heading("Instructions of a read", options)}
Counted by callgrind over 200 calls of each read from a partition of {options.rows:,} rows, all in memory; of a scan, instructions a
row. They do not drift with the machine as times do; they say nothing about waiting for memory.

{head}
""" + "\n".join(lines) + "\n"


def counted(args):
    """Instructions inside the measured reads of one run."""
    with tempfile.TemporaryDirectory() as folder:
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
                "--toggle-collect=peers::samples::Samples::read*"]
        done = subprocess.run([*tool, *args], capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        raise SystemExit(f"{' '.join(args)} under callgrind:\n{done.stderr}")
    return int(found.group(1))


def curves(program, options):
    """Reads of stores of several sizes."""
    widths = [options.rows] if options.rows not in CURVES else CURVES
    tables = []
    for width in widths:
        args = command(program, options, "--curve", options.curve)
        args[args.index("--rows") + 1] = str(width)
        tables.append(output(args))
    return f"""{heading("As a store grows", options)}
Sizes count names, keys and values, 47 bytes a row. Cells are the median of the best turn (median, 95th percentile of all),
microseconds, of reads of any row
of any partition: the work of finding one must grow no faster than the logarithm, what else it costs is the machine's
memory and disk.

""" + "\n".join(tables)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="rows of the wide partition, 10,000,000 by default")
    parser.add_argument("--seconds", type=float, default=1, help="of each read in each store")
    parser.add_argument("--stores", help="only these, separated by commas: helenus, rocksdb, lmdb, sqlite, map")
    parser.add_argument("--granularity", help="bytes between entries of Helenus's row index: 1KiB, 16KiB")
    parser.add_argument("--note", help="what else ran on the machine; stands in the section")
    parser.add_argument("--dir", help="where to make the stores; a temporary folder by default")
    parser.add_argument("--only-stores", action="store_true", help="no servers, no Cassandra")
    parser.add_argument("--instructions", action="store_true", help="count instructions instead; needs valgrind")
    parser.add_argument("--curve", metavar="GB,GB", help="read stores of these sizes instead")
    parser.add_argument("--compile-rocksdb", action="store_true", help="do not fetch the library")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the results into this page")
    options = parser.parse_args()
    options.rows = options.rows or (200_000 if options.instructions else 10_000_000)
    program = build(options)
    if options.instructions:
        name, text = "peers-instructions", instructions(program, options)
    elif options.curve:
        name, text = "peers-curve", curves(program, options)
    else:
        name, text = "peers", stores(program, options)
    print(text, flush=True)
    if options.write:
        write_section(options.write, name, text)
    if not (options.only_stores or options.instructions or options.curve):
        sockets(options)


def sockets(options):
    """Helenus, Cassandra and the canned server, by bench/compare.py."""
    build = ["cargo", "build", "--profile", "optimized", "-p", "helenus-cli", "-p", "bench"]
    subprocess.run(build, cwd=ROOT, check=True)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "optimized"
    args = ["--wide", options.rows, "--binary", built / "helenus", "--canned", built / "canned",
            "--engine", built / "engine"]
    if options.write:
        args += ["--write", options.write.resolve()]
    subprocess.run([ROOT / "bench/compare.py", *map(str, args)], check=True)


if __name__ == "__main__":
    main()
