#!/usr/bin/env python3
"""Writes the definitions of the system tables of a running Cassandra 5.0.9, as crates/engine/src/schema/system_tables.txt
holds them.

Usage: record_system_tables.py HELENUS PORT > crates/engine/src/schema/system_tables.txt

HELENUS is the binary; its shell asks the node. One line a table, its fields apart by tabs: keyspace, name, comment, number of
partition key columns, number of clustering columns, columns (`name type`, apart by semicolons), and options as `name=value`; of
`compaction` those that are not the default.
"""

import json
import subprocess
import sys

COMPACTION = {"class": "SizeTieredCompactionStrategy", "max_threshold": "32", "min_threshold": "4"}
KEYSPACES = ["system", "system_schema", "system_auth", "system_distributed", "system_traces"]


def rows(binary, port, table, keyspace):
    query = f"SELECT JSON * FROM system_schema.{table} WHERE keyspace_name = '{keyspace}'"
    command = [binary, "shell", "127.0.0.1", port, "--no-color", "-e", query]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line.strip() for line in out.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def options(table):
    found = []
    compaction = dict(table["compaction"])
    compaction["class"] = compaction["class"].rsplit(".", 1)[1]
    for key, value in sorted(compaction.items()):
        if COMPACTION.get(key) != value:
            found.append(f"compaction.{key}={value}")
    for key in ["gc_grace_seconds", "memtable_flush_period_in_ms", "default_time_to_live"]:
        found.append(f"{key}={table[key]}")
    assert table["bloom_filter_fp_chance"] == 0.01, table
    return found


def main(binary, port):
    for keyspace in KEYSPACES:
        tables = {row["table_name"]: row for row in rows(binary, port, "tables", keyspace)}
        columns = rows(binary, port, "columns", keyspace)
        for name, table in sorted(tables.items()):
            of_table = [column for column in columns if column["table_name"] == name]
            kinds = ["partition_key", "clustering", "static", "regular"]
            of_table.sort(key=lambda column: (kinds.index(column["kind"]), column["position"], column["column_name"]))
            assert all(column["clustering_order"] != "desc" and column["kind"] != "static" for column in of_table)
            texts = [f"{column['column_name']} {column['type']}" for column in of_table]
            count = lambda kind: str(sum(column["kind"] == kind for column in of_table))
            fields = [keyspace, name, table["comment"], count("partition_key"), count("clustering"), ";".join(texts)]
            print("\t".join([*fields, " ".join(options(table))]))


if __name__ == "__main__":
    main(*sys.argv[1:])
