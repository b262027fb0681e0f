"""The old RPC interface through thriftpy2, a client that knows nothing of Helenus.

    driver.py HOST:PORT [framed] [buffered] [old]

framed: TFramedTransport, strict. buffered: no frames, strict. old: no frames, not strict.
The expected answers are those of Cassandra 3.11's CassandraServer.
"""
import os
import struct
import sys
import time
import uuid
import zlib

import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.transport import TBufferedTransportFactory, TFramedTransportFactory

here = os.path.dirname(os.path.abspath(__file__))
c = thriftpy2.load(os.path.join(here, "cassandra.thrift"), module_name="cassandra_thrift")
ONE = c.ConsistencyLevel.ONE


def connect(host, port, kind):
    transport = TFramedTransportFactory() if kind == "framed" else TBufferedTransportFactory()
    strict = kind != "old"
    protocol = TBinaryProtocolFactory(strict_read=False, strict_write=strict)
    return make_client(c.Cassandra, host, port, timeout=20000, proto_factory=protocol, trans_factory=transport)


def b(value):
    """What the client decoded into text where it could, as bytes again."""
    return value.encode() if isinstance(value, str) else value


def raises(kind, call, *args):
    try:
        call(*args)
    except kind as error:
        return error
    raise AssertionError(f"{call} did not raise {kind}")


def why(call, *args):
    return raises(c.InvalidRequestException, call, *args).why


def column(name, value, timestamp=1, ttl=None):
    return c.Column(name=name, value=value, timestamp=timestamp, ttl=ttl)


def names(*names):
    return c.SlicePredicate(column_names=list(names))


def between(start=b"", finish=b"", count=100, reversed=False):
    return c.SlicePredicate(slice_range=c.SliceRange(start=start, finish=finish, reversed=reversed, count=count))


def shown(columns):
    return [(b(found.column.name), b(found.column.value)) for found in columns]


def insertion(name, value, timestamp=1):
    return c.Mutation(column_or_supercolumn=c.ColumnOrSuperColumn(column=column(name, value, timestamp)))


def family(keyspace, name, **more):
    return c.CfDef(keyspace=keyspace, name=name, **more)


def describing(client):
    assert client.describe_version() == "20.1.0"
    assert client.describe_cluster_name() == "Test Cluster"
    assert client.describe_partitioner().endswith("Murmur3Partitioner")
    assert len(client.describe_schema_versions()) == 1
    client.login(c.AuthenticationRequest(credentials={"username": "u", "password": "p"}))
    assert why(client.set_keyspace, "nowhere") == "Keyspace 'nowhere' does not exist"
    assert "No keyspace has been specified" in why(client.get_count, b"k", c.ColumnParent("x"), between(), ONE)
    raises(c.NotFoundException, client.describe_keyspace, "nowhere")


