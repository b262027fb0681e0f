#!/usr/bin/env python3
"""Runs the statements of a file, one a line, on a Cassandra 5.0.9, and writes its answers beside it as NAME.txt.

Usage: record_statements.py FILE.cql [PORT]

Speaks the protocol itself (v4, native): drivers refuse some types that the server answers with, and show others in their
own words. Values are written as hex of their serialised bytes. Two things are put right: a timeuuid that went through a
function is called so, though Cassandra gives it the class LegacyTimeUUIDType; and to_json is called so, though Cassandra
calls it by the name under which it was first used for the argument's type since the node started.
"""

import pathlib
import socket
import struct
import sys

KEYSPACE = "cqlsel_conformance"

NAMES = {
    1: "ascii", 2: "bigint", 3: "blob", 4: "boolean", 5: "counter", 6: "decimal", 7: "double", 8: "float", 9: "int",
    11: "timestamp", 12: "uuid", 13: "text", 14: "varint", 15: "timeuuid", 16: "inet", 17: "date", 18: "time",
    19: "smallint", 20: "tinyint", 21: "duration",
}
CLASSES = {
    "AsciiType": "ascii", "BooleanType": "boolean", "ByteType": "tinyint", "BytesType": "blob",
    "DecimalType": "decimal", "DoubleType": "double", "DurationType": "duration", "FloatType": "float",
    "InetAddressType": "inet", "Int32Type": "int", "IntegerType": "varint", "LegacyTimeUUIDType": "timeuuid",
    "LongType": "bigint", "ShortType": "smallint", "SimpleDateType": "date", "TimeType": "time",
    "TimeUUIDType": "timeuuid", "TimestampType": "timestamp", "UTF8Type": "text", "UUIDType": "uuid",
}


def class_parts(text):
    parts, depth, part = [], 0, ""
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    return parts + [part.strip()]


def class_type(text):
    """A type by its class, as types go that the protocol has no number for."""
    if "(" not in text:
        name = text.rsplit(".", 1)[-1]
        return CLASSES.get(name, text)
    head, rest = text.split("(", 1)
    parts = class_parts(rest.rstrip()[:-1])
    name = head.rsplit(".", 1)[-1]
    if name == "VectorType":
        return f"vector<{class_type(parts[0])}, {parts[1]}>"
    if name in ("FrozenType", "ReversedType"):
        return class_type(parts[0])
    if name == "UserType":
        return bytes.fromhex(parts[1]).decode()
    generic = {"ListType": "list", "SetType": "set", "MapType": "map", "TupleType": "tuple"}[name]
    return f"{generic}<{', '.join(map(class_type, parts))}>"


class Body:
    """Reads the body of an answer."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, length):
        self.at += length
        return self.data[self.at - length : self.at]

    def int(self):
        return struct.unpack(">i", self.take(4))[0]

    def short(self):
        return struct.unpack(">H", self.take(2))[0]

    def string(self):
        return self.take(self.short()).decode()

    def bytes(self):
        length = self.int()
        return None if length < 0 else self.take(length)

    def type(self):
        number = self.short()
        if number == 0x00:
            return class_type(self.string())
        if number == 0x20:
            return f"list<{self.type()}>"
        if number == 0x21:
            key = self.type()
            return f"map<{key}, {self.type()}>"
        if number == 0x22:
            return f"set<{self.type()}>"
        if number == 0x30:
            self.string()
            name = self.string()
            for _ in range(self.short()):
                self.string()
                self.type()
            return name
        if number == 0x31:
            return f"tuple<{', '.join(self.type() for _ in range(self.short()))}>"
        return NAMES[number]


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        options = struct.pack(">H", 1) + self.string("CQL_VERSION") + self.string("3.0.0")
        self.request(0x01, options)

    def string(self, text):
        data = text.encode()
        return struct.pack(">H", len(data)) + data

    def read(self, length):
        data = b""
        while len(data) < length:
            more = self.socket.recv(length - len(data))
            if not more:
                raise SystemExit("the server has closed the connection")
            data += more
        return data

    def request(self, opcode, body):
        self.socket.sendall(struct.pack(">BBhBi", 4, 0, 0, opcode, len(body)) + body)
        _, flags, _, opcode, length = struct.unpack(">BBhBi", self.read(9))
        return flags, opcode, Body(self.read(length))

    def run(self, query):
        """The lines of the answer."""
        data = query.encode()
        one, no_values = struct.pack(">H", 1), b"\0"
        flags, opcode, body = self.request(0x07, struct.pack(">i", len(data)) + data + one + no_values)
        warnings = [body.string() for _ in range(body.short())] if flags & 0x08 else []
        if opcode == 0x00:
            code = body.int()
            return [f"error {code:04x}: {body.string()}"]
        rows = self.rows(body) if body.int() == 2 else []
        return rows + [f"warning {warning}" for warning in warnings]

    def rows(self, body):
        flags, count = body.int(), body.int()
        if flags & 1:
            body.string()
            body.string()
        columns = []
        for _ in range(count):
            if not flags & 1:
                body.string()
                body.string()
            name = body.string()
            columns.append(f"{name}:{body.type()}")
        out = ["columns " + " | ".join(columns)]
        for _ in range(body.int()):
            cells = [body.bytes() for _ in range(count)]
            out.append("row " + " | ".join("null" if cell is None else "0x" + cell.hex() for cell in cells))
        return out


def main():
    path = pathlib.Path(sys.argv[1])
    connection = Connection(int(sys.argv[2]) if len(sys.argv) > 2 else 9042)
    connection.run(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    connection.run(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}")
    connection.run(f"USE {KEYSPACE}")
    out = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("--"):
            answer = [text.replace("system.tojson(", "system.to_json(") for text in connection.run(line)]
            out += [f"> {line}", *answer, ""]
    path.with_suffix(".txt").write_text("\n".join(out))
    connection.run(f"DROP KEYSPACE {KEYSPACE}")


if __name__ == "__main__":
    main()
