"""The wide rows of "Cassandra Query Plans" (2011): a row of 100 to 1,000,000 columns, in an ascending and a reversed table.

    wide_rows.py load  HOST:PORT [WIDTH ...]     makes the tables and writes them
    wide_rows.py check HOST:PORT [WIDTH ...]     reads them back and compares every value

A column of that article is a row of ours: 10 bytes of name (the clustering), 25 bytes of value; a row of theirs is a
partition, here `row-WIDTH`. `check` reads names (one, and 100 by IN from one place, from everywhere, and absent ones),
slices of 100 in both directions from starts all over the row, bounded ranges, and the whole row both ways. It expects
the values that `load` wrote, computed again, so that the two may run before and after a flush or a crash.

Prints a line a row and table with seconds and ends with `ok`; any difference ends it with status 1.
"""

import random
import sys
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.concurrent import execute_concurrent
from cassandra.query import BatchStatement, BatchType, tuple_factory

KEYSPACE = "wide_rows"
WIDTHS = (100, 1_200, 5_000, 10_000, 100_000, 1_000_000)
TABLES = {"ascending": "ASC", "reversed": "DESC"}
BATCH = 100
SLICE = 100


def name(i):
    return f"{i:010d}"


def value(width, i):
    return f"{width:07d}:{i * 2_654_435_761 % 10**17:017d}"


def connect(address):
    host, port = address.rsplit(":", 1)
    profile = ExecutionProfile(consistency_level=ConsistencyLevel.ONE, row_factory=tuple_factory, request_timeout=120)
    cluster = Cluster([host], port=int(port), execution_profiles={EXEC_PROFILE_DEFAULT: profile}, compression=False)
    session = cluster.connect()
    session.default_fetch_size = 5_000
    return cluster, session


def run_all(session, statements, concurrency):
    for success, error in execute_concurrent(session, statements, concurrency=concurrency, raise_on_first_error=True,
                                             results_generator=True):
        if not success:
            raise error


def load(session, table, width):
    insert = session.prepare(f"INSERT INTO {KEYSPACE}.{table} (key, name, value) VALUES (?, ?, ?)")
    key = f"row-{width}"

    def batches():
        for start in range(0, width, BATCH):
            batch = BatchStatement(batch_type=BatchType.UNLOGGED)
            for i in range(start, min(start + BATCH, width)):
                batch.add(insert, (key, name(i), value(width, i)))
            yield batch, None

    run_all(session, batches(), 32)