def defining(client):
    client.system_add_keyspace(c.KsDef(
        name="ks", strategy_class="org.apache.cassandra.locator.SimpleStrategy",
        strategy_options={"replication_factor": "1"},
        cf_defs=[family("ks", "Wide", comparator_type="AsciiType", default_validation_class="AsciiType",
                        key_validation_class="AsciiType")]))
    assert "case-insensitively unique" in why(client.system_add_keyspace, c.KsDef(
        name="KS", strategy_class="SimpleStrategy", strategy_options={"replication_factor": "1"}, cf_defs=[]))
    client.set_keyspace("ks")
    client.system_add_column_family(family("ks", "Down", comparator_type="AsciiType(reversed=true)"))
    client.system_add_column_family(family("ks", "Users", comparator_type="UTF8Type", column_metadata=[
        c.ColumnDef(name=b"email", validation_class="UTF8Type"),
        c.ColumnDef(name=b"age", validation_class="LongType"),
        c.ColumnDef(name=b"state", validation_class="UTF8Type", index_type=c.IndexType.KEYS)]))
    client.system_add_column_family(family("ks", "Composite", comparator_type="CompositeType(UTF8Type,LongType)"))
    client.system_add_column_family(family("ks", "Counts", comparator_type="UTF8Type",
                                           default_validation_class="CounterColumnType"))
    client.system_add_column_family(family("ks", "Super", column_type="Super", comparator_type="UTF8Type",
                                           subcomparator_type="LongType"))
    client.system_add_column_family(family("ks", "SuperCounts", column_type="Super", comparator_type="UTF8Type",
                                           subcomparator_type="UTF8Type", default_validation_class="CounterColumnType"))
    keyspace = client.describe_keyspace("ks")
    found = {family.name: family for family in keyspace.cf_defs}
    assert sorted(found) == ["Composite", "Counts", "Down", "Super", "SuperCounts", "Users", "Wide"], sorted(found)
    package = "org.apache.cassandra.db.marshal."
    assert found["Down"].comparator_type == f"{package}ReversedType({package}AsciiType)"
    assert found["Composite"].comparator_type == f"{package}CompositeType({package}UTF8Type,{package}LongType)"
    assert found["Super"].column_type == "Super" and found["Super"].subcomparator_type == package + "LongType"
    assert found["Counts"].default_validation_class == package + "CounterColumnType"
    columns = {b(definition.name): definition for definition in found["Users"].column_metadata}
    assert sorted(columns) == [b"age", b"email", b"state"]
    assert columns[b"age"].validation_class == package + "LongType"
    assert columns[b"state"].index_type == c.IndexType.KEYS
    assert why(client.system_add_column_family, family("ks", "Bad", comparator_type="FooType")).startswith("Unable to find")


def dynamic(client):
    wide = c.ColumnParent("Wide")
    client.insert(b"row", wide, column(b"b", b"2"), ONE)
    client.batch_mutate({b"row": {"Wide": [insertion(b"a", b"1"), insertion(b"d", b"4"), insertion(b"c", b"3")]}}, ONE)
    found = client.get(b"row", c.ColumnPath("Wide", column=b"c"), ONE)
    assert (b(found.column.name), b(found.column.value), found.column.timestamp, found.column.ttl) == (b"c", b"3", 1, None)
    raises(c.NotFoundException, client.get, b"row", c.ColumnPath("Wide", column=b"x"), ONE)
    raises(c.NotFoundException, client.get, b"none", c.ColumnPath("Wide", column=b"x"), ONE)
    pairs = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d", b"4")]
    assert shown(client.get_slice(b"row", wide, between(), ONE)) == pairs
    assert shown(client.get_slice(b"row", wide, between(b"b", b"c"), ONE)) == pairs[1:3]
    assert shown(client.get_slice(b"row", wide, between(count=2), ONE)) == pairs[:2]
    assert shown(client.get_slice(b"row", wide, between(count=0), ONE)) == []
    assert shown(client.get_slice(b"row", wide, between(b"c", b"", 2, True), ONE)) == [pairs[2], pairs[1]]
    assert shown(client.get_slice(b"row", wide, names(b"d", b"x", b"a"), ONE)) == [pairs[0], pairs[3]]
    assert shown(client.get_slice(b"none", wide, between(), ONE)) == []
    assert client.get_count(b"row", wide, between(), ONE) == 4
    assert client.get_count(b"row", wide, c.SlicePredicate(), ONE) == 4
    assert client.get_count(b"row", wide, between(count=3), ONE) == 3
    many = client.multiget_slice([b"row", b"none"], wide, between(), ONE)
    assert {b(key): shown(columns) for key, columns in many.items()} == {b"row": pairs, b"none": []}
    assert {b(k): n for k, n in client.multiget_count([b"row", b"none"], wide, between(count=3), ONE).items()} == \
        {b"row": 3, b"none": 0}
    client.remove(b"row", c.ColumnPath("Wide", column=b"b"), 2, ONE)
    assert shown(client.get_slice(b"row", wide, between(), ONE)) == [pairs[0], pairs[2], pairs[3]]
    deletion = c.Mutation(deletion=c.Deletion(timestamp=3, predicate=between(b"c", b"d")))
    client.batch_mutate({b"row": {"Wide": [deletion, insertion(b"c", b"late", 4)]}}, ONE)
    assert shown(client.get_slice(b"row", wide, between(), ONE)) == [(b"a", b"1"), (b"c", b"late")]
    client.remove(b"row", c.ColumnPath("Wide"), 5, ONE)
    assert shown(client.get_slice(b"row", wide, between(), ONE)) == []
    client.insert(b"row", wide, column(b"ttl", b"v", 6, 1000), ONE)
    assert client.get(b"row", c.ColumnPath("Wide", column=b"ttl"), ONE).column.ttl == 1000
    down = c.ColumnParent("Down")
    client.batch_mutate({b"r": {"Down": [insertion(name, name) for name in (b"a", b"b", b"c")]}}, ONE)
    assert [name for name, _ in shown(client.get_slice(b"r", down, between(count=2), ONE))] == [b"c", b"b"]
    assert [name for name, _ in shown(client.get_slice(b"r", down, between(b"b"), ONE))] == [b"b", b"a"]
    request = c.MultiSliceRequest(key=b"r", column_parent=c.ColumnParent("Down"), column_slices=[
        c.ColumnSlice(start=b"c", finish=b"c"), c.ColumnSlice(start=b"a")], count=10)
    assert [name for name, _ in shown(client.get_multi_slice(request))] == [b"c", b"a"]


