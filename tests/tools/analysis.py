"""Compares what `helenus export --parquet` and `--arrow` wrote with what the server answers: by pyarrow, and by DuckDB.

    analysis.py make HOST:PORT KEYSPACE          a table of every type, and a few others, with rows in them
    analysis.py check HOST:PORT KEYSPACE DIR     DIR/KEYSPACE/TABLE.parquet and .arrow beside SELECT * of every table

`cargo xtask analysis` does all of it. Needs the Python driver, pyarrow and duckdb (tests/tools/analysis-requirements.txt).
"""

import decimal
import ipaddress
import math
import pathlib
import sys

from cassandra.cluster import Cluster
from cassandra.util import Date, Duration, SortedSet, Time

SCALARS = {
    "ascii": ("'a'", "''", "'~ Z'"),
    "bigint": ("0", "-9223372036854775808", "9223372036854775807"),
    "blob": ("0x", "0x00ff", "0x" + "ab" * 300),
    "boolean": ("true", "false", "true"),
    "date": ("'2026-11-21'", "'1969-12-31'", "'0001-01-01'"),
    "decimal": ("0", "-1.50", "1234567890123456789012345678901234567890.123456789"),
    "double": ("0", "1e300", "NaN"),
    "duration": ("1y2mo3w4d5h", "-1mo2d", "3ns"),
    "float": ("0", "-1.5", "Infinity"),
    "inet": ("'127.0.0.1'", "'2001:db8::1'", "'10.0.0.255'"),
    "int": ("0", "-2147483648", "2147483647"),
    "smallint": ("0", "-32768", "32767"),
    "text": ("'x'", "''", "'γαῖα \"quoted\" \n line'"),
    "time": ("'01:02:03.000000004'", "'00:00:00'", "'23:59:59.999999999'"),
    "timestamp": ("'2026-11-21 09:30:15.123+0000'", "-1", "0"),
    "timeuuid": ("50554d6e-29bb-11e5-b345-feff819cdc9f",) * 3,
    "tinyint": ("0", "-128", "127"),
    "uuid": ("123e4567-e89b-12d3-a456-426655440000",) * 3,
    "varint": ("0", "-1", "-123456789012345678901234567890123456789012345678901234567890"),
}