class Check:
    """The queries on one partition of one table."""

    def __init__(self, session, table, width):
        self.session, self.table, self.width, self.key = session, table, width, f"row-{width}"
        self.stored_descending = TABLES[table] == "DESC"
        self.prepared = {}

    def query(self, tail, *values):
        if tail not in self.prepared:
            select = f"SELECT name, value FROM {KEYSPACE}.{self.table} WHERE key = ? {tail}"
            self.prepared[tail] = self.session.prepare(select)
        return self.session.execute(self.prepared[tail], (self.key, *values))

    def expect(self, what, rows, numbers):
        """`rows` must be the columns `numbers`, in that order, with their values."""
        found = 0
        numbers = iter(numbers)
        for row in rows:
            i = next(numbers, None)
            if i is None or row != (name(i), value(self.width, i)):
                expected = "no more rows" if i is None else (name(i), value(self.width, i))
                raise SystemExit(f"{self.table} {self.key}, {what}, row {found}: found {row}, expected {expected}")
            found += 1
        missing = next(numbers, None)
        if missing is not None:
            raise SystemExit(f"{self.table} {self.key}, {what}: ends after {found} rows, before {name(missing)}")

    def names(self):
        last = self.width - 1
        places = random.Random(self.width)
        for i in {0, last, last // 2, *(places.randrange(self.width) for _ in range(20))}:
            self.expect(f"name {i}", self.query("AND name = ?", name(i)), [i])
        for absent in ("", "!", name(self.width), "0000000000x", "zzz"):
            self.expect(f"absent name {absent!r}", self.query("AND name = ?", absent), [])
        groups = {
            "start": range(min(100, self.width)),
            "end": range(max(0, self.width - 100), self.width),
            "middle": range(max(0, last // 2 - 50), min(self.width, last // 2 + 50)),
            "everywhere": [places.randrange(self.width) for _ in range(100)],
            "few": [places.randrange(self.width) for _ in range(2)],
        }
        for group, wanted in groups.items():
            asked = [name(i) for i in wanted] + [name(self.width + 5), "absent"]
            places.shuffle(asked)
            expected = sorted(set(wanted), reverse=self.stored_descending)
            self.expect(f"100 names, {group}", self.query("AND name IN ?", asked), expected)

    def slices(self):
        width = self.width
        for start in {0, 1, 50, width // 4, width // 2, width * 3 // 4, width - 50, width - 1}:
            up, down = range(start, min(start + SLICE, width)), range(start, max(start - SLICE, -1), -1)
            for tail, columns in (
                ("AND name >= ? ORDER BY name ASC LIMIT 100", up),
                ("AND name <= ? ORDER BY name DESC LIMIT 100", down),
                ("AND name > ? ORDER BY name ASC LIMIT 100", range(start + 1, min(start + 1 + SLICE, width))),
                ("AND name < ? ORDER BY name DESC LIMIT 100", range(start - 1, max(start - 1 - SLICE, -1), -1)),
            ):
                self.expect(f"slice {tail} from {start}", self.query(tail, name(start)), columns)
            end = min(start + 250, width)
            inside = range(start, end)
            self.expect(f"range {start}..{end}", self.query("AND name >= ? AND name < ?", name(start), name(end)),
                        inside[::-1] if self.stored_descending else inside)
            for order, columns in (("ASC", inside), ("DESC", inside[::-1])):
                between = self.query(f"AND name > ? AND name < ? ORDER BY name {order}",
                                     name(start - 1) + "x" if start else "", name(end - 1) + "x")
                self.expect(f"range between names, {order}", between, columns)
        first, last = range(min(SLICE, width)), range(width - 1, max(width - 1 - SLICE, -1), -1)
        self.expect("the first 100", self.query("ORDER BY name ASC LIMIT 100"), first)
        self.expect("the last 100", self.query("ORDER BY name DESC LIMIT 100"), last)
        self.expect("100 as stored", self.query("LIMIT 100"), last if self.stored_descending else first)
        self.expect("before the row", self.query("AND name < ? ORDER BY name DESC LIMIT 100", name(0)), [])
        self.expect("behind the row", self.query("AND name > ? ORDER BY name ASC LIMIT 100", name(width)), [])

    def whole(self):
        everything = range(self.width)
        self.expect("all, ascending", self.query("ORDER BY name ASC"), everything)
        self.expect("all, descending", self.query("ORDER BY name DESC"), everything[::-1])


def main():
    mode, address = sys.argv[1:3]
    widths = [int(width) for width in sys.argv[3:]] or WIDTHS
    if mode not in ("load", "check"):
        sys.exit(__doc__)
    cluster, session = connect(address)
    if mode == "load":
        session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = "
                        "{'class': 'SimpleStrategy', 'replication_factor': 1}")
        for table, order in TABLES.items():
            session.execute(f"CREATE TABLE {KEYSPACE}.{table} (key text, name text, value text, "
                            f"PRIMARY KEY (key, name)) WITH CLUSTERING ORDER BY (name {order})")
    for table in TABLES:
        for width in widths:
            begin = time.monotonic()
            if mode == "load":
                load(session, table, width)
            else:
                check = Check(session, table, width)
                check.names()
                check.slices()
                check.whole()
            seconds = time.monotonic() - begin
            print(f"{mode} {table} row-{width}: {seconds:.1f} s", flush=True)
    cluster.shutdown()
    print("ok")


main()
