#!/usr/bin/env python3
"""Runs script.cql on a Cassandra 5.0.9, statement by statement, and writes its answers to expected.txt beside it.

Usage: record.py [ADDRESS]

Values are written as hex of their serialised bytes. Needs cassandra-driver; the node listens on 127.0.0.1:9042 unless an
address is given. After CREATE INDEX it waits for the build.
"""

import pathlib
import sys
import time

from cassandra import protocol
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.protocol import ProtocolHandler, ResultMessage
from cassandra.query import SimpleStatement

HERE = pathlib.Path(__file__).parent
KEYSPACE = "idx_conformance"


class RawResult(ResultMessage):
    """Rows as the bytes that came."""

    def recv_results_rows(self, f, protocol_version, user_type_map, result_metadata, policy):
        self.recv_results_metadata(f, user_type_map)
        metadata = self.column_metadata or result_metadata
        count = protocol.read_int(f)
        self.parsed_rows = [self.recv_row(f, len(metadata)) for _ in range(count)]
        self.column_names = [column[2] for column in metadata]
        self.column_types = [column[3] for column in metadata]


class RawHandler(ProtocolHandler):
    my_opcodes = ProtocolHandler.message_types_by_opcode.copy()
    my_opcodes[RawResult.opcode] = RawResult
    message_types_by_opcode = my_opcodes


def answer(session, query):
    try:
        result = session.execute(SimpleStatement(query, fetch_size=None))
    except Exception as error:  # what the server refuses
        message = str(error)
        code = message.split("code=", 1)[1][:4] if "code=" in message else "?"
        text = message.split('message="', 1)[1].rsplit('"', 1)[0] if 'message="' in message else message
        return f"error {code} {text}"
    rows = result.current_rows or []
    warned = "".join(f" warning {w}" for w in result.response_future.warnings or [])
    if not result.column_names:
        return ("ok" + warned).replace("\n", "\\n")
    text = ";".join(",".join("null" if v is None else v.hex() for v in row) for row in rows)
    return ("rows " + text + warned).rstrip().replace("\n", "\\n")


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1"
    profile = ExecutionProfile(row_factory=lambda names, rows: rows, request_timeout=60)
    cluster = Cluster([address], protocol_version=4, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    session = cluster.connect()
    session.execute(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
    session.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    session.set_keyspace(KEYSPACE)
    session.client_protocol_handler = RawHandler
    out = []
    for line in (HERE / "script.cql").read_text().splitlines():
        if not line or line.startswith("--"):
            continue
        found = answer(session, line)
        if line.upper().startswith("CREATE") and "INDEX" in line and found.startswith("ok"):
            time.sleep(0.6)
        out += ["> " + line, found]
    (HERE / "expected.txt").write_text("\n".join(out) + "\n")
    session.client_protocol_handler = ProtocolHandler
    session.execute(f"DROP KEYSPACE {KEYSPACE}")


if __name__ == "__main__":
    main()