def ranges(client):
    wide = c.ColumnParent("Wide")
    client.truncate("Wide")
    keys = [f"k{number}".encode() for number in range(20)]
    client.batch_mutate({key: {"Wide": [insertion(b"a", key), insertion(b"b", key)]} for key in keys}, ONE)
    everything = c.KeyRange(start_key=b"", end_key=b"", count=100)
    found = client.get_range_slices(wide, between(), everything, ONE)
    assert sorted(b(row.key) for row in found) == sorted(keys) and all(len(row.columns) == 2 for row in found)
    order = [b(row.key) for row in found]
    start, pages = b"", []
    while True:
        page = [b(row.key) for row in client.get_range_slices(
            wide, between(), c.KeyRange(start_key=start, end_key=b"", count=7), ONE)]
        pages += page if start == b"" else page[1:]
        if len(page) < 7:
            break
        start = page[-1]
    assert pages == order
    least = str(-(1 << 63))
    ring = client.get_range_slices(wide, between(), c.KeyRange(start_token=least, end_token=least, count=100), ONE)
    assert [b(row.key) for row in ring] == order
    halves = []
    for one, other in ((least, "0"), ("0", least)):
        halves += [b(row.key) for row in client.get_range_slices(
            wide, names(b"a"), c.KeyRange(start_token=one, end_token=other, count=100), ONE)]
    assert halves == order
    # A row without any of the columns is there, empty.
    ghosts = client.get_range_slices(wide, names(b"nothing"), everything, ONE)
    assert [b(row.key) for row in ghosts] == order and all(not row.columns for row in ghosts)
    paged = client.get_paged_slice("Wide", c.KeyRange(start_key=order[0], end_key=b"", count=5), b"b", ONE)
    assert [(b(row.key), [name for name, _ in shown(row.columns)]) for row in paged] == \
        [(order[0], [b"b"]), (order[1], [b"a", b"b"]), (order[2], [b"a", b"b"])]
    assert "exactly one each of" in why(client.get_range_slices, wide, between(), c.KeyRange(count=1), ONE)
    assert why(client.get_range_slices, wide, between(), c.KeyRange(start_key=b"", end_key=b"", count=0), ONE) == \
        "maxRows must be positive"
    assert len(client.describe_ring("ks")) == 1
    splits = client.describe_splits("Wide", least, least, 5)
    assert splits[0] == least and splits[-1] == least


