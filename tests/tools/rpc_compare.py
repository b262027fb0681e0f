#!/usr/bin/env python3
"""Asks a real old Cassandra and Helenus the same calls of the old RPC interface, and compares answers and exceptions.

    tests/tools/old_cassandra.sh start /tmp/old 19160
    helenus serve --data /tmp/new --listen 127.0.0.1:0 --rpc 127.0.0.1:19170
    PYTHON tests/tools/rpc_compare.py 127.0.0.1:19160 127.0.0.1:19170 [--calls 5000] [--seed 1] [--only family,...]

PYTHON is one with thriftpy2 (`cargo xtask setup` puts one into target/clients/python). First come listed calls, then
--calls random ones over families of every kind, with wrong arguments among them. Each difference is printed with what both
said; differences that are known and meant are listed in ACCEPTED, counted and not printed. Ends with 1 if any other is found.
"""
import argparse
import random
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "drivers/thrift"))
from driver import c, connect  # noqa: E402

ONE = c.ConsistencyLevel.ONE
KS = "rpc_compare"

# What differs and is meant: (call, part of what the old one says, part of what Helenus says, why).
ACCEPTED = [
    ("*", "TTransportException", "", "an error that 3.11 does not catch closes the connection; here it is refused or answered"),
    ("*", "TimedOutException", "= ", "3.11 runs into its own timeout for a count of 0"),
    ("get_paged_slice", "= ", "= ", "3.11 counts rows where 2.x, and this, count columns"),
    ("get_multi_slice", "Reversed column slice at index", "= ", "3.11 refuses open ends of reversed slices"),
    ("get_multi_slice", "Reversed column slice at index", "Reversed column slice at index", "the same"),
    ("get_multi_slice", "Reversed column slice at index", "Key may not be empty", "the same"),
    ("get_indexed_slices", "No indexed columns", "ANY ConsistencyLevel", "both are wrong, and looked at in another order"),
    ("*", "TimedOutException", "ANY ConsistencyLevel", "3.11 runs into its own timeout for a count of 1 and a level for writes"),
    ("system_update_column_family", "a version", "comparators do not match", "2.x refuses it; 3.11 leaves the comparator as it is"),
    ("system_update_column_family", "Cannot add a non counter column (value)", "comparators do not match", "the same"),
    ("get_count", "= 0", "Key may not be empty", "3.11 does not look at the key where it reads nothing"),
    ("get_indexed_slices", "Not enough bytes to read a map", "No indexed columns", "3.11 takes names of a super family for its map"),
    ("execute_cql3_query", "Undefined column name nothing", "Undefined column name nothing in table", "5.0's words"),
]


def u8(text):
    return text.encode()


def long(number):
    return struct.pack(">q", number)


def composite(*parts, end=0):
    out = b""
    for index, part in enumerate(parts):
        out += struct.pack(">H", len(part)) + part + struct.pack("b", end if index == len(parts) - 1 else 0)
    return out


def family(name, **more):
    return c.CfDef(keyspace=KS, name=name, **more)


def declared(name, ty, index=None, index_name=None):
    return c.ColumnDef(name=name, validation_class=ty, index_type=index, index_name=index_name)


FAMILIES = {
    "dynamic": dict(comparator_type="UTF8Type", default_validation_class="UTF8Type", key_validation_class="UTF8Type"),
    "longs": dict(comparator_type="LongType", default_validation_class="LongType", key_validation_class="LongType"),
    "turned": dict(comparator_type="AsciiType(reversed=true)", default_validation_class="AsciiType",
                   key_validation_class="AsciiType"),
    "composed": dict(comparator_type="CompositeType(UTF8Type,LongType)", default_validation_class="UTF8Type",
                     key_validation_class="UTF8Type"),
    "fixed": dict(comparator_type="UTF8Type", default_validation_class="UTF8Type", key_validation_class="UTF8Type",
                  column_metadata=[declared(b"age", "LongType", c.IndexType.KEYS, "fixed_age"),
                                   declared(b"city", "UTF8Type", c.IndexType.KEYS, "fixed_city"),
                                   declared(b"note", "BytesType")]),
    "supers": dict(column_type="Super", comparator_type="UTF8Type", subcomparator_type="LongType",
                   default_validation_class="UTF8Type", key_validation_class="UTF8Type"),
    "counts": dict(comparator_type="UTF8Type", default_validation_class="CounterColumnType",
                   key_validation_class="UTF8Type"),
    "supercounts": dict(column_type="Super", comparator_type="UTF8Type", subcomparator_type="UTF8Type",
                        default_validation_class="CounterColumnType", key_validation_class="UTF8Type"),
    "bytes": dict(comparator_type="BytesType"),
}

