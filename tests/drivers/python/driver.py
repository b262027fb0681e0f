"""The Python driver against a CQL server: see ../README.md for arguments and cases."""

import datetime
import decimal
import hashlib
import ipaddress
import os
import ssl
import sys
import threading
import time
import uuid

from cassandra import AlreadyExists, ConsistencyLevel, InvalidRequest, OperationTimedOut
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.connection import locally_supported_compressions
from cassandra.protocol import ConfigurationException, SyntaxException
from cassandra.query import UNSET_VALUE, BatchStatement, BatchType, SimpleStatement, named_tuple_factory
from cassandra.util import Date, Duration, Time, uuid_from_time

KEYSPACE = "python_driver"


def connect(address, **options):
    host, port = address.rsplit(":", 1)
    profile = ExecutionProfile(consistency_level=ConsistencyLevel.ONE, request_timeout=30)
    options.setdefault("execution_profiles", {EXEC_PROFILE_DEFAULT: profile})
    cluster = Cluster([host], port=int(port), connect_timeout=20, **options, **access())
    return cluster, cluster.connect()


def access():
    """TLS and a login, where the environment asks for them: see ../README.md."""
    options = {}
    if "DRIVER_CAFILE" in os.environ:
        context = ssl.create_default_context(cafile=os.environ["DRIVER_CAFILE"])
        # The driver gives no name to a context that checks names.
        context.check_hostname = False
        if "DRIVER_CERT" in os.environ:
            context.load_cert_chain(os.environ["DRIVER_CERT"], os.environ["DRIVER_KEY"])
        options["ssl_context"] = context
    if "DRIVER_USER" in os.environ:
        options["auth_provider"] = PlainTextAuthProvider(os.environ["DRIVER_USER"], os.environ["DRIVER_PASSWORD"])
    return options


def equal(found, expected, what=""):
    if found != expected or type(found) is not type(expected):
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def refused(kind, text, call):
    """`call` must raise `kind` with `text` in its message."""
    try:
        call()
    except kind as error:
        if text not in str(error):
            raise AssertionError(f"the message of {error!r} lacks {text!r}") from None
    else:
        raise AssertionError(f"accepted, but expected {kind.__name__} with {text!r}")


def table(session, name, columns):
    session.execute(f"DROP TABLE IF EXISTS {KEYSPACE}.{name}")
    session.execute(f"CREATE TABLE {KEYSPACE}.{name} ({columns})")
    return f"{KEYSPACE}.{name}"


def connect_case(address, cluster, session):
    equal(cluster.protocol_version, 5, "protocol version")
    hosts = cluster.metadata.all_hosts()
    equal(len(hosts), 1, "hosts")
    equal((hosts[0].datacenter, hosts[0].rack), ("datacenter1", "rack1"), "place")
    equal(hosts[0].release_version.split(".")[0], "5", "release")
    equal(cluster.metadata.partitioner, "org.apache.cassandra.dht.Murmur3Partitioner", "partitioner")
    if not cluster.metadata.token_map.ring:
        raise AssertionError("no tokens")
    for keyspace in ("system", "system_schema", "system_virtual_schema"):
        if keyspace not in cluster.metadata.keyspaces:
            raise AssertionError(f"no keyspace {keyspace} in {sorted(cluster.metadata.keyspaces)}")
    row = session.execute("SELECT * FROM system.local WHERE key = 'local'").one()
    equal(row.bootstrapped, "COMPLETED", "bootstrapped")
    for version in (3, 4):
        older, second = connect(address, protocol_version=version)
        equal(second.execute("SELECT key FROM system.local").one().key, "local", f"protocol {version}")
        older.shutdown()


