#!/usr/bin/env python3
"""Guardrails and masks beside Cassandra's: the statements of `statements.cql` on both servers, with `settings.yaml`.

    tests/tools/cassandra.sh start /tmp/guarded --port 19142 --settings tests/conformance/guardrails/settings.yaml \
        --authenticator PasswordAuthenticator
    helenus serve --memory --listen 127.0.0.1:19153 --config tests/conformance/guardrails/settings.yaml &
    tests/conformance/guardrails/compare.py 127.0.0.1:19142 127.0.0.1:19153

Cassandra asks its guardrails only for ordinary users, so it needs one (made here by its first superuser). Needs the Python
driver. Prints each difference in errors, warnings or rows; the status is 1 if there was one.
"""

import pathlib
import re
import sys

from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster
from cassandra.query import SimpleStatement, dict_factory

HERE = pathlib.Path(__file__).resolve().parent


def connect(address, user=None):
    host, port = address.split(":")
    auth = PlainTextAuthProvider(*user) if user else None
    cluster = Cluster([host], port=int(port), auth_provider=auth, protocol_version=5)
    session = cluster.connect()
    session.row_factory = dict_factory
    return session


def ask(session, text, level, page):
    statement = SimpleStatement(text, fetch_size=page, consistency_level=level)
    future = session.execute_async(statement)
    try:
        rows = list(future.result())
        return None, sorted(future.warnings or []), [re.sub(r"\b[0-9a-f-]{36}\b", "UUID", str(row)) for row in rows]
    except Exception as error:
        # What a client reads of an error: code and text, without the driver's own frame.
        text = re.sub(r"^Error from server: ", "", str(error))
        return re.sub(r"code=\d+ ", "", text), [], []


def statements():
    level, page = ConsistencyLevel.ONE, 30
    for part in (HERE / "statements.cql").read_text().split(";\n"):
        for name, value in re.findall(r"-- @(\w+) (\w+)", part):
            level = ConsistencyLevel.name_to_value[value] if name == "level" else level
            page = int(value) if name == "page" else page
        text = "\n".join(line for line in part.splitlines() if not line.startswith("--")).strip()
        if text:
            yield text, level, page
        level, page = ConsistencyLevel.ONE, 30


def main():
    theirs, ours = sys.argv[1:3]
    first = connect(theirs, ("cassandra", "cassandra"))
    first.execute("CREATE ROLE IF NOT EXISTS guarded WITH LOGIN = true AND PASSWORD = 'guarded'")
    judge, judged = connect(theirs, ("guarded", "guarded")), connect(ours)
    count = differences = 0
    for text, level, page in statements():
        count += 1
        there, here = ask(judge, text, level, page), ask(judged, text, level, page)
        for what, a, b in zip(("error", "warnings", "rows"), there, here):
            if a != b and not (what == "error" and a and b and b.startswith(a.rstrip('"'))):
                differences += 1
                print(f"{text[:200]}\n  {what}\n    Cassandra: {a}\n    Helenus:   {b}")
    print(f"{count} statements, {differences} differences")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
