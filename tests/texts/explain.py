"""EXPLAIN, EXPLAIN ANALYZE and traces through the Python driver and cqlsh.

    explain.py load  HOST:PORT     makes the keyspace `feed` and writes it
    explain.py check HOST:PORT     asks, after a flush, and compares what the answers must have

Cassandra has no EXPLAIN, so these are no cases of tests/drivers. Ends with `ok`; any difference ends it with status 1.
"""

import json
import os
import subprocess
import sys
import tempfile

from cassandra import InvalidRequest
from cassandra.cluster import Cluster

COLUMNS = ["step", "operation", "target", "detail"]
ANALYZED = COLUMNS + ["count", "time_us"]


def equal(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def load(session):
    session.execute("CREATE KEYSPACE feed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE feed.timeline (user text, at timestamp, event text, PRIMARY KEY (user, at)) "
                    "WITH CLUSTERING ORDER BY (at DESC)")
    session.execute("CREATE TABLE feed.explain (explain int PRIMARY KEY, analyze text, format text)")
    insert = session.prepare("INSERT INTO feed.timeline (user, at, event) VALUES (?, ?, ?)")
    for minute in range(2000):
        session.execute(insert, ("foo", 1_795_000_000_000 + minute * 60_000, f"event {minute}"))


def counts(rows):
    return {(row.operation, row.target): row.count for row in rows if row.count is not None}


def by_driver(session):
    bound = session.prepare("EXPLAIN ANALYZE SELECT * FROM feed.timeline WHERE user = ? AND at < ? LIMIT ?")
    result = session.execute(bound, ("foo", 1_795_000_600_000, 5))
    equal(result.column_names, ANALYZED, "columns")
    rows = list(result)
    equal(rows[0][:3], (1, "read", "slice"), "the first line")
    equal(rows[1].target, "user = 'foo'", "the partition")
    found = counts(rows)
    equal((found["answer", "rows"], found["sources", "sstables"]), (5, 1), "counts")
    if found["index", "nodes"] == 0 or any(row.time_us is None for row in rows if row.operation == "total"):
        raise AssertionError(f"nothing counted: {rows}")
    session.default_fetch_size = 3
    result = session.execute("EXPLAIN SELECT * FROM feed.timeline WHERE user = 'foo'")
    equal(result.has_more_pages, False, "pages")
    equal(result.column_names, COLUMNS, "columns")
    text = session.execute("EXPLAIN ANALYZE FORMAT JSON SELECT event FROM feed.timeline WHERE user = 'foo'").one().json
    steps = {(step["operation"], step["target"]): step for step in json.loads(text)["steps"]}
    equal(steps["answer", "rows"]["count"], 2000, "rows, whatever the page")
    insert = session.prepare("EXPLAIN INSERT INTO feed.explain (explain, analyze, format) VALUES (?, ?, ?)")
    session.execute(insert, (1, "a", "b"))
    equal(list(session.execute("SELECT explain, analyze FROM feed.explain")), [], "rows after EXPLAIN")
    session.execute("EXPLAIN ANALYZE INSERT INTO feed.explain (explain, analyze) VALUES (1, 'a')")
    equal([tuple(row) for row in session.execute("SELECT explain, analyze FROM feed.explain")], [(1, "a")], "rows")
    try:
        session.execute("EXPLAIN SELECT nothing FROM feed.timeline")
        raise AssertionError("a column that is not there was explained")
    except InvalidRequest:
        pass
    trace = session.execute("SELECT * FROM feed.timeline WHERE user = 'foo' LIMIT 5", trace=True).get_query_trace(10)
    said = [event.description for event in trace.events]
    for expected in ("Asked 0 memtables and 1 of 1 SSTable", "Put 3 rows into the answer", "Answer ready"):
        if expected not in said:
            raise AssertionError(f"no {expected!r} in {said}")


def cqlsh(address, statements):
    host, port = address.rsplit(":", 1)
    program = os.path.join(os.path.dirname(sys.executable), "cqlsh")
    env = {**os.environ, "CQLSH_HOST": "", "HOME": tempfile.gettempdir(), "COLUMNS": "200"}
    run = subprocess.run([sys.executable, program, "--no-color", host, port, "-e", statements],
                         capture_output=True, text=True, env=env, timeout=120)
    if run.returncode != 0:
        raise AssertionError(f"cqlsh: {run.stdout}{run.stderr}")
    return run.stdout


def by_cqlsh(address):
    output = cqlsh(address, "EXPLAIN ANALYZE SELECT * FROM feed.timeline WHERE user = 'foo' LIMIT 2;"
                            "EXPLAIN DELETE FROM feed.timeline WHERE user = 'foo';"
                            "TRACING ON; SELECT * FROM feed.timeline WHERE user = 'foo' LIMIT 2;")
    for text in ("| operation", "feed.timeline: whole partitions", "partition deletion", "Tracing session:",
                 "Asked 0 memtables and 1 of 1 SSTable", "Put 2 rows into the answer"):
        if text not in output:
            raise AssertionError(f"no {text!r} in:\n{output}")
    print(output)


def main():
    what, address = sys.argv[1:]
    host, port = address.rsplit(":", 1)
    cluster = Cluster([host], port=int(port))
    session = cluster.connect()
    if what == "load":
        load(session)
    else:
        by_driver(session)
        by_cqlsh(address)
    cluster.shutdown()
    print("ok")


main()