def schema_case(address, cluster, session):
    keyspace = cluster.metadata.keyspaces[KEYSPACE]
    equal(keyspace.durable_writes, True, "durable_writes")
    equal(keyspace.replication_strategy.export_for_schema(),
          "{'class': 'SimpleStrategy', 'replication_factor': '1'}", "replication")
    session.execute(f"DROP TABLE IF EXISTS {KEYSPACE}.made")
    create = (f"CREATE TABLE {KEYSPACE}.made (a int, b text, c timeuuid, d bigint, s text static, v blob, "
              "PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC) "
              "AND comment = 'made here' AND default_time_to_live = 86400 AND gc_grace_seconds = 3600")
    session.execute(create)
    made = keyspace.tables["made"]
    equal([column.name for column in made.partition_key], ["a", "b"], "partition key")
    equal([(column.name, column.is_reversed) for column in made.clustering_key], [("c", True), ("d", False)],
          "clustering")
    equal(made.columns["s"].is_static, True, "static")
    equal({name: column.cql_type for name, column in made.columns.items()},
          {"a": "int", "b": "text", "c": "timeuuid", "d": "bigint", "s": "text", "v": "blob"}, "types")
    equal((made.options["comment"], made.options["default_time_to_live"], made.options["gc_grace_seconds"]),
          ("made here", 86400, 3600), "options")
    equal(made.is_compact_storage, False, "compact storage")
    refused(AlreadyExists, "made", lambda: session.execute(create))
    session.execute(create.replace("TABLE", "TABLE IF NOT EXISTS"))
    session.execute(f"ALTER TABLE {KEYSPACE}.made ADD w int")
    session.execute(f"ALTER TABLE {KEYSPACE}.made DROP v")
    equal(sorted(keyspace.tables["made"].columns), ["a", "b", "c", "d", "s", "w"], "altered columns")
    session.execute(f"ALTER TABLE {KEYSPACE}.made RENAME c TO cc")
    equal([column.name for column in keyspace.tables["made"].clustering_key], ["cc", "d"], "renamed")
    session.execute(f"ALTER TABLE {KEYSPACE}.made WITH comment = 'altered' AND compression = "
                    "{'class': 'ZstdCompressor', 'chunk_length_in_kb': '64'}")
    equal(keyspace.tables["made"].options["comment"], "altered", "altered comment")
    equal(keyspace.tables["made"].options["compression"]["class"],
          "org.apache.cassandra.io.compress.ZstdCompressor", "compression")
    session.execute(f"DROP TABLE {KEYSPACE}.made")
    equal("made" in keyspace.tables, False, "dropped")
    session.execute(f"DROP TABLE IF EXISTS {KEYSPACE}.made")

    for statement, durable in (
        (f"CREATE KEYSPACE {KEYSPACE}_2 WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}} "
         "AND durable_writes = false", False),
        (f"ALTER KEYSPACE {KEYSPACE}_2 WITH durable_writes = true", True),
    ):
        session.execute(statement)
        equal(cluster.metadata.keyspaces[f"{KEYSPACE}_2"].durable_writes, durable, statement)
    refused(AlreadyExists, f"{KEYSPACE}_2", lambda: session.execute(
        f"CREATE KEYSPACE {KEYSPACE}_2 WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"))
    session.execute(f"DROP KEYSPACE {KEYSPACE}_2")
    equal(f"{KEYSPACE}_2" in cluster.metadata.keyspaces, False, "keyspace dropped")

    session.execute(f"CREATE TABLE {KEYSPACE}.\"Quoted\" (\"Key\" int PRIMARY KEY, \"select\" text)")
    session.execute(f"INSERT INTO {KEYSPACE}.\"Quoted\" (\"Key\", \"select\") VALUES (1, 'it''s')")
    session.set_keyspace(KEYSPACE)
    equal(tuple(session.execute("SELECT \"select\" FROM \"Quoted\"").one()), ("it's",), "quoted names")
    session.execute(f"DROP TABLE {KEYSPACE}.\"Quoted\"")


MOMENT = datetime.datetime(2026, 11, 21, 9, 30, 15, 123000)
# For each type: values that must come back as they went in.
TYPES = {
    "ascii": ["", "abc", "~" * 1000],
    "bigint": [0, 2**63 - 1, -(2**63)],
    "blob": [b"", b"\x00\xff", bytes(range(256)) * 20],
    "boolean": [True, False],
    "date": [Date(0), Date(-719162), Date(20778)],
    "decimal": [decimal.Decimal("0"), decimal.Decimal("-12345678901234567890.123456789"), decimal.Decimal("1E+40")],
    "double": [0.0, -1.5e300, float("inf"), 5e-324],
    "duration": [Duration(0, 0, 0), Duration(1, 2, 3), Duration(-12, -3, -(2**62))],
    "float": [0.0, 1.5, float("-inf")],
    "inet": ["127.0.0.1", "2001:db8::1"],
    "int": [0, 2**31 - 1, -(2**31)],
    "smallint": [0, 2**15 - 1, -(2**15)],
    "text": ["", "γαῖα", "\U0001f40e" * 100, "'quoted'"],
    "time": [Time(0), Time(24 * 3600 * 10**9 - 1)],
    "timestamp": [datetime.datetime(1970, 1, 1), MOMENT, datetime.datetime(1901, 2, 3, 4, 5, 6, 789000)],
    "timeuuid": [uuid_from_time(0), uuid_from_time(MOMENT, 0x123456789ABC, 0x1234)],
    "tinyint": [0, 127, -128],
    "uuid": [uuid.UUID(int=0), uuid.UUID("12345678-1234-4321-8765-123456789abc"), uuid.UUID(int=2**128 - 1)],
    "varchar": ["", "same as text"],
    "varint": [0, 2**200, -(2**200), -1, 127, 128, -128, -129],
}