def static(client):
    users = c.ColumnParent("Users")
    age = struct.pack(">q", 42)
    client.batch_mutate({b"foo": {"Users": [
        insertion(b"email", b"foo@example.com"), insertion(b"age", age), insertion(b"state", b"UT"),
        insertion(b"send_dates_2009-09-30", b"2245"), insertion(b"send_dates_2009-10-01", b"2247")]}}, ONE)
    client.batch_mutate({b"bar": {"Users": [insertion(b"state", b"UT"), insertion(b"age", struct.pack(">q", 7))]},
                         b"baz": {"Users": [insertion(b"state", b"WA")]}}, ONE)
    assert shown(client.get_slice(b"foo", users, between(), ONE)) == [
        (b"age", age), (b"email", b"foo@example.com"), (b"send_dates_2009-09-30", b"2245"),
        (b"send_dates_2009-10-01", b"2247"), (b"state", b"UT")]
    assert shown(client.get_slice(b"foo", users, between(b"send_dates_2009-09-29", b"send_dates_2009-10-29"), ONE)) == \
        [(b"send_dates_2009-09-30", b"2245"), (b"send_dates_2009-10-01", b"2247")]
    assert [name for name, _ in shown(client.get_slice(b"foo", users, between(count=2, reversed=True), ONE))] == \
        [b"state", b"send_dates_2009-10-01"]
    assert [name for name, _ in shown(client.get_slice(b"foo", users, between(b"b", b"t", 2), ONE))] == \
        [b"email", b"send_dates_2009-09-30"]
    assert shown(client.get_slice(b"foo", users, names(b"email", b"send_dates_2009-09-30"), ONE)) == \
        [(b"email", b"foo@example.com"), (b"send_dates_2009-09-30", b"2245")]
    assert b(client.get(b"foo", c.ColumnPath("Users", column=b"email"), ONE).column.value) == b"foo@example.com"
    assert client.get_count(b"foo", users, between(), ONE) == 5
    text = why(client.insert, b"foo", users, column(b"age", b"12"), ONE)
    assert text == "(Expected 8 or 0 byte long (2)) [ks][Users][age] failed validation", text
    equal = c.IndexExpression(column_name=b"state", op=c.IndexOperator.EQ, value=b"UT")
    clause = c.IndexClause(expressions=[equal], start_key=b"", count=100)
    found = client.get_indexed_slices(users, clause, names(b"state"), ONE)
    assert sorted(b(row.key) for row in found) == [b"bar", b"foo"], found
    older = c.IndexExpression(column_name=b"age", op=c.IndexOperator.GT, value=struct.pack(">q", 10))
    clause = c.IndexClause(expressions=[equal, older], start_key=b"", count=100)
    assert [b(row.key) for row in client.get_indexed_slices(users, clause, between(), ONE)] == [b"foo"]
    filtered = c.KeyRange(start_key=b"", end_key=b"", row_filter=[older], count=10)
    assert [b(row.key) for row in client.get_range_slices(users, names(b"age"), filtered, ONE)] == [b"foo"]
    assert why(client.get_indexed_slices, users, c.IndexClause(expressions=[older], start_key=b"", count=1),
               between(), ONE) == "No indexed columns present in index clause with operator EQ"
    deletion = c.Mutation(deletion=c.Deletion(timestamp=2, predicate=between(b"b", b"send_dates_2009-09-30")))
    client.batch_mutate({b"foo": {"Users": [deletion]}}, ONE)
    assert [name for name, _ in shown(client.get_slice(b"foo", users, between(), ONE))] == \
        [b"age", b"send_dates_2009-10-01", b"state"]
    # A column that is declared later keeps the values it had.
    definition = next(found for found in client.describe_keyspace("ks").cf_defs if found.name == "Users")
    definition.column_metadata.append(c.ColumnDef(name=b"send_dates_2009-10-01", validation_class="UTF8Type"))
    client.system_update_column_family(definition)
    path = c.ColumnPath("Users", column=b"send_dates_2009-10-01")
    assert b(client.get(b"foo", path, ONE).column.value) == b"2247"