NAMES = {
    "dynamic": [u8(name) for name in "a b bb c d é".split()],
    "longs": [long(number) for number in (-5, -1, 0, 1, 7, 1 << 40)],
    "turned": [u8(name) for name in "a b bb c d".split()],
    "composed": [composite(u8(a), long(n)) for a in ("a", "b") for n in (-1, 0, 3)] + [composite(b"a"), composite(b"c")],
    "fixed": [b"age", b"city", b"note", b"aaa", b"mmm", b"zzz"],
    "supers": [u8(name) for name in "s1 s2 s3".split()],
    "counts": [u8(name) for name in "a b c".split()],
    "supercounts": [u8(name) for name in "s1 s2".split()],
    "bytes": [b"\x00", b"\x01\xff", b"\xff", b"k"],
}
WITHIN = {"supers": [long(number) for number in (-1, 0, 5)], "supercounts": [b"x", b"y"]}
WRONG_NAMES = {"longs": b"abc", "composed": b"\x00", "turned": "é".encode(), "dynamic": b"\xff\xfe", "fixed": b"\xff",
               "supers": b"\xff", "counts": b"\xff", "supercounts": b"\xff", "bytes": b""}
KEYS = {name: [u8(key) for key in ("k1", "k2", "k3", "k4")] for name in FAMILIES}
KEYS["longs"] = [long(number) for number in (1, 2, 3, -4)]


def value_of(draw, name, column):
    if name == "longs" or (name == "fixed" and column == b"age"):
        return long(draw.choice([0, 1, 2, 30]))
    return draw.choice([b"", b"x", b"Rome", b"Oslo", b"long value " * 3])


def is_super(name):
    return name.startswith("super")


def counts(name):
    return "counts" in name


class Sides:
    def __init__(self, old, new):
        self.clients = []
        for address in (old, new):
            host, port = address.rsplit(":", 1)
            self.clients.append(connect(host, int(port), "framed"))
        self.addresses = (old, new)
        self.asked = self.different = self.accepted = 0
        self.seen = {}

    def ask(self, name, *args):
        self.asked += 1
        answers = [said(client, name, args) for client in self.clients]
        if answers[0] == answers[1]:
            return answers[0]
        for call, theirs, ours, _why in ACCEPTED:
            if call in (name, "*") and theirs in answers[0] and ours in answers[1]:
                self.accepted += 1
                return answers[0]
        if turned(name, args, answers) or name == "execute_cql3_query" and args[0] in QUIRKS:
            self.accepted += 1
            return answers[0]
        self.different += 1
        kind = (name, shape(answers[0]), shape(answers[1]))
        self.seen[kind] = self.seen.get(kind, 0) + 1
        if self.seen[kind] <= 3:
            print(f"DIFFERENT {name}{tuple(map(show, args))}\n  old {answers[0]}\n  new {answers[1]}", flush=True)
        return answers[0]


QUIRKS = {  # statements on super families that 3.11 answers wrongly
    b"SELECT value FROM supers WHERE key = 'kk' AND column1 = 'b' AND column2 >= 1 AND column2 < 30":
        "nothing, where one end is open and the other is not",
    b"SELECT DISTINCT key FROM supers WHERE key = 'kk'": "the key once for each entry",
    b"UPDATE supers SET value = 'not' WHERE key = 'kk' AND column1 = 'c' AND column2 = 2 IF value = 'c2'":
        "every entry of the super column, where the condition is about one",
}


def turned(name, args, answers):
    """Whether a reversed slice has the same columns in another order. 3.11 gives those of a family with declared columns
    ascending, and those in some super columns of counters; 2.x and this descending."""
    asked = [arg for arg in args if isinstance(arg, c.SlicePredicate)]
    return (("fixed" in repr(args) or "supercounts" in repr(args)) and asked and asked[0].slice_range is not None and asked[0].slice_range.reversed
            and sorted(answers[0]) == sorted(answers[1]))


def shape(text):
    """An answer without what differs from call to call."""
    return "".join("0" if letter.isdigit() else letter for letter in text)[:60]


def show(value):
    text = repr(value)
    return text if len(text) < 300 else text[:300] + "..."


