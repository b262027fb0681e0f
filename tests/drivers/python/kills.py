"""Writes and checks through the Python driver while its server is killed over and over.

Input: a line a start of the server, `HOST:PORT`. Each time it connects, looks for what was acknowledged, prints `ready`, and
writes until the server is gone. `HOST:PORT end` looks for everything and prints how much there was. A finding ends it.
"""

import os
import sys
import threading

from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.protocol import ConfigurationException, ServerError, SyntaxException
from cassandra.query import BatchStatement, BatchType, tuple_factory

KEYSPACE = "by_python"
# How many of the last numbers are looked for after each start; all of them at the end.
LAST = 3000
WINDOW = 32
FINDINGS = (InvalidRequest, ConfigurationException, ServerError, SyntaxException, AssertionError)

TABLES = [
    "rows (k int, n bigint, v bigint, w text, PRIMARY KEY (k, n))",
    "first (k int, n bigint, PRIMARY KEY (k, n))",
    "second (k int, n bigint, PRIMARY KEY (k, n))",
    "counted (k int PRIMARY KEY, n counter)",
    "once (k int, n bigint, v bigint, PRIMARY KEY (k, n))",
]


def fail(text):
    print(f"FINDING: {text}", flush=True)
    os._exit(1)


class Writer:
    """Numbers that go up and are never used twice; which of them were acknowledged."""

    def __init__(self):
        self.next = 0
        self.acknowledged = set()

    def step(self, session, prepared):
        raise NotImplementedError

    def run(self, session, prepared):
        try:
            while True:
                self.step(session, prepared)
        except FINDINGS as error:
            fail(f"{type(self).__name__}: {error!r}")
        except Exception:  # whatever a driver says of a server that is gone
            return

    def take(self):
        self.next += 1
        return self.next - 1

    def expect(self, found, first):
        """`found`: numbers from `first` on."""
        missing = [n for n in self.acknowledged if n >= first and n not in found]
        if missing:
            fail(f"{type(self).__name__}: {len(missing)} acknowledged are gone, such as {min(missing)}")
        unknown = [n for n in found if n >= self.next]
        if unknown:
            fail(f"{type(self).__name__}: {unknown[:3]} were never written")


class Rows(Writer):
    """Prepared INSERTs, many under way."""

    def step(self, session, prepared):
        numbers = [self.take() for _ in range(WINDOW)]
        insert = prepared["rows"]
        futures = [session.execute_async(insert, (n % 3, n, n * 7, "w" * (n % 300))) for n in numbers]
        failed = None
        for n, future in zip(numbers, futures):
            try:
                future.result()
                self.acknowledged.add(n)
            except FINDINGS:
                raise
            except Exception as error:
                failed = error
        if failed:
            raise failed

    def check(self, session, prepared, first):
        found = {}
        for k in range(3):
            found.update((n, v) for n, v in session.execute(prepared["read_rows"], (k, first)))
        self.expect(found, first)
        wrong = [n for n, v in found.items() if v != n * 7]
        if wrong:
            fail(f"Rows: {wrong[:3]} have other values")


class Pairs(Writer):
    """Logged batches of two tables."""

    def step(self, session, prepared):
        n = self.take()
        batch = BatchStatement(batch_type=BatchType.LOGGED)
        batch.add(prepared["first"], (0, n))
        batch.add(prepared["second"], (n % 4, n))
        session.execute(batch)
        self.acknowledged.add(n)

    def check(self, session, prepared, first):
        one = {n for (n,) in session.execute(prepared["read_first"], (0, first))}
        other = {n for k in range(4) for (n,) in session.execute(prepared["read_second"], (k, first))}
        if one != other:
            fail(f"Pairs: half of a batch: {sorted(one ^ other)[:3]}")
        self.expect(one, first)


class Counted(Writer):
    """One more on a counter each time."""

    def step(self, session, prepared):
        n = self.take()
        session.execute(prepared["count"], (0,))
        self.acknowledged.add(n)

    def check(self, session, prepared, first):
        row = session.execute("SELECT n FROM counted WHERE k = 0").one()
        total = row[0] if row else 0
        if not len(self.acknowledged) <= total <= self.next:
            fail(f"Counted: {total}, of {len(self.acknowledged)} acknowledged and {self.next} sent")


class Once(Writer):
    """INSERT IF NOT EXISTS."""

    def step(self, session, prepared):
        n = self.take()
        (applied, *_) = session.execute(prepared["once"], (0, n, n * 11)).one()
        if not applied:
            fail(f"Once: {n} was there before")
        self.acknowledged.add(n)

    def check(self, session, prepared, first):
        found = dict(session.execute(prepared["read_once"], (0, first)))
        self.expect(found, first)
        wrong = [n for n, v in found.items() if v != n * 11]
        if wrong:
            fail(f"Once: {wrong[:3]} have other values")


def connect(address, version):
    host, port = address.rsplit(":", 1)
    profile = ExecutionProfile(
        consistency_level=ConsistencyLevel.ONE,
        serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
        request_timeout=20,
        row_factory=tuple_factory,
    )
    cluster = Cluster(
        [host],
        port=int(port),
        protocol_version=version,
        connect_timeout=20,
        idle_heartbeat_interval=0,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    session = cluster.connect()
    session.default_fetch_size = 700
    # The server gives the timestamps.
    session.use_client_timestamp = False
    return cluster, session


def prepare(session):
    texts = {
        "rows": "INSERT INTO rows (k, n, v, w) VALUES (?, ?, ?, ?)",
        "read_rows": "SELECT n, v FROM rows WHERE k = ? AND n >= ?",
        "first": "INSERT INTO first (k, n) VALUES (?, ?)",
        "second": "INSERT INTO second (k, n) VALUES (?, ?)",
        "read_first": "SELECT n FROM first WHERE k = ? AND n >= ?",
        "read_second": "SELECT n FROM second WHERE k = ? AND n >= ?",
        "count": "UPDATE counted SET n = n + 1 WHERE k = ?",
        "once": "INSERT INTO once (k, n, v) VALUES (?, ?, ?) IF NOT EXISTS",
        "read_once": "SELECT n, v FROM once WHERE k = ? AND n >= ?",
    }
    return {name: session.prepare(text) for name, text in texts.items()}


def make_tables(session):
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {replication}")
    session.set_keyspace(KEYSPACE)
    for table in TABLES:
        session.execute(f"CREATE TABLE IF NOT EXISTS {table}")


def main():
    writers = [Rows(), Pairs(), Counted(), Once()]
    starts, cluster, threads = 0, None, []
    for line in sys.stdin:
        address, *rest = line.split()
        for thread in threads:
            thread.join()
        if cluster:
            cluster.shutdown()
        cluster, session = connect(address, [5, 4, 3][starts % 3])
        starts += 1
        make_tables(session)
        prepared = prepare(session)
        for writer in writers:
            writer.check(session, prepared, 0 if rest else max(0, writer.next - LAST))
        told = ", ".join(f"{type(w).__name__} {len(w.acknowledged)} of {w.next}" for w in writers)
        if rest:
            print(f"{told}; {starts} starts", flush=True)
            cluster.shutdown()
            return
        threads = [threading.Thread(target=w.run, args=(session, prepared), daemon=True) for w in writers]
        for thread in threads:
            thread.start()
        print(f"ready {told}", flush=True)


main()