def composite(client):
    def name(*parts, end=0):
        packed = b"".join(struct.pack(">H", len(part)) + part + b"\0" for part in parts)
        return packed[:-1] + struct.pack(">b", end)

    def long(number):
        return struct.pack(">q", number)

    family = c.ColumnParent("Composite")
    wanted = [name(b"a", long(1)), name(b"a", long(2)), name(b"b", long(1))]
    client.batch_mutate({b"r": {"Composite": [insertion(found, b"v") for found in wanted]}}, ONE)
    got = lambda predicate: [found for found, _ in shown(client.get_slice(b"r", family, predicate, ONE))]
    assert got(between()) == wanted
    assert got(between(name(b"a"), name(b"a", end=1))) == wanted[:2]
    assert got(between(name(b"a", long(2)), name(b"b", long(1)))) == wanted[1:]
    assert got(between(name(b"a", end=1))) == wanted[2:]
    assert got(names(wanted[1])) == wanted[1:2]
    assert got(between(name(b"b", end=1), name(b"a", long(2)), 5, True)) == [wanted[2], wanted[1]]
    assert why(client.insert, b"r", family, column(b"\0\5a", b"v"), ONE) == \
        "Not enough bytes to read value of component 0"


def counters(client):
    family = c.ColumnParent("Counts")
    for by in (1, 5, -2):
        client.add(b"r", family, c.CounterColumn(name=b"n", value=by), ONE)
    get = lambda: client.get(b"r", c.ColumnPath("Counts", column=b"n"), ONE).counter_column.value
    assert get() == 4
    adding = c.Mutation(column_or_supercolumn=c.ColumnOrSuperColumn(counter_column=c.CounterColumn(name=b"n", value=6)))
    client.batch_mutate({b"r": {"Counts": [adding, adding]}}, ONE)
    assert get() == 16
    assert client.get_slice(b"r", family, between(), ONE)[0].counter_column.value == 16
    assert why(client.insert, b"r", family, column(b"n", b"v"), ONE) == "invalid operation for commutative table Counts"
    assert why(client.add, b"r", c.ColumnParent("Wide"), c.CounterColumn(name=b"n", value=1), ONE) == \
        "invalid operation for non commutative table Wide"
    assert why(client.atomic_batch_mutate, {b"r": {"Counts": [adding]}}, ONE) == \
        "Counter mutations are not allowed in atomic batches"
    # In a super family each super column has counters of its own.
    for name, number in ((b"x", 2), (b"y", 5), (b"x", 1)):
        client.add(b"r", c.ColumnParent("SuperCounts", super_column=b"s1"), c.CounterColumn(name=name, value=number), ONE)
    whole = client.get_slice(b"r", c.ColumnParent("SuperCounts"), between(), ONE)[0].counter_super_column
    assert [(b(found.name), found.value) for found in whole.columns] == [(b"x", 3), (b"y", 5)]
    path = c.ColumnPath("SuperCounts", super_column=b"s1", column=b"y")
    assert client.get(b"r", path, ONE).counter_column.value == 5
    client.remove_counter(b"r", c.ColumnPath("Counts", column=b"n"), ONE)
    raises(c.NotFoundException, client.get, b"r", c.ColumnPath("Counts", column=b"n"), ONE)


def supers(client):
    long = lambda number: struct.pack(">q", number)
    parent = c.ColumnParent("Super", super_column=b"s1")
    for number in (3, 1, 2):
        client.insert(b"r", parent, column(long(number), b"v%d" % number), ONE)
    other = c.SuperColumn(name=b"s2", columns=[column(long(9), b"v9")])
    client.batch_mutate({b"r": {"Super": [c.Mutation(column_or_supercolumn=c.ColumnOrSuperColumn(super_column=other))]}}, ONE)
    whole = client.get_slice(b"r", c.ColumnParent("Super"), between(), ONE)
    assert [b(found.super_column.name) for found in whole] == [b"s1", b"s2"]
    assert [b(found.name) for found in whole[0].super_column.columns] == [long(1), long(2), long(3)]
    assert shown(client.get_slice(b"r", parent, between(long(2)), ONE)) == [(long(2), b"v2"), (long(3), b"v3")]
    assert shown(client.get_slice(b"r", parent, between(count=2, reversed=True), ONE)) == [(long(3), b"v3"), (long(2), b"v2")]
    assert shown(client.get_slice(b"r", parent, names(long(3), long(1)), ONE)) == [(long(1), b"v1"), (long(3), b"v3")]
    assert b(client.get(b"r", c.ColumnPath("Super", super_column=b"s1", column=long(2)), ONE).column.value) == b"v2"
    assert len(client.get(b"r", c.ColumnPath("Super", super_column=b"s1"), ONE).super_column.columns) == 3
    assert client.get_count(b"r", c.ColumnParent("Super"), between(), ONE) == 2
    assert client.get_count(b"r", parent, between(), ONE) == 3
    client.remove(b"r", c.ColumnPath("Super", super_column=b"s1", column=long(1)), 2, ONE)
    assert client.get_count(b"r", parent, between(), ONE) == 2
    client.remove(b"r", c.ColumnPath("Super", super_column=b"s2"), 2, ONE)
    assert client.get_count(b"r", c.ColumnParent("Super"), between(), ONE) == 1
    assert why(client.insert, b"r", c.ColumnParent("Super"), column(long(1), b"v"), ONE) == \
        "missing mandatory super column name for super CF Super"


