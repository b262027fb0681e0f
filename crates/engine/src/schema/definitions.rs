//! The tables of the system keyspaces, as Cassandra 5.0.9 defines them.
//!
//! Names, types, order and comments were read off a running node. Ids are its rule too: the name-based (MD5) UUID of
//! keyspace and table name.

use helenus_model::schema::{Column, ColumnKind, Keyspace, Schema, Table, TableId, TableOptions};
use helenus_model::types::CqlType;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Name of the keyspace that holds the schema.
pub(super) const SYSTEM_SCHEMA: &str = "system_schema";

/// Whether a keyspace belongs to the server: users may read it and not change it.
pub fn is_system_keyspace(name: &str) -> bool {
    matches!(name, "system" | "system_schema" | "system_traces" | "system_views" | "system_virtual_schema")
}

/// The schema of a directory in which nobody has made anything.
pub(crate) fn system_schema() -> Schema {
    let keyspaces =
        system_keyspaces().into_iter().map(|keyspace| (keyspace.name.clone(), Arc::new(keyspace)));
    Schema { keyspaces: keyspaces.collect(), version: Uuid::from_u128(1), epoch: 0 }
}

/// One table: name, comment, columns as `name type`, the first `pk` of them the partition key, the next `ck` the
/// clustering.
struct Definition(&'static str, &'static str, usize, usize, &'static str);

const OPTIONS_COLUMNS: &str = "additional_write_policy text,allow_auto_snapshot boolean,bloom_filter_fp_chance double,\
     caching frozen<map<text, text>>,cdc boolean,comment text,compaction frozen<map<text, text>>,\
     compression frozen<map<text, text>>,crc_check_chance double,dclocal_read_repair_chance double,\
     default_time_to_live int,extensions frozen<map<text, blob>>,gc_grace_seconds int,incremental_backups boolean,\
     max_index_interval int,memtable text,memtable_flush_period_in_ms int,min_index_interval int,read_repair text,\
     read_repair_chance double,speculative_retry text,id uuid";

const SCHEMA_TABLES: &[Definition] = &[
    Definition(
        "keyspaces",
        "keyspace definitions",
        1,
        0,
        "keyspace_name text,durable_writes boolean,replication frozen<map<text, text>>",
    ),
    Definition(
        "tables",
        "table definitions",
        1,
        1,
        "keyspace_name text,table_name text,flags frozen<set<text>>,*",
    ),
    Definition(
        "columns",
        "column definitions",
        1,
        2,
        "keyspace_name text,table_name text,column_name text,clustering_order text,column_name_bytes blob,kind text,\
         position int,type text",
    ),
    Definition(
        "column_masks",
        "column dynamic data masks",
        1,
        2,
        "keyspace_name text,table_name text,column_name text,function_argument_nulls frozen<list<boolean>>,\
         function_argument_types frozen<list<text>>,function_argument_values frozen<list<text>>,\
         function_keyspace text,function_name text",
    ),
    Definition(
        "dropped_columns",
        "dropped column registry",
        1,
        2,
        "keyspace_name text,table_name text,column_name text,dropped_time timestamp,kind text,type text",
    ),
    Definition(
        "triggers",
        "trigger definitions",
        1,
        2,
        "keyspace_name text,table_name text,trigger_name text,options frozen<map<text, text>>",
    ),
    Definition(
        "views",
        "view definitions",
        1,
        1,
        "keyspace_name text,view_name text,base_table_id uuid,base_table_name text,include_all_columns boolean,\
         where_clause text,*",
    ),
    Definition(
        "types",
        "user defined type definitions",
        1,
        1,
        "keyspace_name text,type_name text,field_names frozen<list<text>>,field_types frozen<list<text>>",
    ),
    Definition(
        "functions",
        "user defined function definitions",
        1,
        2,
        "keyspace_name text,function_name text,argument_types frozen<list<text>>,argument_names frozen<list<text>>,\
         body text,called_on_null_input boolean,language text,return_type text",
    ),
    Definition(
        "aggregates",
        "user defined aggregate definitions",
        1,
        2,
        "keyspace_name text,aggregate_name text,argument_types frozen<list<text>>,final_func text,initcond text,\
         return_type text,state_func text,state_type text",
    ),
    Definition(
        "indexes",
        "secondary index definitions",
        1,
        2,
        "keyspace_name text,table_name text,index_name text,kind text,options frozen<map<text, text>>",
    ),
];

const SYSTEM_TABLES: &[Definition] = &[
    Definition(
        "local",
        "information about the local node",
        1,
        0,
        "key text,bootstrapped text,broadcast_address inet,broadcast_port int,cluster_name text,cql_version text,\
         data_center text,gossip_generation int,host_id uuid,listen_address inet,listen_port int,\
         native_protocol_version text,partitioner text,rack text,release_version text,rpc_address inet,rpc_port int,\
         schema_version uuid,tokens set<text>,truncated_at map<uuid, blob>",
    ),
    Definition(
        "peers",
        "information about known peers in the cluster",
        1,
        0,
        "peer inet,data_center text,host_id uuid,preferred_ip inet,rack text,release_version text,rpc_address inet,\
         schema_version uuid,tokens set<text>",
    ),
    Definition(
        "peers_v2",
        "information about known peers in the cluster",
        1,
        1,
        "peer inet,peer_port int,data_center text,host_id uuid,native_address inet,native_port int,\
         preferred_ip inet,preferred_port int,rack text,release_version text,schema_version uuid,tokens set<text>",
    ),
    INDEX_INFO,
];

const INDEX_INFO: Definition =
    Definition("IndexInfo", "built column indexes", 1, 1, "table_name text,index_name text,value blob");

const TRACES_TABLES: &[Definition] = &[
    Definition(
        "sessions",
        "tracing sessions",
        1,
        0,
        "session_id uuid,client inet,command text,coordinator inet,coordinator_port int,duration int,\
         parameters map<text, text>,request text,started_at timestamp",
    ),
    Definition(
        "events",
        "tracing events",
        1,
        1,
        "session_id uuid,event_id timeuuid,activity text,source inet,source_elapsed int,source_port int,thread text",
    ),
];

/// The system keyspaces with their tables.
pub fn system_keyspaces() -> Vec<Keyspace> {
    let local = &[("class", "org.apache.cassandra.locator.LocalStrategy")][..];
    let simple = &[("class", "org.apache.cassandra.locator.SimpleStrategy"), ("replication_factor", "2")][..];
    vec![
        keyspace("system", local, SYSTEM_TABLES, 0),
        keyspace(SYSTEM_SCHEMA, local, SCHEMA_TABLES, SCHEMA_GC_GRACE_SECONDS),
        keyspace("system_traces", simple, TRACES_TABLES, 0),
    ]
}

/// A week, as for Cassandra's schema tables.
const SCHEMA_GC_GRACE_SECONDS: i32 = 604_800;

fn keyspace(
    name: &str,
    replication: &[(&str, &str)],
    tables: &[Definition],
    gc_grace_seconds: i32,
) -> Keyspace {
    let tables = tables.iter().map(|definition| {
        let table = Arc::new(table(name, definition, gc_grace_seconds));
        (table.name.clone(), table)
    });
    Keyspace {
        name: name.into(),
        durable_writes: true,
        replication: replication.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        tables: tables.collect(),
        types: BTreeMap::new(),
    }
}

fn table(keyspace: &str, definition: &Definition, gc_grace_seconds: i32) -> Table {
    let Definition(name, comment, partition_columns, clustering_columns, columns) = definition;
    let columns = columns.replace('*', OPTIONS_COLUMNS);
    let columns = split_columns(&columns).enumerate().map(|(index, (name, ty))| {
        let kind = match index {
            _ if index < *partition_columns => ColumnKind::PartitionKey,
            _ if index < partition_columns + clustering_columns => ColumnKind::Clustering,
            _ => ColumnKind::Regular,
        };
        Column::new(name, kind, ty)
    });
    let mut table = Table::new((keyspace, name), TableId(name_based_id(keyspace, name)), columns);
    table.options = options(keyspace, comment, gc_grace_seconds);
    table
}

/// `name type` pairs; commas within angle brackets belong to the type.
fn split_columns(columns: &str) -> impl Iterator<Item = (&str, CqlType)> {
    let mut rest = columns;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            c == ',' && depth == 0
        });
        let (column, after) = end.map_or((rest, ""), |end| (&rest[..end], &rest[end + 1..]));
        rest = after;
        let (name, ty) = column.trim().split_once(' ')?;
        let ty = super::parse_type(ty, "system", &BTreeMap::new());
        ty.map(|ty| (name, ty))
    })
}

