"""The Python driver through `helenus serve --gateway`, in one version of the protocol: HOST:PORT VERSION [kill].

Prints `ok CASE` for each case. With `kill` it then writes and reads without pause and prints `kill`; a line on its input says that a
node of the cluster is gone. It writes on for a while, and then looks for every write that was acknowledged.
"""

import os
import sys
import threading
import time

from cassandra import ConsistencyLevel, InvalidRequest, ReadTimeout, Unavailable, WriteTimeout
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import FallthroughRetryPolicy
from cassandra.protocol import ProtocolException
from cassandra.query import UNSET_VALUE, BatchStatement, BatchType, SimpleStatement

# What a client may be told of a request whose node was killed.
EXPECTED = (WriteTimeout, ReadTimeout, Unavailable)
# Writes after the node is gone.
AFTER = 1000


def connect(address, version):
    host, port = address.rsplit(":", 1)
    profile = ExecutionProfile(
        consistency_level=ConsistencyLevel.QUORUM, request_timeout=60, retry_policy=FallthroughRetryPolicy()
    )
    cluster = Cluster(
        [host], port=int(port), protocol_version=version, connect_timeout=30, control_connection_timeout=30,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    return cluster, cluster.connect()


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def wait_for(true, what):
    until = time.monotonic() + 30
    while not true():
        if time.monotonic() > until:
            raise AssertionError(f"{what}: not within 30 s")
        time.sleep(0.05)


class Cases:
    def __init__(self, address, version):
        self.address, self.version = address, version
        self.keyspace = f"gateway_v{version}"
        self.cluster, self.session = connect(address, version)

    def one_node(self):
        hosts = self.cluster.metadata.all_hosts()
        equal([(host.datacenter, host.rack) for host in hosts], [("datacenter1", "rack1")], "hosts")
        equal(len(list(self.session.execute("SELECT * FROM system.peers"))), 0, "peers")
        again, session = connect(self.address, self.version)
        text = "SELECT host_id, tokens, rpc_address FROM system.local WHERE key = 'local'"
        equal(list(session.execute(text)), list(self.session.execute(text)), "the node")
        again.shutdown()

    def schema(self):
        run = self.session.execute
        run(f"DROP KEYSPACE IF EXISTS {self.keyspace}")
        run(f"CREATE KEYSPACE {self.keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 3}}")
        other, _ = connect(self.address, self.version)
        run(f"CREATE TABLE {self.keyspace}.t (a int, b text, c int, v text, PRIMARY KEY ((a, b), c))")
        equal(list(self.cluster.metadata.keyspaces[self.keyspace].tables), ["t"], "own metadata")
        # The other client learns of it by an event alone.
        wait_for(lambda: "t" in other.metadata.keyspaces.get(self.keyspace, self).tables, "the event")
        other.shutdown()
        run(f"CREATE TYPE {self.keyspace}.p (x int, y frozen<list<date>>)")
        run(f"CREATE TABLE {self.keyspace}.u (a int PRIMARY KEY, p frozen<p>, d duration, m map<text, smallint>)".replace("frozen<p>", f"frozen<{self.keyspace}.p>"))

    tables: dict = {}

    def use(self):
        self.session.set_keyspace(self.keyspace)
        self.session.execute("INSERT INTO t (a, b, c, v) VALUES (0, 'x', 0, 'y')")
        equal(self.session.execute("SELECT v FROM t").one().v, "y")
        prepared = self.session.prepare("SELECT v FROM t WHERE a = ? AND b = ?")
        equal(self.session.execute(prepared, (0, "x")).one().v, "y")
        try:
            self.session.execute("USE nowhere_at_all")
            raise AssertionError("USE of a keyspace that is not there")
        except InvalidRequest as error:
            equal("does not exist" in str(error), True, str(error))

    def prepared(self):
        insert = self.session.prepare(f"INSERT INTO {self.keyspace}.t (a, b, c, v) VALUES (?, ?, ?, ?)")
        select = self.session.prepare(f"SELECT * FROM {self.keyspace}.t WHERE a = ? AND b = ?")
        for number in range(50):
            self.session.execute(insert, (number, "p", 1, f"v{number}"))
            equal(self.session.execute(select, (number, "p")).one().v, f"v{number}")
        if self.version >= 4:
            self.session.execute(insert, (1, "p", 1, UNSET_VALUE))
            equal(self.session.execute(select, (1, "p")).one().v, "v1", "unset")
        self.session.execute(insert, (1, "p", 1, None))
        equal(self.session.execute(select, (1, "p")).one().v, None, "null")
        self.session.execute(f"ALTER TABLE {self.keyspace}.t ADD w int")
        self.session.execute(f"UPDATE {self.keyspace}.t SET w = 7 WHERE a = 2 AND b = 'p' AND c = 1")
        self.session.execute(f"DROP TABLE {self.keyspace}.t")
        self.session.execute(f"CREATE TABLE {self.keyspace}.t (a int, b text, c int, v text, PRIMARY KEY ((a, b), c))")
        self.session.execute(insert, (1, "p", 1, "again"))
        equal(self.session.execute(select, (1, "p")).one().v, "again", "after DROP and CREATE")

    def types(self):
        self.session.execute(f"INSERT INTO {self.keyspace}.u (a, p, d, m) VALUES (1, {{x: 2, y: ['2026-01-02']}}, 1mo2d, {{'k': 3}})")
        row = self.session.execute(f"SELECT * FROM {self.keyspace}.u").one()
        equal((row.a, row.p.x, str(row.p.y[0]), dict(row.m)), (1, 2, "2026-01-02", {"k": 3}))
        equal(str(row.d) != "", True)

    def batches(self):
        insert = self.session.prepare(f"INSERT INTO {self.keyspace}.t (a, b, c, v) VALUES (?, 'b', ?, ?)")
        for kind in (BatchType.LOGGED, BatchType.UNLOGGED):
            batch = BatchStatement(kind)
            for c in range(5):
                batch.add(insert, (c, c, kind.name))
                batch.add(SimpleStatement(f"INSERT INTO {self.keyspace}.t (a, b, c, v) VALUES (%s, 'b', 100, 'text')"), (c,))
            self.session.execute(batch)
            rows = list(self.session.execute(f"SELECT v FROM {self.keyspace}.t WHERE a = 3 AND b = 'b'"))
            equal([row.v for row in rows], [kind.name, "text"])

    def paging(self):
        insert = self.session.prepare(f"INSERT INTO {self.keyspace}.t (a, b, c, v) VALUES (9, 'pages', ?, 'x')")
        for c in range(500):
            self.session.execute_async(insert, (c,))
        text = f"SELECT c FROM {self.keyspace}.t WHERE a = 9 AND b = 'pages'"
        wait_for(lambda: len(list(self.session.execute(text))) == 500, "500 rows")
        equal([row.c for row in self.session.execute(SimpleStatement(text, fetch_size=37))], list(range(500)))
        prepared = self.session.prepare(text)
        prepared.fetch_size = 100
        first = self.session.execute(prepared)
        state = first.paging_state
        equal(len(first.current_rows), 100)
        rest = self.session.execute(prepared, paging_state=state)
        equal([row.c for row in rest], list(range(100, 500)))
        # The driver closes a connection on which such an error comes.
        other, session = connect(self.address, self.version)
        try:
            session.execute(SimpleStatement(text), paging_state=state[1:])
            raise AssertionError("a foreign paging state was accepted")
        except (ProtocolException, NoHostAvailable) as error:
            equal("Invalid value for the paging state" in repr(error), True, repr(error))
        other.shutdown()

    def conditions(self):
        text = f"INSERT INTO {self.keyspace}.t (a, b, c, v) VALUES (1, 'lwt', 1, %s) IF NOT EXISTS"
        equal(self.session.execute(text, ("first",)).was_applied, True)
        again = self.session.execute(text, ("second",))
        equal((again.was_applied, again.one().v), (False, "first"))
        prepared = self.session.prepare(f"UPDATE {self.keyspace}.t SET v = ? WHERE a = 1 AND b = 'lwt' AND c = 1 IF v = ?")
        equal(self.session.execute(prepared, ("third", "first")).was_applied, True)
        equal(self.session.execute(prepared, ("fourth", "first")).was_applied, False)

    def tracing(self):
        result = self.session.execute(f"SELECT * FROM {self.keyspace}.t WHERE a = 1 AND b = 'lwt'", trace=True)
        trace = result.get_query_trace(max_wait_sec=20)
        equal(len(trace.events) > 0, True, "events of a trace")

    def errors(self):
        for text, word in (
            ("SELEKT", "line 1"),
            ("SELECT * FROM nowhere.t", "nowhere"),
            ("EXPLAIN SELECT * FROM system.local", "cannot see"),
        ):
            try:
                self.session.execute(text)
                raise AssertionError(f"accepted: {text}")
            except AssertionError:
                raise
            except Exception as error:
                equal(word in str(error), True, repr(error))
        if self.version >= 4:
            result = self.session.execute(f"SELECT count(*) FROM {self.keyspace}.t")
            equal(bool(result.response_future.warnings), True, "the warning of an aggregate")

    def kill(self):
        run = self.session.execute
        run(f"CREATE TABLE {self.keyspace}.k (n int PRIMARY KEY, v int)")
        insert = self.session.prepare(f"INSERT INTO {self.keyspace}.k (n, v) VALUES (?, ?)")
        select = self.session.prepare(f"SELECT v FROM {self.keyspace}.k WHERE n = ?")
        acknowledged, failed, stop, lock = set(), [], threading.Event(), threading.Lock()
        numbers = iter(range(10**9))

        def work():
            while not stop.is_set():
                with lock:
                    number = next(numbers)
                try:
                    self.session.execute(insert, (number, number))
                    with lock:
                        acknowledged.add(number)
                    equal(self.session.execute(select, (number,)).one().v, number, "read after write")
                except EXPECTED as error:
                    failed.append(type(error).__name__)
                except BaseException as error:  # anything else is a finding
                    failed.append(repr(error))
                    stop.set()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(acknowledged) > 500, "500 writes")
        print("kill", flush=True)
        sys.stdin.readline()
        before = len(acknowledged)
        wait_for(lambda: stop.is_set() or len(acknowledged) > before + AFTER, "writes without the node")
        is_finding = stop.is_set()
        stop.set()
        for thread in threads:
            thread.join()
        if is_finding:
            raise AssertionError(f"while a node was killed: {failed}")
        missing = [n for n in acknowledged if not list(self.session.execute(select, (n,)))]
        equal(missing, [], "acknowledged writes that are gone")
        print(f"{len(acknowledged)} writes, {len(failed)} told that they may be lost: {sorted(set(failed))}", flush=True)


def main():
    address, version = sys.argv[1], int(sys.argv[2])
    cases = Cases(address, version)
    names = ["one_node", "schema", "use", "prepared", "types", "batches", "paging", "conditions", "tracing", "errors"]
    if sys.argv[3:] == ["kill"]:
        names.append("kill")
    status = 0
    for name in names:
        try:
            getattr(cases, name)()
            print(f"ok {name}", flush=True)
        except Exception as error:
            print(f"FAILED {name}: {error!r}", flush=True)
            status = 1
    if status == 0:
        cases.session.execute(f"DROP KEYSPACE {cases.keyspace}")
        print("ok", flush=True)
    # Threads of the driver do not hold the end up.
    sys.stdout.flush()
    os._exit(status)


main()