def types_case(address, cluster, session):
    columns = ", ".join(f"{name}_ {name}" for name in TYPES)
    full = table(session, "types", f"k int PRIMARY KEY, {columns}")
    names = ", ".join(f"{name}_" for name in TYPES)
    marks = ", ".join("?" for _ in TYPES)
    insert = session.prepare(f"INSERT INTO {full} (k, {names}) VALUES (?, {marks})")
    select = session.prepare(f"SELECT {names} FROM {full} WHERE k = ?")
    rows = max(map(len, TYPES.values()))
    for k in range(rows):
        values = [values[k % len(values)] for values in TYPES.values()]
        session.execute(insert, [k, *values])
        found = session.execute(select, [k]).one()
        for name, value in zip(TYPES, values):
            equal(getattr(found, f"{name}_"), value, f"{name}, prepared")
    for name, values in TYPES.items():
        for value in values:
            if name not in ("ascii", "decimal", "varint", "time", "tinyint", "smallint"):  # the driver's own literals
                session.execute(f"INSERT INTO {full} (k, {name}_) VALUES (-1, %s)", [value])
                found = session.execute(f"SELECT {name}_ FROM {full} WHERE k = -1").one()
                equal(found[0], value, f"{name}, as a literal")
    session.execute(insert, [-2, *[None] * len(TYPES)])
    equal(tuple(session.execute(select, [-2]).one()), (None,) * len(TYPES), "nulls")
    # The literals of the language, as a person types them.
    session.execute(
        f"INSERT INTO {full} (k, {names}) VALUES (-3, 'a', 1, 0x00ff, true, '2026-11-21', 1.50, 1e3, 1y2mo3w4d5h6m7s8ms9us10ns, "
        "NaN, '10.0.0.1', -1, 300, $$dollar's$$, '01:02:03.000000004', '2026-11-21 09:30:15.123+0000', "
        "50554d6e-29bb-11e5-b345-feff819cdc9f, -128, 50554d6e-29bb-41e5-b345-feff819cdc9f, 'v', 123456789012345678901234567890)")
    row = session.execute(select, [-3]).one()
    equal(row.date_, Date("2026-11-21"), "date literal")
    equal(row.decimal_, decimal.Decimal("1.50"), "decimal literal")
    equal(row.duration_, Duration(14, 25, ((5 * 60 + 6) * 60 + 7) * 10**9 + 8_009_010), "duration literal")
    equal(row.float_ != row.float_, True, "NaN literal")
    equal(row.text_, "dollar's", "dollar literal")
    equal(row.time_, Time(3723 * 10**9 + 4), "time literal")
    equal(row.timestamp_, MOMENT, "timestamp literal")
    equal(row.varint_, 123456789012345678901234567890, "varint literal")
    # Each type as a partition key, and as a clustering in both orders: sorted by value, not by text.
    for name, values in TYPES.items():
        values = [value for value in values if value not in ("", b"")]
        key = table(session, "key", f"k {name} PRIMARY KEY, v int") if name != "duration" else None
        for number, value in enumerate(values if key else []):
            session.execute(session.prepare(f"INSERT INTO {key} (k, v) VALUES (?, ?)"), [value, number])
            found = session.execute(session.prepare(f"SELECT v FROM {key} WHERE k = ?"), [value]).one()
            equal(found.v, number, f"{name} as a partition key")
    for name in ("bigint", "varint", "decimal", "double", "tinyint", "timestamp", "date", "time"):
        ordered = sorted(TYPES[name])
        for order in ("ASC", "DESC"):
            sort = table(session, "sort", f"k int, c {name}, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c {order}")
            insert = session.prepare(f"INSERT INTO {sort} (k, c) VALUES (0, ?)")
            for value in TYPES[name]:
                session.execute(insert, [value])
            found = [row.c for row in session.execute(f"SELECT c FROM {sort} WHERE k = 0")]
            equal(found, ordered if order == "ASC" else ordered[::-1], f"{name} {order}")