def plain(value):
    """An answer in a form that can be compared: fields by name, maps by key."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return value
    if isinstance(value, dict):
        return sorted((repr(plain(key)), plain(one)) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "__dict__"):
        return {name: plain(one) for name, one in sorted(vars(value).items()) if one is not None}
    return value


def said(client, name, args):
    try:
        return "= " + repr(plain(getattr(client, name)(*args)))
    except (c.InvalidRequestException, c.NotFoundException, c.UnavailableException, c.TimedOutException,
            c.AuthenticationException, c.AuthorizationException, c.SchemaDisagreementException) as error:
        return f"{type(error).__name__}: {getattr(error, 'why', '')}"
    except Exception as error:  # TApplicationException and what the connection ends with
        text = f"{type(error).__name__}: {error}"
        try:
            client.describe_version()
        except Exception:
            text += " (and the connection was closed)"
            client._iprot.trans.close()
            client._iprot.trans.open()
            client.set_keyspace(KS)
        return text


def column(name, value, timestamp, ttl=None):
    return c.Column(name=name, value=value, timestamp=timestamp, ttl=ttl)


def predicate(draw, names, within):
    """Which columns, rarely wrong."""
    pool = within or names
    kind = draw.random()
    if kind < 0.35:
        return c.SlicePredicate(column_names=draw.sample(pool, draw.randint(0 if draw.random() < 0.1 else 1, len(pool))))
    if kind < 0.37:
        return c.SlicePredicate()
    ends = [b""] + pool
    if pool and len(pool[0]) > 2 and draw.random() < 0.4:  # bounds of composites
        ends += [composite(u8(text), end=end) for text in "abc" for end in (-1, 0, 1)] if pool[0][:1] == b"\x00" else []
    return c.SlicePredicate(slice_range=c.SliceRange(start=draw.choice(ends), finish=draw.choice(ends),
                                                     reversed=draw.random() < 0.4, count=draw.choice([0, 1, 2, 3, 100])))


def of(name, super_column):
    return c.ColumnParent(column_family=name, super_column=super_column)


class Draws:
    """Random calls. Timestamps go up, mostly."""

    def __init__(self, sides, seed):
        self.sides, self.draw, self.now = sides, random.Random(seed), 1000

    def stamp(self):
        self.now += 1
        return self.now - self.draw.choice([0, 0, 0, 3])

    def place(self, name):
        """A super column and the name of a column in it, or just a name."""
        names = NAMES[name]
        if is_super(name):
            return self.draw.choice(names), self.draw.choice(WITHIN[name])
        return None, self.draw.choice(names)

    def level(self, write=False):
        if self.draw.random() < 0.03:
            return self.draw.choice([c.ConsistencyLevel.ANY, c.ConsistencyLevel.SERIAL, c.ConsistencyLevel.QUORUM])
        return ONE

    def next(self, families):
        draw = self.draw
        name = draw.choice(families)
        key = draw.choice(KEYS[name])
        if draw.random() < 0.02:
            key = draw.choice([b"", b"\xff\xfe"])
        calls = [self.write, self.write, self.batch, self.remove, self.get, self.slice, self.slice, self.multi,
                 self.count, self.ranges, self.paged, self.several, self.indexed, self.cas, self.odd]
        draw.choice(calls)(name, key)

    def write(self, name, key):
        super_column, column_name = self.place(name)
        parent = of(name, super_column)
        if counts(name):
            self.sides.ask("add", key, parent, c.CounterColumn(name=column_name, value=self.draw.randint(-3, 5)), self.level())
        else:
            ttl = 100_000 if self.draw.random() < 0.1 else None
            one = column(column_name, value_of(self.draw, name, column_name), self.stamp(), ttl)
            self.sides.ask("insert", key, parent, one, self.level())

    def held(self, name):
        super_column, column_name = self.place(name)
        if counts(name):
            one = c.CounterColumn(name=column_name, value=2)
            return (c.ColumnOrSuperColumn(counter_super_column=c.CounterSuperColumn(name=super_column, columns=[one]))
                    if super_column else c.ColumnOrSuperColumn(counter_column=one))
        one = column(column_name, value_of(self.draw, name, column_name), self.stamp())
        return (c.ColumnOrSuperColumn(super_column=c.SuperColumn(name=super_column, columns=[one]))
                if super_column else c.ColumnOrSuperColumn(column=one))

    def deletion(self, name):
        draw = self.draw
        super_column, _ = self.place(name)
        if super_column and draw.random() < 0.3:
            super_column = None
        kind = draw.random()
        which = None
        if kind < 0.5:
            which = c.SlicePredicate(column_names=[self.place(name)[0 if is_super(name) and not super_column else 1]])
        elif kind < 0.65 and name != "fixed":
            # Of declared columns 3.11 takes all with a range from the beginning, whatever its end, and with others mostly none.
            which = c.SlicePredicate(slice_range=c.SliceRange(start=b"", finish=self.place(name)[0 if is_super(name) else 1],
                                                              reversed=False, count=100))
        stamp = self.stamp() if draw.random() < 0.95 else None
        return c.Deletion(timestamp=stamp, super_column=super_column, predicate=which)

    def batch(self, name, key):
        draw = self.draw
        mutations = []
        for _ in range(draw.randint(1, 4)):
            if draw.random() < (0 if counts(name) else 0.3):
                mutations.append(c.Mutation(deletion=self.deletion(name)))
            else:
                mutations.append(c.Mutation(column_or_supercolumn=self.held(name)))
        if draw.random() < 0.03:
            mutations.append(c.Mutation())
        call = "atomic_batch_mutate" if draw.random() < 0.2 else "batch_mutate"
        self.sides.ask(call, {key: {name: mutations}}, self.level())

    def remove(self, name, key):
        draw = self.draw
        super_column, column_name = self.place(name)
        if draw.random() < 0.3:
            column_name = None
        if draw.random() < 0.15:
            super_column = None
        path = c.ColumnPath(column_family=name, super_column=super_column, column=column_name)
        if counts(name):
            # A counter that was removed comes back in ways that depend on time.
            return
        self.sides.ask("remove", key, path, self.stamp(), self.level())

    def get(self, name, key):
        super_column, column_name = self.place(name)
        if super_column and self.draw.random() < 0.3:
            column_name = None
        if self.draw.random() < 0.05:
            column_name = None
        path = c.ColumnPath(column_family=name, super_column=super_column, column=column_name)
        self.sides.ask("get", key, path, self.level())

    def asked(self, name):
        super_column = self.draw.choice([None, *NAMES[name]]) if is_super(name) else None
        within = WITHIN[name] if super_column else None
        return of(name, super_column), predicate(self.draw, NAMES[name], within)

    def slice(self, name, key):
        self.sides.ask("get_slice", key, *self.asked(name), self.level())

    def count(self, name, key):
        call = self.draw.choice(["get_count", "multiget_count"])
        self.sides.ask(call, key if call == "get_count" else KEYS[name][:3], *self.asked(name), self.level())

    def multi(self, name, _key):
        keys = self.draw.sample(KEYS[name], self.draw.randint(0, 4))
        self.sides.ask("multiget_slice", keys, *self.asked(name), self.level())

    def range(self, name):
        draw = self.draw
        keys = [b""] + KEYS[name]
        tokens = ["0", "-9223372036854775808", "9223372036854775807", "1000", "-4000000000000000000", "x"]
        kind = draw.random()
        end = dict(end_key=draw.choice(keys)) if kind < 0.6 else dict(end_token=draw.choice(tokens))
        start = dict(start_key=draw.choice(keys)) if kind < 0.8 else dict(start_token=draw.choice(tokens))
        return c.KeyRange(count=draw.choice([0, 1, 2, 100]), **start, **end)

    def ranges(self, name, _key):
        self.sides.ask("get_range_slices", *self.asked(name), self.range(name), self.level())

    def paged(self, name, _key):
        start = self.draw.choice([b"", *NAMES[name]])
        self.sides.ask("get_paged_slice", name, self.range(name), start, self.level())

    def several(self, name, key):
        draw = self.draw
        ends = [None, b"", *NAMES[name]]
        slices = [c.ColumnSlice(start=draw.choice(ends), finish=draw.choice(ends)) for _ in range(draw.randint(0, 3))]
        self.sides.ask("get_multi_slice", c.MultiSliceRequest(
            key=key, column_parent=of(name, None), column_slices=slices, reversed=draw.random() < 0.4,
            count=draw.choice([0, 1, 3, 100]), consistency_level=self.level()))

    def indexed(self, name, key):
        draw = self.draw
        name = "fixed" if draw.random() < 0.8 else name
        op = c.IndexOperator
        some = [c.IndexExpression(column_name=b"age", op=draw.choice([op.EQ, op.EQ, op.GT, op.LTE]), value=long(draw.choice([0, 1, 2]))),
                c.IndexExpression(column_name=b"city", op=op.EQ, value=draw.choice([b"Rome", b"Oslo", b"x"])),
                c.IndexExpression(column_name=b"mmm", op=draw.choice([op.EQ, op.GTE]), value=b"x")]
        clause = c.IndexClause(expressions=draw.sample(some, draw.randint(0, 3)),
                               start_key=draw.choice([b"", *KEYS[name]]), count=draw.choice([0, 1, 100]))
        self.sides.ask("get_indexed_slices", of(name, None), clause, predicate(draw, NAMES[name], None), self.level())

    def cas(self, name, key):
        draw = self.draw
        if is_super(name) or counts(name) or draw.random() < 0.5:
            return
        names = NAMES[name]
        expected = [column(one, value_of(draw, name, one), None) for one in draw.sample(names, draw.randint(0, 2))]
        updates = [column(one, value_of(draw, name, one), self.stamp()) for one in draw.sample(names, draw.randint(1, 2))]
        # The new timestamp is the server's: what was written so is taken out again.
        result = self.sides.ask("cas", key, name, expected, updates, c.ConsistencyLevel.SERIAL, ONE)
        if "'success': True" in result:
            for client in self.sides.clients:
                client.remove(key, c.ColumnPath(column_family=name), (1 << 62), ONE)
            self.sides.ask("truncate", name)

    def odd(self, name, key):
        """What must be refused."""
        draw = self.draw
        wrong = WRONG_NAMES[name]
        super_column, column_name = self.place(name)
        everything = c.SlicePredicate(slice_range=c.SliceRange(start=b"", finish=b"", reversed=False, count=-1))
        other = next(iter(set(FAMILIES) - {name}))
        odd = [
            ("get_slice", key, of(name, super_column), everything, ONE),
            ("get_slice", key, of(name, b"" if is_super(name) else b"s"), predicate(draw, NAMES[name], None), ONE),
            ("get_slice", key, of("nothing", None), everything, ONE),
            ("get", key, c.ColumnPath(column_family=name, super_column=super_column, column=wrong), ONE),
            ("get", key, c.ColumnPath(column_family=name, column=column_name), ONE),
            ("insert", key, of(name, super_column), column(wrong, b"x", 1), ONE),
            ("insert", key, of(name, super_column), column(column_name, None, 1), ONE),
            ("insert", key, of(name, super_column), column(column_name, b"1", None), ONE),
            ("insert", key, of(name, super_column), column(column_name, b"1", 1, -1), ONE),
            ("insert", key, of(name, super_column), column(column_name, b"1", 1, 1 << 30), ONE),
            ("insert", key, of(name, None), column(column_name, b"123", 1), ONE),
            ("insert", key, of(name, super_column), column(b"n" * 70000, b"1", 1), ONE),
            ("insert", b"k" * 70000, of(name, super_column), column(column_name, b"1", 1), ONE),
            ("add", key, of(name, super_column), c.CounterColumn(name=wrong, value=1), ONE),
            ("remove", key, c.ColumnPath(column_family=name, super_column=b"s" if not is_super(name) else None, column=b"c"), 1, ONE),
            ("remove_counter", key, c.ColumnPath(column_family="dynamic", column=b"c"), ONE),
            ("batch_mutate", {key: {name: [c.Mutation(column_or_supercolumn=c.ColumnOrSuperColumn())]}}, ONE),
            ("batch_mutate", {key: {"nothing": []}}, ONE),
            ("batch_mutate", {}, ONE),
            ("truncate", "nothing"),
            ("multiget_slice", [key, b""], of(name, None), predicate(draw, NAMES[name], None), ONE),
            ("cas", key, name, [], [], c.ConsistencyLevel.SERIAL, ONE),
            ("cas", key, name, [], [column(column_name if column_name else b"c", b"1", 1)], ONE, ONE),
        ]
        self.sides.ask(*draw.choice(odd))


def definitions(sides):
    """Keyspaces and families: made, refused, changed, described."""
    ask = sides.ask

    def keyspace(name, families, **more):
        options = dict(strategy_class="org.apache.cassandra.locator.SimpleStrategy", strategy_options={"replication_factor": "1"})
        return c.KsDef(name=name, cf_defs=families, **{**options, **more})

    for client in sides.clients:
        for old in (KS, "rpc_other"):
            try:
                client.system_drop_keyspace(old)
            except c.InvalidRequestException:
                pass
        client.system_add_keyspace(keyspace(KS, [family(name, **more) for name, more in FAMILIES.items()]))
        client.set_keyspace(KS)
    for wrong in [
        keyspace(KS, []), keyspace(KS.upper(), []), keyspace("rpc other", []), keyspace("", []),
        keyspace("rpc_other", [], strategy_class="NoStrategy"), keyspace("rpc_other", [], strategy_options={}),
        keyspace("rpc_other", [c.CfDef(keyspace="elsewhere", name="x")]),
        keyspace("rpc_other", [c.CfDef(keyspace="rpc_other", name="x"), c.CfDef(keyspace="rpc_other", name="x")]),
        keyspace("rpc_other", [c.CfDef(keyspace="rpc_other", name="x", comparator_type="NoType")]),
        keyspace("system", []),
    ]:
        same_kind(sides, "system_add_keyspace", wrong)
        forget(sides, "system_drop_keyspace", "rpc_other")
    for wrong in [
        family("dynamic"), family("a b"), family(""), family("x" * 60), family("odd", comparator_type="NoType"),
        family("odd", column_type="Odd"), family("odd", default_validation_class="NoType"),
        family("odd", column_type="Super", comparator_type="CounterColumnType"),
        family("odd", comparator_type="LongType", column_metadata=[declared(b"abc", "UTF8Type")]),
        family("odd", column_metadata=[declared(b"c", "CounterColumnType")]),
        family("odd", default_validation_class="CounterColumnType", column_metadata=[declared(b"c", "UTF8Type")]),
        family("odd", column_metadata=[declared(b"c", "UTF8Type", c.IndexType.KEYS, "fixed_age")]),
        family("odd", column_metadata=[declared(b"c", "UTF8Type", None, "only_a_name")]),
        family("odd", comparator_type="CompositeType(UTF8Type)", column_metadata=[declared(composite(b"c"), "UTF8Type")]),
        family("odd", min_compaction_threshold=1, max_compaction_threshold=0),
        family("odd", min_compaction_threshold=10, max_compaction_threshold=4),
        family("odd", compaction_strategy="NoStrategy"), family("odd", compression_options={"sstable_compression": "No"}),
        family("odd", bloom_filter_fp_chance=2.0), family("odd", gc_grace_seconds=-1),
        family("odd", speculative_retry="odd"), family("odd", caching="odd"), family("odd", default_time_to_live=-1),
        c.CfDef(keyspace="nowhere", name="odd"),
    ]:
        same_kind(sides, "system_add_column_family", wrong)
        forget(sides, "system_drop_column_family", wrong.name)
        if wrong.name == "dynamic":
            for client in sides.clients:
                client.system_add_column_family(family("dynamic", **FAMILIES["dynamic"]))
    ask("system_drop_column_family", "nothing")
    ask("system_drop_keyspace", "nothing")
    ask("set_keyspace", "nothing")
    ask("describe_keyspace", "nothing")
    ask("describe_version")
    ask("describe_partitioner")
    ask("describe_ring", "nothing")
    ask("describe_splits", "dynamic", "0", "100", 0)
    for name in FAMILIES:
        described(sides, name)
    # Changes.
    for client in sides.clients:
        client.system_add_column_family(family("changing", comparator_type="UTF8Type", comment="before"))
    for change in [
        dict(comparator_type="UTF8Type", comment="after", gc_grace_seconds=10),
        dict(comparator_type="UTF8Type", column_metadata=[declared(b"c", "LongType")]),
        dict(comparator_type="UTF8Type", column_metadata=[declared(b"c", "LongType", c.IndexType.KEYS, "changing_c")]),
        dict(comparator_type="UTF8Type"), dict(comparator_type="LongType"), dict(comparator_type="BytesType"),
        dict(column_type="Super"), dict(default_validation_class="CounterColumnType"),
    ]:
        same_kind(sides, "system_update_column_family", family("changing", **change))
        described(sides, "changing")
    same_kind(sides, "system_update_column_family", family("nothing"))
    for client in sides.clients:
        client.system_drop_column_family("changing")


def forget(sides, call, name):
    """Takes out what one of them may have made."""
    for client in sides.clients:
        try:
            getattr(client, call)(name)
        except c.InvalidRequestException:
            pass


def same_kind(sides, name, *args):
    """Asks where the answer is the schema's version, which is each server's own."""
    sides.asked += 1
    answers = [said(client, name, args) for client in sides.clients]
    answers = ["= a version" if answer.startswith("= b'") else answer for answer in answers]
    known = [name for call, theirs, ours, _ in ACCEPTED if call in (name, "*") and theirs in answers[0] and ours in answers[1]]
    if answers[0] != answers[1] and known:
        sides.accepted += 1
    elif answers[0] != answers[1]:
        sides.different += 1
        print(f"DIFFERENT {name}{tuple(map(show, args))}\n  old {answers[0]}\n  new {answers[1]}", flush=True)


def described(sides, name):
    """What describe_keyspace says of a family, but for its number."""
    sides.asked += 1
    found = []
    for client in sides.clients:
        one = [family for family in client.describe_keyspace(KS).cf_defs if family.name == name]
        fields = plain(one[0]) if one else {}
        fields.pop("id", None)
        # Made with the defaults of a later version.
        fields.pop("compression_options", None)
        fields.get("column_metadata", []).sort(key=repr)
        found.append(fields)
    for field in sorted(set(found[0]) | set(found[1])):
        if field == "column_metadata" and is_super(name):
            continue  # 3.11 shows the map that holds the columns
        if found[0].get(field) != found[1].get(field):
            sides.different += 1
            print(f"DIFFERENT describe_keyspace {name}.{field}\n  old {found[0].get(field)!r}\n  new {found[1].get(field)!r}", flush=True)


STATEMENTS = [
    "SELECT * FROM dynamic", "SELECT key, column1, value FROM longs", "SELECT * FROM composed", "SELECT * FROM turned",
    "SELECT * FROM fixed", "SELECT * FROM supers", "SELECT * FROM counts", "SELECT * FROM supercounts", "SELECT * FROM bytes",
    "SELECT column1, column2, value FROM supers WHERE key = 'k1' AND column1 = 's1'",
    "SELECT column1, column2, value FROM supers WHERE key = 'k1' AND column1 = 's1' AND column2 = 5",
    "SELECT column1, column2, value FROM supers WHERE key = 'k1' AND column1 = 's1' AND column2 > -1",
    "SELECT column1 FROM supers WHERE key = 'k1' AND column1 >= 's2'",
    "INSERT INTO supers (key, column1, column2, value) VALUES ('k1', 's9', 9, 'nine') USING TIMESTAMP 9000",
    "UPDATE supers USING TIMESTAMP 9001 SET value = 'ten' WHERE key = 'k1' AND column1 = 's9' AND column2 = 10",
    "SELECT * FROM supers WHERE key = 'k1'",
    "DELETE FROM supers USING TIMESTAMP 9002 WHERE key = 'k1' AND column1 = 's9' AND column2 = 9",
    "SELECT * FROM supers WHERE key = 'k1'",
    "DELETE FROM supers USING TIMESTAMP 9003 WHERE key = 'k1' AND column1 = 's9'",
    "SELECT * FROM supers WHERE key = 'k1'",
    "SELECT writetime(value) FROM supers", "SELECT count(*) FROM supers",
    "INSERT INTO supers (key, column1, value) VALUES ('k1', 's9', 'x')",
    "INSERT INTO supers (key, column1, column2) VALUES ('k1', 's9', 1)",
    "INSERT INTO supers (key, column2, value) VALUES ('k1', 9, 'x')",
    "UPDATE supers SET value = 'x' WHERE key = 'k1' AND column1 = 's9'",
    *[f"INSERT INTO supers (key, column1, column2, value) VALUES ('kk', '{name}', {number}, '{name}{number}') USING TIMESTAMP 9100"
      for name in ("a", "b", "c") for number in (-7, 1, 2, 30)],
    "SELECT * FROM supers WHERE key = 'kk'",
    "SELECT * FROM supers WHERE key = 'kk' LIMIT 6",
    "SELECT column2, column1 FROM supers WHERE key = 'kk' AND column1 = 'b'",
    "SELECT value FROM supers WHERE key = 'kk' AND column1 = 'b' AND column2 = 2",
    "SELECT value FROM supers WHERE key = 'kk' AND column1 = 'b' AND column2 = 3",
    "SELECT value FROM supers WHERE key = 'kk' AND column1 = 'b' AND column2 >= 1 AND column2 < 30",
    "SELECT value FROM supers WHERE key = 'kk' AND column1 = 'b' AND column2 > 1",
    "SELECT value FROM supers WHERE key = 'kk' AND column1 = 'b' AND column2 IN (-7, 30, 5)",
    "SELECT value FROM supers WHERE key = 'kk' AND column1 IN ('a', 'c')",
    "SELECT value FROM supers WHERE key = 'kk' AND column1 > 'a' AND column1 <= 'c'",
    "SELECT value FROM supers WHERE key = 'kk' AND (column1, column2) = ('b', 2)",
    "SELECT value FROM supers WHERE key = 'kk' AND (column1, column2) > ('b', 1)",
    "SELECT value FROM supers WHERE key = 'kk' AND (column1, column2) >= ('b', 1)",
    "SELECT value FROM supers WHERE key = 'kk' AND (column1, column2) < ('b', 2)",
    "SELECT column1, value FROM supers WHERE key = 'kk' AND column2 = 2",
    "SELECT column1, value FROM supers WHERE key = 'kk' ORDER BY column1 DESC",
    "SELECT column1, value FROM supers WHERE key = 'kk' AND column1 = 'b' ORDER BY column1 DESC LIMIT 2",
    "SELECT value FROM supers WHERE key IN ('kk', 'k1') AND column1 = 'b'",
    "SELECT DISTINCT key FROM supers WHERE key = 'kk'",
    "SELECT nothing FROM supers",
    "UPDATE supers USING TTL 100000 AND TIMESTAMP 9200 SET value = 'later' WHERE key = 'kk' AND column1 = 'a' AND column2 = 1",
    "SELECT value, writetime(value) FROM supers WHERE key = 'kk' AND column1 = 'a' AND column2 = 1",
    "DELETE FROM supers USING TIMESTAMP 9201 WHERE key = 'kk' AND column1 = 'a' AND column2 = 1",
    "DELETE FROM supers USING TIMESTAMP 9201 WHERE key = 'kk' AND column1 = 'b'",
    "SELECT * FROM supers WHERE key = 'kk'",
    "UPDATE supers SET value = 'if' WHERE key = 'kk' AND column1 = 'c' AND column2 = 2 IF value = 'c2'",
    "UPDATE supers SET value = 'not' WHERE key = 'kk' AND column1 = 'c' AND column2 = 2 IF value = 'c2'",
    "SELECT * FROM supers WHERE key = 'kk' AND column1 = 'c'",
    "DELETE FROM supers USING TIMESTAMP 9300 WHERE key = 'kk'",
    "UPDATE supers SET value = null WHERE key = 'kk' AND column1 = 'c' AND column2 = 2",
    "SELECT * FROM supers WHERE key = 'kk'",
    "BEGIN BATCH INSERT INTO supers (key, column1, column2, value) VALUES ('kb', 'x', 1, 'one'); "
    "INSERT INTO supers (key, column1, column2, value) VALUES ('kb', 'x', 2, 'two'); APPLY BATCH",
    "SELECT * FROM supers WHERE key = 'kb'",
    "SELECT * FROM mixed", "SELECT * FROM mixed WHERE key = 'k1' AND column1 = 's1'",
    "INSERT INTO mixed (key, column1, age) VALUES ('k1', 's1', 7) USING TIMESTAMP 20",
    "INSERT INTO mixed (key, column1) VALUES ('k1', 's5')",
    "UPDATE mixed USING TIMESTAMP 21 SET age = 8 WHERE key = 'k1' AND column1 = 's2'",
    "SELECT * FROM mixed WHERE key = 'k1'",
    "DELETE age FROM mixed USING TIMESTAMP 22 WHERE key = 'k1' AND column1 = 's1'",
    "SELECT * FROM mixed WHERE key = 'k1'",
    "DELETE FROM mixed USING TIMESTAMP 23 WHERE key = 'k1' AND column1 = 's1'",
    "SELECT * FROM mixed WHERE key = 'k1'",
    "UPDATE supercounts SET value = value + 3 WHERE key = 'k1' AND column1 = 's1' AND column2 = 'x'",
    "SELECT * FROM supercounts",
]


def statements(sides):
    none = c.Compression.NONE
    for client in sides.clients:
        client.system_add_column_family(family("mixed", column_metadata=[declared(b"age", "LongType")], column_type="Super",
                                               comparator_type="UTF8Type", subcomparator_type="UTF8Type",
                                               default_validation_class="UTF8Type", key_validation_class="UTF8Type"))
    for super_column, name, value in ((b"s1", b"age", long(5)), (b"s1", b"other", b"x"), (b"s2", b"other", b"y")):
        sides.ask("insert", b"k1", of("mixed", super_column), column(name, value, 10), ONE)
    for text in STATEMENTS:
        sides.ask("execute_cql3_query", text.encode(), none, ONE)
    everything = c.SlicePredicate(slice_range=c.SliceRange(start=b"", finish=b"", reversed=False, count=100))
    for name, key in (("supers", b"kb"), ("supers", b"k1"), ("mixed", b"k1")):
        sides.ask("get_slice", key, of(name, None), everything, ONE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(FAMILIES))
    options = parser.parse_args()
    sides = Sides(options.old, options.new)
    definitions(sides)
    draws = Draws(sides, options.seed)
    families = options.only.split(",")
    for _ in range(options.calls):
        draws.next(families)
    statements(sides)
    print(f"{sides.asked} calls, {sides.different} different in {len(sides.seen)} ways, {sides.accepted} as known")
    sys.exit(1 if sides.different else 0)


if __name__ == "__main__":
    main()