def make(session, keyspace):
    session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")
    session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    session.set_keyspace(keyspace)
    session.execute("CREATE TYPE place (street text, number int, at frozen<tuple<double, double>>)")
    columns = [f"v_{name} {name}" for name in SCALARS]
    columns += [f"l_{name} list<{name}>" for name in SCALARS]
    columns += [f"m_{name} map<int, {name}>" for name in SCALARS]
    columns += [f"s_{name} set<{name}>" for name in SCALARS if name != "duration"]
    columns += ["u place", "f frozen<place>", "t tuple<int, text, frozen<list<int>>>", "w vector<float, 3>", "x vector<text, 2>",
                "n frozen<map<text, frozen<list<frozen<place>>>>>"]
    session.execute(f"CREATE TABLE every_type (k int, c text, s int static, {', '.join(columns)}, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)")
    for row in range(3):
        values = {f"v_{name}": literals[row] for name, literals in SCALARS.items()}
        values |= {f"l_{name}": "[" + ", ".join(literals) + "]" for name, literals in SCALARS.items()}
        values |= {f"m_{name}": "{" + ", ".join(f"{at}: {text}" for at, text in enumerate(literals)) + "}" for name, literals in SCALARS.items()}
        values |= {f"s_{name}": "{" + ", ".join(sorted(set(literals))) + "}" for name, literals in SCALARS.items() if name != "duration"}
        values |= {"u": "{street: 'High Street', number: 5}", "f": "{street: 'frozen', at: (1.5, null)}", "t": "(1, null, [1, 2])",
                   "w": "[0.5, -1.25, 3]", "x": "['a', 'bc']", "n": "{'k': [{street: 's'}, {number: 6}], 'e': []}"}
        session.execute(f"INSERT INTO every_type (k, c, s, {', '.join(values)}) VALUES ({row % 2}, 'c{row}', {row}, {', '.join(values.values())})")
    session.execute("INSERT INTO every_type (k, c) VALUES (7, 'all null')")
    session.execute("INSERT INTO every_type (k, s) VALUES (8, 80)")
    session.execute("INSERT INTO every_type (k, c, v_int) VALUES (9, 'gone', 1)")
    session.execute("DELETE FROM every_type WHERE k = 9")
    session.execute("CREATE TABLE counts (k text PRIMARY KEY, n counter)")
    session.execute("UPDATE counts SET n = n + 5 WHERE k = 'a'")
    session.execute("UPDATE counts SET n = n - 7 WHERE k = 'b'")
    session.execute("CREATE TABLE empty (k int PRIMARY KEY, v text)")
    session.execute('CREATE TABLE "ManyRows" (a int, b uuid, c timestamp, v double, PRIMARY KEY ((a, b), c))')
    insert = session.prepare('INSERT INTO "ManyRows" (a, b, c, v) VALUES (?, ?, ?, ?)')
    import uuid
    for row in range(3000):
        session.execute(insert, (row % 7, uuid.UUID(int=row // 3), row * 1000, row / 3))


def plain(value):
    """A value of the Python driver as pyarrow gives it."""
    if isinstance(value, decimal.Decimal):
        return ("decimal", value)
    if isinstance(value, (Date, Time)):
        return value.date() if isinstance(value, Date) else ("time", value.nanosecond_time)
    if isinstance(value, Duration):
        return {"months": value.months, "days": value.days, "nanoseconds": value.nanoseconds}
    if isinstance(value, (SortedSet, set, frozenset)):  # the driver sorts them by its own lights
        return ("set", [plain(item) for item in value])
    if isinstance(value, list):
        return [plain(item) for item in value]
    if hasattr(value, "_fields"):
        return {name: plain(getattr(value, name)) for name in value._fields}
    if isinstance(value, tuple):
        return {f"field_{at + 1}": plain(item) for at, item in enumerate(value)}
    if hasattr(value, "items"):
        return [(plain(key), plain(item)) for key, item in value.items()]
    if type(value).__name__ == "UUID":
        return str(value)
    return value


def same(theirs, ours):
    """Whether a value of pyarrow or DuckDB is that of CQL. An empty collection of several cells is null in CQL."""
    if isinstance(ours, tuple) and len(ours) == 2 and ours[0] == "decimal":
        return decimal.Decimal(theirs) == ours[1]
    if isinstance(ours, tuple) and len(ours) == 2 and ours[0] == "set":
        left = list(theirs or [])
        for item in ours[1]:
            at = next((at for at, other in enumerate(left) if same(other, item)), None)
            if at is None:
                return False
            left.pop(at)
        return theirs is not None and not left
    if isinstance(ours, tuple) and len(ours) == 2 and ours[0] == "time":
        if hasattr(theirs, "hour"):
            nanoseconds = ((theirs.hour * 60 + theirs.minute) * 60 + theirs.second) * 1_000_000_000 + theirs.microsecond * 1000
            return nanoseconds // 1000 == ours[1] // 1000
        return theirs == ("ns", ours[1])
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours):
        return math.isnan(theirs)
    if isinstance(ours, int) and not isinstance(ours, bool) and isinstance(theirs, str):
        return theirs.lstrip("-").isdigit() and int(theirs) == ours
    if isinstance(theirs, str) and isinstance(ours, str) and theirs != ours and ":" in theirs:  # an address of IPv6
        try:
            return ipaddress.ip_address(theirs) == ipaddress.ip_address(ours)
        except ValueError:
            return False
    if hasattr(theirs, "tzinfo") and getattr(theirs, "tzinfo", None) is not None:
        import datetime
        theirs = theirs.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    if isinstance(theirs, dict) and isinstance(ours, list):  # DuckDB's maps
        theirs = list(theirs.items())
    if isinstance(theirs, (list, tuple)) and isinstance(ours, (list, tuple)):
        return len(theirs) == len(ours) and all(same(a, b) for a, b in zip(theirs, ours))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(same(theirs[name], ours[name]) for name in ours)
    return theirs == ours


def python_values(table):
    """Rows of an Arrow table."""
    columns = [[python_value(value) for value in column] for column in table.columns]
    return [list(row) for row in zip(*columns)]


def python_value(scalar):
    """A value of pyarrow; times to the nanosecond, which Python's own have not."""
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.Time64Scalar):
        return ("ns", scalar.value)
    if isinstance(scalar, pa.MapScalar):
        return [(python_value(entry["key"]), python_value(entry["value"])) for entry in scalar.values]
    if isinstance(scalar, pa.ListScalar):
        return [python_value(item) for item in scalar.values]
    if isinstance(scalar, pa.StructScalar):
        return {name: python_value(scalar[name]) for name in scalar}
    return scalar.as_py()


def check(session, keyspace, folder):
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet

    tables = session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s", (keyspace,))
    failed = compared = 0
    for (name,) in sorted(tuple(row) for row in tables):
        rows = list(session.execute(f'SELECT * FROM {keyspace}."{name}"'))
        names = list(rows[0]._fields) if rows else []
        expected = [[plain(value) for value in row] for row in rows]
        sources = {}
        parquet = folder / f"{name}.parquet"
        if parquet.exists():
            sources["pyarrow, parquet"] = pa.parquet.read_table(parquet)
            sources["duckdb"] = duckdb.sql(f"SELECT * FROM read_parquet('{parquet}')")
        arrow = folder / f"{name}.arrow"
        if arrow.exists():
            sources["pyarrow, arrow"] = pa.ipc.open_file(arrow).read_all()
        for source, table in sources.items():
            if source == "duckdb":
                found, columns = [list(row) for row in table.fetchall()], table.columns
            else:
                found, columns = python_values(table), table.column_names
            if names and [column.lower() for column in columns] != [column.lower() for column in names]:
                print(f"{name}, {source}: columns {columns} and not {names}")
                failed += 1
            if len(found) != len(expected):
                print(f"{name}, {source}: {len(found)} rows and not {len(expected)}")
                failed += 1
            for at, (theirs, ours) in enumerate(zip(found, expected)):
                for column, a, b in zip(columns, theirs, ours):
                    compared += 1
                    if not same(a, b):
                        print(f"{name}, {source}, row {at}, {column}: {a!r} and not {b!r}")
                        failed += 1
    print(f"{compared} values compared, {failed} differ")
    sys.exit(1 if failed or not compared else 0)


def main():
    what, (host, port), keyspace = sys.argv[1], sys.argv[2].split(":"), sys.argv[3]
    session = Cluster([host], port=int(port)).connect()
    if what == "make":
        make(session, keyspace)
    else:
        check(session, keyspace, pathlib.Path(sys.argv[4]) / keyspace)


main()