def simple_case(address, cluster, session):
    full = table(session, "simple", "k int, c int, v text, PRIMARY KEY (k, c)")
    session.execute(f"INSERT INTO {full} (k, c, v) VALUES (%s, %s, %s)", (1, 2, "three"))
    session.execute(f"INSERT INTO {full} (k, c, v) VALUES (%(k)s, %(c)s, %(v)s)", {"k": 1, "c": 3, "v": "four"})
    session.execute(f"UPDATE {full} SET v = 'five' WHERE k = 1 AND c = 4")
    rows = session.execute(f"SELECT c, v FROM {full} WHERE k = 1")
    equal([tuple(row) for row in rows], [(2, "three"), (3, "four"), (4, "five")], "rows")
    session.execute(f"DELETE v FROM {full} WHERE k = 1 AND c = 3")
    session.execute(f"DELETE FROM {full} WHERE k = 1 AND c = 4")
    rows = session.execute(f"SELECT c, v FROM {full} WHERE k = 1")
    equal([tuple(row) for row in rows], [(2, "three"), (3, None)], "after deletes")
    equal(session.execute(f"SELECT count(*) FROM {full}").one()[0], 2, "count")
    row = session.execute(f"SELECT c AS name, v AS \"Value\" FROM {full} WHERE k = 1 LIMIT 1").one()
    equal(row._fields, ("name", "Value"), "aliases")
    session.execute(f"TRUNCATE {full}")
    equal(list(session.execute(f"SELECT * FROM {full}")), [], "truncated")


def prepared_case(address, cluster, session):
    full = table(session, "prepared", "k int, c text, a int, b text, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {full} (k, c, a, b) VALUES (?, ?, ?, ?)")
    equal([column.name for column in insert.column_metadata], ["k", "c", "a", "b"], "bound columns")
    equal(insert.routing_key_indexes, [0], "routing key")
    session.execute(insert, (1, "x", 10, "ten"))
    session.execute(insert, (1, "x", UNSET_VALUE, None))
    row = session.execute(f"SELECT a, b FROM {full} WHERE k = 1 AND c = 'x'").one()
    equal(tuple(row), (10, None), "unset keeps, null deletes")
    session.execute(insert, {"k": 1, "c": "y", "a": 11})
    named = session.prepare(f"SELECT a FROM {full} WHERE k = :key AND c = :name")
    equal(session.execute(named, {"key": 1, "name": "y"}).one().a, 11, "bound by name")
    stamped = session.prepare(f"INSERT INTO {full} (k, c, b) VALUES (?, ?, ?) USING TIMESTAMP ? AND TTL ?")
    session.execute(stamped, (2, "z", "bee", 1234567, 500))
    row = session.execute(f"SELECT writetime(b), ttl(b), ttl(a) FROM {full} WHERE k = 2 AND c = 'z'").one()
    equal((row[0], row[2]), (1234567, None), "writetime")
    if not 400 < row[1] <= 500:
        raise AssertionError(f"ttl {row[1]}")
    limited = session.prepare(f"SELECT c FROM {full} WHERE k = ? LIMIT ?")
    equal([row.c for row in session.execute(limited, (1, 1))], ["x"], "a bound limit")
    any_of = session.prepare(f"SELECT c FROM {full} WHERE k = ? AND c IN ?")
    equal([row.c for row in session.execute(any_of, (1, ["y", "x", "absent"]))], ["x", "y"], "a bound IN")
    refused(InvalidRequest, "Invalid null value", lambda: session.execute(insert, (None, "x", 1, "")))
    futures = [session.execute_async(insert, (100, f"{i:04}", i, "many")) for i in range(2000)]
    for future in futures:
        future.result()
    equal(session.execute(f"SELECT count(*) FROM {full} WHERE k = 100").one()[0], 2000, "2,000 at once")