def cas(client):
    serial, one = c.ConsistencyLevel.SERIAL, ONE
    first = client.cas(b"cas", "Wide", [], [column(b"n", b"1")], serial, one)
    assert first.success and first.current_values is None
    again = client.cas(b"cas", "Wide", [], [column(b"n", b"2")], serial, one)
    assert not again.success and [b(found.value) for found in again.current_values] == [b"1"]
    assert client.cas(b"cas", "Wide", [column(b"n", b"1")], [column(b"n", b"2")], serial, one).success
    refused = client.cas(b"cas", "Wide", [column(b"n", b"1")], [column(b"n", b"3")], serial, one)
    assert not refused.success and b(refused.current_values[0].value) == b"2"
    assert why(client.cas, b"cas", "Wide", [], [], one, one).startswith("Invalid consistency for conditional update")


def cql3(client):
    none = c.Compression.NONE
    run = lambda text: client.execute_cql3_query(text.encode(), none, ONE)
    run("CREATE TABLE wide3 (k text, c int, v text, PRIMARY KEY (k, c)) WITH COMPACT STORAGE")
    run("CREATE TABLE plain (k text PRIMARY KEY, v text)")
    run("INSERT INTO wide3 (k, c, v) VALUES ('r', 7, 'x')")
    found = run("SELECT * FROM wide3")
    assert found.type == c.CqlResultType.ROWS and b(found.rows[0].columns[2].value) == b"x"
    # Made by CQL, read by the interface, and the other way round.
    assert shown(client.get_slice(b"r", c.ColumnParent("wide3"), between(), ONE)) == [(struct.pack(">i", 7), b"x")]
    client.insert(b"r", c.ColumnParent("wide3"), column(struct.pack(">i", 8), b"y", 9), ONE)
    assert len(run("SELECT v FROM wide3 WHERE k = 'r'").rows) == 2
    hidden = [family.name for family in client.describe_keyspace("ks").cf_defs]
    assert "wide3" in hidden and "plain" not in hidden
    assert "not one of COMPACT STORAGE" in why(client.get_slice, b"r", c.ColumnParent("plain"), between(), ONE)
    packed = zlib.compress(b"SELECT v FROM wide3 WHERE k = ? AND c = ?")
    prepared = client.prepare_cql3_query(packed, c.Compression.GZIP)
    assert prepared.count == 2
    found = client.execute_prepared_cql3_query(prepared.itemId, [b"r", struct.pack(">i", 8)], ONE)
    assert b(found.rows[0].columns[0].value) == b"y"
    assert why(client.execute_cql3_query, b"SELEC", none, ONE)
    assert "not found" in why(client.execute_prepared_cql3_query, 1, [], ONE)


