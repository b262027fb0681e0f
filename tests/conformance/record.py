#!/usr/bin/env python3
"""Runs data.cql and queries.cql of a folder on a Cassandra 5.0.9 and writes its answers to expected.txt there.

Usage: record.py FOLDER [ADDRESS[:PORT]]

Values are written as hex of their serialised bytes, so that nothing of the driver's reading stands between. Needs
cassandra-driver; the node listens on 127.0.0.1:9042 unless an address is given.
"""

import pathlib
import sys

from cassandra import protocol
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.protocol import ProtocolHandler, ResultMessage
from cassandra.query import SimpleStatement, tuple_factory

HERE = pathlib.Path(sys.argv[1])
KEYSPACE = "cqlsel_conformance"


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


def lines(name):
    text = (HERE / name).read_text().splitlines()
    return [line for line in text if line and not line.startswith("--")]


def type_name(ty):
    name = ty.cql_parameterized_type() if ty.subtypes else ty.typename
    return name.replace("varchar", "text")


def answer(session, query):
    out = [f"> {query}"]
    try:
        result = session.execute(SimpleStatement(query, fetch_size=None))
    except Exception as error:  # what the server refuses
        message = str(error)
        code = message.split("code=", 1)[1][:4] if "code=" in message else "?"
        text = message.split('message="', 1)[1].rsplit('"', 1)[0] if 'message="' in message else message
        return out + [f"error {code}: {text}"]
    columns = [f"{n}:{type_name(t)}" for n, t in zip(result.column_names or [], result.column_types or [])]
    out.append("columns " + " | ".join(columns))
    for row in result.current_rows:
        out.append("row " + " | ".join("null" if value is None else "0x" + value.hex() for value in row))
    out += [f"warning {warning}" for warning in result.response_future.warnings or []]
    return out


def main():
    address, _, port = (sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1").partition(":")
    profile = ExecutionProfile(row_factory=lambda names, rows: rows, request_timeout=60)
    cluster = Cluster([address], port=int(port or 9042), protocol_version=4, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    session = cluster.connect()
    session.execute(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
    session.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    session.set_keyspace(KEYSPACE)
    for statement in lines("data.cql"):
        session.execute(statement)
    session.client_protocol_handler = RawHandler
    out = []
    for query in lines("queries.cql"):
        out += answer(session, query) + [""]
    (HERE / "expected.txt").write_text("\n".join(out))
    session.client_protocol_handler = ProtocolHandler
    session.execute(f"DROP KEYSPACE {KEYSPACE}")


if __name__ == "__main__":
    main()