def batch_case(address, cluster, session):
    full = table(session, "batches", "k int, c int, v text, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {full} (k, c, v) VALUES (?, ?, ?)")
    for kind, name in ((BatchType.LOGGED, 1), (BatchType.UNLOGGED, 2)):
        batch = BatchStatement(batch_type=kind)
        for c in range(20):
            batch.add(insert, (name, c, "p"))
        batch.add(f"INSERT INTO {full} (k, c, v) VALUES ({name}, 20, 't')")
        batch.add(SimpleStatement(f"UPDATE {full} SET v = %s WHERE k = {name + 10} AND c = 0"), ("other",))
        session.execute(batch)
        equal(session.execute(f"SELECT count(*) FROM {full} WHERE k = {name}").one()[0], 21, "batch")
        equal(session.execute(f"SELECT v FROM {full} WHERE k = {name + 10}").one().v, "other", "second partition")
    session.execute(f"BEGIN BATCH USING TIMESTAMP 500 INSERT INTO {full} (k, c, v) VALUES (3, 0, 'old'); "
                    f"DELETE FROM {full} WHERE k = 3 AND c = 1; APPLY BATCH")
    equal(session.execute(f"SELECT writetime(v) FROM {full} WHERE k = 3").one()[0], 500, "timestamp of a batch")
    session.execute(f"BEGIN UNLOGGED BATCH INSERT INTO {full} (k, c, v) VALUES (4, 0, 'a') USING TIMESTAMP 10 "
                    f"INSERT INTO {full} (k, c, v) VALUES (4, 0, 'b') USING TIMESTAMP 9; APPLY BATCH;")
    equal(session.execute(f"SELECT v FROM {full} WHERE k = 4").one().v, "a", "the later timestamp wins")


def paging_case(address, cluster, session):
    full = table(session, "paging", "k int, c int, v text, PRIMARY KEY (k, c)")
    insert = session.prepare(f"INSERT INTO {full} (k, c, v) VALUES (?, ?, ?)")
    for future in [session.execute_async(insert, (k, c, "v" * 20)) for k in range(10) for c in range(100)]:
        future.result()
    for future in [session.execute_async(insert, (99, c, "w" * 20)) for c in range(1000)]:
        future.result()
    whole = SimpleStatement(f"SELECT k, c FROM {full} WHERE k = 99", fetch_size=100)
    result = session.execute(whole)
    pages, found = 0, []
    while True:
        pages += 1
        found += [row.c for row in result.current_rows]
        if not result.has_more_pages:
            break
        equal(len(result.current_rows), 100, "page size")
        result.fetch_next_page()
    equal(found, list(range(1000)), "one partition in pages")
    if pages not in (10, 11):
        raise AssertionError(f"{pages} pages")
    everything = SimpleStatement(f"SELECT k, c FROM {full}", fetch_size=77)
    rows = [tuple(row) for row in session.execute(everything)]
    equal(sorted(rows), sorted([(k, c) for k in range(10) for c in range(100)] + [(99, c) for c in range(1000)]), "all")
    backwards = SimpleStatement(f"SELECT c FROM {full} WHERE k = 99 ORDER BY c DESC LIMIT 250", fetch_size=60)
    equal([row.c for row in session.execute(backwards)], list(range(999, 749, -1)), "backwards with a limit")
    first = session.execute(whole)
    second = session.execute(whole, paging_state=first.paging_state)
    equal(second.current_rows[0].c, 100, "a state handed on")
    distinct = SimpleStatement(f"SELECT DISTINCT k FROM {full}", fetch_size=3)
    equal(sorted(row.k for row in session.execute(distinct)), [*range(10), 99], "distinct in pages")
    per = SimpleStatement(f"SELECT k, c FROM {full} PER PARTITION LIMIT 2", fetch_size=5)
    equal(sorted(tuple(row) for row in session.execute(per)), [(k, c) for k in [*range(10), 99] for c in (0, 1)], "per")