fn options(keyspace: &str, comment: &str, gc_grace_seconds: i32) -> TableOptions {
    let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    TableOptions {
        comment: comment.into(),
        gc_grace_seconds,
        memtable_flush_period_in_ms: if keyspace == "system_traces" { 0 } else { 3_600_000 },
        compaction: map(&[
            ("class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"),
            ("max_threshold", "32"),
            ("min_threshold", "4"),
        ]),
        ..TableOptions::default()
    }
}

/// `UUID.nameUUIDFromBytes` over keyspace and table name.
fn name_based_id(keyspace: &str, table: &str) -> Uuid {
    let mut name = keyspace.as_bytes().to_vec();
    name.extend_from_slice(table.as_bytes());
    let mut digest = md5::compute(&name).0;
    digest[6] = (digest[6] & 0x0F) | 0x30;
    digest[8] = (digest[8] & 0x3F) | 0x80;
    Uuid::from_bytes(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_a_cassandra_node() {
        let expected = [
            ("system_schema", "tables", "afddfb9d-bc1e-3068-8056-eed6c302ba09"),
            ("system_schema", "columns", "24101c25-a2ae-3af7-87c1-b40ee1aca33f"),
            ("system", "local", "7ad54392-bcdd-35a6-8417-4e047860b377"),
            ("system_traces", "events", "8826e8e9-e16a-3728-8753-3bc1fc713c25"),
        ];
        for (keyspace, table, id) in expected {
            let found = system_keyspaces().into_iter().find(|ks| &*ks.name == keyspace).unwrap();
            assert_eq!(found.tables[table].id.0.to_string(), id, "{keyspace}.{table}");
        }
    }

    #[test]
    fn every_definition_has_all_its_columns() {
        let columns: usize = system_keyspaces()
            .iter()
            .flat_map(|ks| ks.tables.values())
            .map(|table| table.columns().count())
            .sum();
        assert_eq!(columns, 41 + 3 + 16 + 107);
    }
}