def tracing(client):
    session = b(client.trace_next_query())
    assert len(session) == 16
    client.get_slice(b"r", c.ColumnParent("wide3"), between(), ONE)
    none = c.Compression.NONE
    asked = f"SELECT request FROM system_traces.sessions WHERE session_id = {uuid.UUID(bytes=session)}"
    deadline = time.monotonic() + 20
    while not (found := client.execute_cql3_query(asked.encode(), none, ONE).rows):
        assert time.monotonic() < deadline, "no session"
    assert b(found[0].columns[0].value) == b"get_slice"
    events = f"SELECT activity FROM system_traces.events WHERE session_id = {uuid.UUID(bytes=session)}"
    assert client.execute_cql3_query(events.encode(), none, ONE).rows


def first_dialect(client):
    none = c.Compression.NONE
    run = lambda text: client.execute_cql_query(text.encode(), none)
    run("USE ks;")
    run("CREATE COLUMNFAMILY Standard1 (KEY blob PRIMARY KEY) WITH comparator = ascii AND default_validation = blob")
    run("UPDATE Standard1 USING CONSISTENCY ONE SET C1=d41d8cd98f, C2=03c7c0ace3, C3=3691308f2a, C4=9f6e6800cf, "
        "C5=8f60c8102d WHERE KEY=00000000000001")
    found = run("SELECT FIRST 5 ''..'' FROM Standard1 WHERE KEY=00000000000001")
    assert [(b(got.name), b(got.value).hex() if got.value is not None else None) for got in found.rows[0].columns] == [
        (b"C1", "d41d8cd98f"), (b"C2", "03c7c0ace3"), (b"C3", "3691308f2a"), (b"C4", "9f6e6800cf"), (b"C5", "8f60c8102d")]
    found = run("SELECT FIRST 2 REVERSED ''..'' FROM Standard1 WHERE KEY=00000000000001")
    assert [b(got.name) for got in found.rows[0].columns] == [b"C5", b"C4"]
    found = run("SELECT C2, KEY, C9 FROM Standard1 WHERE KEY=00000000000001")
    assert [(b(got.name), got.value is None) for got in found.rows[0].columns] == \
        [(b"C2", False), (b"KEY", False), (b"C9", True)]
    run("CREATE COLUMNFAMILY people (KEY text PRIMARY KEY, state text, age bigint)")
    run("CREATE INDEX people_state ON people (state)")
    run("INSERT INTO people (KEY, state, age, other) VALUES (ann, UT, 30, x) USING TTL 1000 AND CONSISTENCY QUORUM")
    run("BEGIN BATCH USING CONSISTENCY ONE UPDATE people SET state = WA, age = 7 WHERE KEY = bob; "
        "INSERT INTO people (KEY, state) VALUES ('cid', 'UT') APPLY BATCH")
    found = run("SELECT * FROM people WHERE state = UT AND age >= 10")
    assert [b(row.key) for row in found.rows] == [b"ann"]
    assert [b(got.name) for got in found.rows[0].columns] == [b"KEY", b"age", b"other", b"state"]
    count = run("SELECT COUNT(*) FROM people")
    assert b(count.rows[0].columns[0].value) == struct.pack(">q", 3)
    assert len(run("SELECT state FROM people WHERE KEY IN (ann, bob, zoe)").rows) == 3
    assert len(run("SELECT state FROM people WHERE KEY >= ann LIMIT 100").rows) >= 1
    run("DELETE state, age FROM people WHERE KEY = bob")
    assert [b(got.name) for got in run("SELECT * FROM people WHERE KEY = bob").rows[0].columns] == [b"KEY"]
    run("CREATE COLUMNFAMILY tally (KEY text PRIMARY KEY) WITH default_validation = counter")
    run("UPDATE tally SET a = a + 5, b = b - 1 WHERE KEY = r")
    found = run("SELECT a, b FROM tally WHERE KEY = r").rows[0].columns
    assert [struct.unpack(">q", b(got.value))[0] if not isinstance(got.value, str) or len(b(got.value)) == 8 else None
            for got in found][0] == 5
    run("ALTER TABLE people ADD nick text")
    run("ALTER COLUMNFAMILY people WITH comment = 'they'")
    run("DROP INDEX people_state")
    assert "No indexed columns" in why(client.execute_cql_query, b"SELECT * FROM people WHERE state = UT", none)
    prepared = client.prepare_cql_query(b"UPDATE people SET nick = ? WHERE KEY = ?", none)
    assert prepared.count == 2
    client.execute_prepared_cql_query(prepared.itemId, [b"annie", b"ann"])
    packed = zlib.compress(b"SELECT nick FROM people WHERE KEY = ann")
    assert b(client.execute_cql_query(packed, c.Compression.GZIP).rows[0].columns[0].value) == b"annie"
    run("TRUNCATE people")
    assert not run("SELECT nick FROM people WHERE KEY = ann").rows[0].columns[0].value
    run("DROP COLUMNFAMILY people")
    run("CREATE KEYSPACE other WITH strategy_class = 'SimpleStrategy' AND strategy_options:replication_factor = 1")
    run("DROP KEYSPACE other")
    assert "no viable alternative" in why(client.execute_cql_query, b"SELECT FROM", none)