def slices_case(address, cluster, session):
    for order in ("ASC", "DESC"):
        full = table(session, "slices", f"k text, c text, v int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c {order}")
        insert = session.prepare(f"INSERT INTO {full} (k, c, v) VALUES ('row', ?, ?)")
        for future in [session.execute_async(insert, (f"{i:04}", i)) for i in range(500)]:
            future.result()
        stored = 1 if order == "ASC" else -1

        def rows(where, tail=""):
            return [row.v for row in session.execute(f"SELECT v FROM {full} WHERE k = 'row' {where} {tail}")]

        equal(rows("AND c = '0123'"), [123], "a name")
        equal(rows("AND c IN ('0400', '0001', 'none', '0123')"), [1, 123, 400][::stored], "names")
        equal(rows("AND c >= '0100' AND c < '0105'"), [100, 101, 102, 103, 104][::stored], "a range")
        equal(rows("AND c > '0496'"), [497, 498, 499][::stored], "an open range")
        equal(rows("AND c > '0100'", "ORDER BY c ASC LIMIT 3"), [101, 102, 103], "ascending from a start")
        equal(rows("AND c <= '0100'", "ORDER BY c DESC LIMIT 3"), [100, 99, 98], "descending from a start")
        equal(rows("", "ORDER BY c DESC LIMIT 2"), [499, 498], "the last")
        equal(rows("", "LIMIT 2"), [0, 1] if order == "ASC" else [499, 498], "the first as stored")
        session.execute(f"DELETE FROM {full} WHERE k = 'row' AND c >= '0101' AND c < '0104'")
        equal(rows("AND c >= '0100' AND c <= '0105'"), [100, 104, 105][::stored], "after a range deletion")
        session.execute(f"INSERT INTO {full} (k, c, v) VALUES ('row', '0102', -102)")
        equal(rows("AND c >= '0100' AND c <= '0105'"), [100, -102, 104, 105][::stored], "written again")
        session.execute(f"DELETE FROM {full} WHERE k = 'row'")
        equal(rows(""), [], "after a partition deletion")
    full = table(session, "pairs", "k int, a int, b int, s text static, PRIMARY KEY (k, a, b)")
    for a in range(4):
        for b in range(4):
            session.execute(f"INSERT INTO {full} (k, a, b) VALUES (0, {a}, {b})")
    session.execute(f"UPDATE {full} SET s = 'still' WHERE k = 0")
    pairs = lambda where: [tuple(row) for row in session.execute(f"SELECT a, b FROM {full} WHERE k = 0 AND {where}")]
    equal(pairs("a = 1 AND b > 1"), [(1, 2), (1, 3)], "a prefix and a range")
    equal(pairs("(a, b) > (1, 2) AND (a, b) <= (2, 1)"), [(1, 3), (2, 0), (2, 1)], "a range of pairs")
    equal(pairs("(a, b) IN ((3, 3), (0, 1))"), [(0, 1), (3, 3)], "pairs by name")
    equal(pairs("a IN (0, 2) AND b = 3"), [(0, 3), (2, 3)], "IN and equal")
    equal(pairs("b = 2 ALLOW FILTERING"), [(0, 2), (1, 2), (2, 2), (3, 2)], "filtering")
    equal({row.s for row in session.execute(f"SELECT s FROM {full} WHERE k = 0")}, {"still"}, "static")
    token = session.execute(f"SELECT token(k) FROM {full} LIMIT 1").one()[0]
    equal(token, -3485513579396041028, "token(0)")
    equal(len(list(session.execute(f"SELECT k FROM {full} WHERE token(k) >= {token}"))), 16, "a token range")


def errors_case(address, cluster, session):
    full = table(session, "errors", "k int, c int, v int, PRIMARY KEY (k, c)")
    for kind, message, statement in (
        (SyntaxException, "line 1:0 no viable alternative at input 'SELEC'", "SELEC * FROM x"),
        (SyntaxException, "line 0:-1 no viable alternative at input '<EOF>'", f"SELECT * FROM {full} WHERE"),
        (InvalidRequest, "table absent does not exist", f"SELECT * FROM {KEYSPACE}.absent"),
        (InvalidRequest, "keyspace absent does not exist", "SELECT * FROM absent.absent"),
        (InvalidRequest, "Undefined column name nope", f"SELECT nope FROM {full}"),
        (InvalidRequest, "Some partition key parts are missing: k", f"INSERT INTO {full} (c, v) VALUES (1, 1)"),
        (InvalidRequest, "Some clustering keys are missing: c", f"INSERT INTO {full} (k, v) VALUES (1, 1)"),
        (InvalidRequest, "Invalid STRING constant (text) for \"v\" of type int",
         f"INSERT INTO {full} (k, c, v) VALUES (1, 1, 'text')"),
        (InvalidRequest, "use ALLOW FILTERING", f"SELECT * FROM {full} WHERE v = 1"),
        (InvalidRequest, "Invalid amount of bind variables", f"SELECT * FROM {full} WHERE k = ?"),
        (InvalidRequest, "ORDER BY is only supported when the partition key is restricted by an EQ or an IN",
         f"SELECT * FROM {full} ORDER BY c"),
        (InvalidRequest, "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got v",
         f"SELECT * FROM {full} WHERE k = 1 ORDER BY v"),
        (ConfigurationException, "Unable to find replication strategy class",
         "CREATE KEYSPACE bad WITH replication = {'class': 'NoStrategy'}"),
        (InvalidRequest, f"No PRIMARY KEY specifed for table '{KEYSPACE}.bad' (exactly one required)", f"CREATE TABLE {KEYSPACE}.bad (k int)"),
        (SyntaxException, "Unknown property 'nope'", f"ALTER TABLE {full} WITH nope = 1"),
        (InvalidRequest, "Keyspace 'absent' doesn't exist", "DROP KEYSPACE absent"),
        (InvalidRequest, f"Table '{KEYSPACE}.absent' doesn't exist", f"DROP TABLE {KEYSPACE}.absent"),
        (InvalidRequest, "Keyspace 'absent' does not exist", "USE absent"),
        (InvalidRequest, "ttl is too large", f"INSERT INTO {full} (k, c, v) VALUES (1, 1, 1) USING TTL 630720001"),
        (InvalidRequest, "A TTL must be greater or equal to 0, but was -1",
         f"INSERT INTO {full} (k, c, v) VALUES (1, 1, 1) USING TTL -1"),
    ):
        refused(kind, message, lambda: session.execute(statement))
    equal(list(session.execute(f"SELECT * FROM {full}")), [], "nothing was written")


def compression_case(address, cluster, session):
    full = table(session, "compression", "k int PRIMARY KEY, v text, b blob")
    text, blob = "compressible " * 25_000, uuid.uuid4().bytes * 20_000
    for name, version in (("lz4", 5), ("lz4", 4), ("lz4", 3), ("snappy", 4)):
        if name not in locally_supported_compressions:
            raise AssertionError(f"this driver was installed without {name}")
        other, second = connect(address, compression=name, protocol_version=version)
        insert = second.prepare(f"INSERT INTO {full} (k, v, b) VALUES (?, ?, ?)")
        second.execute(insert, (version, text, blob))
        row = second.execute(f"SELECT v, b FROM {full} WHERE k = {version}").one()
        equal(row.v == text and row.b == blob, True, f"{name} v{version}")
        other.shutdown()
    other, second = connect(address, compression=False)
    equal(second.execute(f"SELECT v FROM {full} WHERE k = 5").one().v == text, True, "uncompressed")
    other.shutdown()


def tracing_case(address, cluster, session):
    full = table(session, "tracing", "k int PRIMARY KEY, v int")
    session.execute(f"INSERT INTO {full} (k, v) VALUES (1, 1)")
    result = session.execute(f"SELECT v FROM {full} WHERE k = 1", trace=True)
    equal(result.one().v, 1, "the row")
    trace = result.get_query_trace(max_wait_sec=10)
    equal(trace.request_type, "Execute CQL3 query", "request")
    if trace.duration is None or not trace.events:
        raise AssertionError(f"an empty trace: duration {trace.duration}, {len(trace.events)} events")


def events_case(address, cluster, session):
    other, second = connect(address)
    seen = threading.Event()
    name = f"event_{uuid.uuid4().hex[:8]}"

    def look():  # the driver's metadata changes on its own thread; nothing announces it
        end = time.monotonic() + 20
        while time.monotonic() < end:
            other.metadata.keyspaces[KEYSPACE].tables.get(name) and seen.set()
            if seen.wait(0.02):
                return

    session.execute(f"CREATE TABLE {KEYSPACE}.{name} (k int PRIMARY KEY)")
    look()
    equal(seen.is_set(), True, "the table in the other client's metadata")
    session.execute(f"DROP TABLE {KEYSPACE}.{name}")
    other.shutdown()