def refusals(client):
    wide = c.ColumnParent("Wide")
    assert why(client.get_slice, b"", wide, between(), ONE) == "Key may not be empty"
    assert why(client.get_slice, b"k", c.ColumnParent("None"), between(), ONE) == "unconfigured table None"
    assert why(client.get_slice, b"k", c.ColumnParent("Wide", super_column=b"s"), between(), ONE) == \
        "table alone is required for standard CF Wide"
    assert why(client.get_slice, b"k", wide, c.SlicePredicate(), ONE) == \
        "predicate column_names and slice_range may not both be null"
    assert why(client.get_slice, b"k", wide, between(count=-1), ONE) == "get_slice requires non-negative count"
    assert why(client.get_slice, b"k", wide, between(b"b", b"a"), ONE) == \
        "range finish must come after start in the order of traversal"
    assert why(client.get_slice, b"k", wide, between(b"\xff"), ONE).startswith("Invalid byte for ascii")
    assert why(client.get_slice, b"k", wide, between(), c.ConsistencyLevel.ANY) == \
        "ANY ConsistencyLevel is only supported for writes"
    assert why(client.insert, b"k", wide, column(b"", b"v"), ONE) == "column name must not be empty"
    assert why(client.insert, b"k", wide, c.Column(name=b"n", timestamp=1), ONE) == "Column value is required"
    assert why(client.insert, b"k", wide, c.Column(name=b"n", value=b"v"), ONE) == "Column timestamp is required"
    assert why(client.insert, b"k", wide, column(b"n", b"v", 1, -1), ONE) == "ttl must be greater or equal to 0"
    assert why(client.insert, b"k", wide, column(b"n", b"v"), c.ConsistencyLevel.SERIAL) == \
        "You must use conditional updates for serializable writes"
    assert why(client.batch_mutate, {b"k": {"Wide": [c.Mutation()]}}, ONE) == \
        "mutation must have one and only one of column_or_supercolumn or deletion"
    assert why(client.batch_mutate, {b"k": {"Wide": [c.Mutation(deletion=c.Deletion())]}}, ONE) == \
        "Deletion timestamp is not optional for non commutative table Wide"


def dropping(client):
    client.system_drop_column_family("Wide")
    assert "unconfigured table Wide" == why(client.get_slice, b"k", c.ColumnParent("Wide"), between(), ONE)
    client.system_update_keyspace(c.KsDef(name="ks", strategy_class="SimpleStrategy",
                                          strategy_options={"replication_factor": "2"}, cf_defs=[]))
    assert client.describe_keyspace("ks").strategy_options["replication_factor"] == "2"
    client.system_drop_keyspace("ks")
    raises(c.NotFoundException, client.describe_keyspace, "ks")


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    for kind in sys.argv[2:] or ["framed", "buffered", "old"]:
        client = connect(host, int(port), kind)
        for part in (describing, defining, dynamic, ranges, static, composite, counters, supers, cas, cql3, tracing,
                     first_dialect, refusals, dropping):
            part(client)
            print(f"ok {kind} {part.__name__}", flush=True)
        client.close()
    print("ok")


if __name__ == "__main__":
    main()