def metadata_id_case(address, cluster, session):
    full = table(session, "metadata_id", "k int PRIMARY KEY, a int")
    session.execute(f"INSERT INTO {full} (k, a) VALUES (1, 2)")
    select = session.prepare(f"SELECT * FROM {full} WHERE k = ?")
    equal(session.execute(select, (1,)).one()._fields, ("k", "a"), "before")
    other, second = connect(address)
    second.execute(f"ALTER TABLE {full} ADD b int")
    second.execute(f"INSERT INTO {full} (k, b) VALUES (1, 3)")
    other.shutdown()
    row = session.execute(select, (1,)).one()
    equal((row._fields, tuple(row)), (("k", "a", "b"), (1, 2, 3)), "after ALTER TABLE ADD")
    equal(tuple(session.execute(select, (1,)).one()), (1, 2, 3), "and again")
    # The ids themselves: a client of Cassandra that finds Helenus in its place need not be told the columns again.
    named = [("k", "Int32Type"), ("c", "ReversedType({}Int32Type)"), ("v", "UTF8Type")]
    ordered = f"{KEYSPACE}.metadata_id_order"
    session.execute(f"DROP TABLE IF EXISTS {ordered}")
    session.execute(f"CREATE TABLE {ordered} (k int, c int, v text, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)")
    digest = hashlib.md5()
    marshal = "org.apache.cassandra.db.marshal."
    for column, kind in named:
        digest.update(f"{column}\0{marshal}{kind.format(marshal)}\0\0".encode())
    found = session.prepare(f"SELECT k, c, v FROM {ordered}").result_metadata_id
    equal(found.hex(), digest.hexdigest(), "the id of columns in descending order")


def warnings_case(address, cluster, session):
    full = table(session, "warned", "k int PRIMARY KEY, v text")

    def warnings(statement):
        future = session.execute_async(statement)
        future.result()
        return future.warnings

    def batch(kind, sizes):
        statements = BatchStatement(kind)
        for k, size in enumerate(sizes):
            statements.add(SimpleStatement(f"INSERT INTO {full} (k, v) VALUES ({k}, '{'x' * size}')"))
        return warnings(statements)

    equal(batch(BatchType.LOGGED, [2490, 2490]), None, "a batch of 5 KiB")
    large = f"Batch for [{full}] is of size 5121, exceeding specified threshold of 5120 by 1."
    equal(batch(BatchType.LOGGED, [2490, 2491]), [large], "a larger one")
    equal(batch(BatchType.LOGGED, [9000]), None, "to one partition")
    many = (f"Unlogged batch covering 11 partitions detected against table [{full}]. You should use a logged batch for "
            "atomicity, or asynchronous writes for performance.")
    equal(batch(BatchType.UNLOGGED, [1] * 11), [many], "an unlogged one over 11 partitions")
    equal(batch(BatchType.LOGGED, [1] * 11), None, "a logged one")
    refused(InvalidRequest, "Batch too large", lambda: batch(BatchType.LOGGED, [26000, 26000]))
    equal(warnings(f"SELECT count(*) FROM {full}"), ["Aggregation query used without partition key"], "an aggregate")
    equal(warnings(f"SELECT count(*) FROM {full} WHERE k IN (1, 2)"),
          ["Aggregation query used on multiple partition keys (IN restriction)"], "an aggregate over keys")
    equal(warnings(f"INSERT INTO {full} (k) VALUES (1)"), None, "a plain write")
    replicas = warnings("CREATE KEYSPACE python_driver_replicas WITH replication = "
                        "{'class': 'SimpleStrategy', 'replication_factor': 3}")
    session.execute("DROP KEYSPACE python_driver_replicas")
    equal(replicas, ["Your replication factor 3 for keyspace python_driver_replicas is higher than the number of nodes 1"],
          "more replicas than nodes")


def reprepare_case(address, cluster, session):
    full = table(session, "reprepare", "k int PRIMARY KEY, v int")
    insert = session.prepare(f"INSERT INTO {full} (k, v) VALUES (?, ?)")
    session.execute(insert, (1, 1))
    session.execute(f"DROP TABLE {full}")
    session.execute(f"CREATE TABLE {full} (k int PRIMARY KEY, v int)")
    session.execute(insert, (2, 2))
    equal([tuple(row) for row in session.execute(f"SELECT k, v FROM {full}")], [(2, 2)], "rows")


CASES = {name.removesuffix("_case"): case for name, case in list(globals().items()) if name.endswith("_case")}


def main():
    address, wanted = sys.argv[1], sys.argv[2:] or list(CASES)
    cluster, session = connect(address)
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = "
                    "{'class': 'SimpleStrategy', 'replication_factor': 1}")
    failed = 0
    for name in wanted:
        try:
            CASES[name](address, cluster, session)
            print("ok", name, flush=True)
        except Exception as error:  # one broken case must not hide the others
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
    session.execute(f"DROP KEYSPACE {KEYSPACE}")
    cluster.shutdown()
    if failed:
        sys.exit(1)
    print("ok")


main()
