//! The memory of a schema, which is bounded: tables, columns, and every text in them, also those of types.

use crate::error::Error;
use crate::index::stored_tables;
use helenus_host::account;
use helenus_model::schema::{Keyspace, Schema, Table, TableOptions};
use helenus_model::types::{UserType, described_bytes};
use std::sync::Arc;

/// Memory of a table beside its columns, measured: its store, an empty memtable, its rows in `system_schema`.
const TABLE_BYTES: u64 = 16 << 10;

/// Memory of a column, measured with tables of 8,000.
const COLUMN_BYTES: u64 = 640;

/// How often a text is there: in the schema, in `system_schema`, and in the statements, answers and files that are made of it for a while.
const COPIES: u64 = 4;

/// The part of the memory of requests that the schema may take: one in so many.
const SCHEMA_PART: u64 = 2;

/// Estimated memory of a schema that is there at a start, in bytes. Its texts count for no more than schemas may have: it is served.
pub(super) fn schema_bytes(schema: &Schema) -> u64 {
    let (mut bytes, mut texts) = (0, 0_u64);
    for (table, _) in stored_tables(schema) {
        bytes += TABLE_BYTES + columns_bytes(&table);
        texts = texts.saturating_add(texts_bytes(&table));
    }
    let types =
        schema.keyspaces.values().map(|keyspace| types_bytes(keyspace)).fold(texts, u64::saturating_add);
    bytes + types.min(account::limit() / SCHEMA_PART)
}

/// Estimated memory of a table, in bytes.
pub(super) fn table_bytes(table: &Table) -> u64 {
    (TABLE_BYTES + columns_bytes(table)).saturating_add(texts_bytes(table))
}

fn columns_bytes(table: &Table) -> u64 {
    COLUMN_BYTES * table.columns().count() as u64
}

fn texts_bytes(table: &Table) -> u64 {
    let names: usize = table.columns().map(|column| column.name.len()).sum();
    let types = described_bytes(table.columns().map(|column| &column.ty));
    // Of a column that was dropped only what its definition needs is kept.
    let dropped: usize = table.dropped.keys().map(|name| 64 + name.len()).sum();
    let dropped = dropped.saturating_add(described_bytes(table.dropped.values().map(|column| &column.ty)));
    let texts =
        [names, types, dropped, options_bytes(&table.options)].into_iter().fold(0, usize::saturating_add);
    COPIES.saturating_mul(texts as u64)
}

fn options_bytes(options: &TableOptions) -> usize {
    let maps = [&options.caching, &options.compaction, &options.compression];
    let maps = maps.into_iter().flatten().map(|(key, value)| key.len() + value.len());
    let extensions = options.extensions.iter().map(|(key, value)| key.len() + value.len());
    options.comment.len() + maps.chain(extensions).sum::<usize>()
}

/// Estimated memory of the user types of a keyspace, in bytes: each with its own fields. Those within it count at their own place.
pub(super) fn types_bytes(keyspace: &Keyspace) -> u64 {
    let of_type = |ty: &Arc<UserType>| {
        let names: usize = ty.fields.iter().map(|(name, _)| 64 + name.len()).sum();
        COLUMN_BYTES + COPIES * names as u64
    };
    keyspace.types.values().map(of_type).sum()
}

/// How much more the types of one schema take than those of another. Keyspaces that both share are not looked at.
pub(super) fn types_change(present: &Schema, next: &Schema) -> (u64, u64) {
    let of_changed = |these: &Schema, those: &Schema| -> u64 {
        let is_shared = |keyspace: &Arc<Keyspace>| {
            those.keyspaces.get(&keyspace.name).is_some_and(|other| Arc::ptr_eq(other, keyspace))
        };
        these
            .keyspaces
            .values()
            .filter(|keyspace| !is_shared(keyspace))
            .map(|keyspace| types_bytes(keyspace))
            .sum()
    };
    (of_changed(next, present), of_changed(present, next))
}

/// Refuses a schema that takes more.
pub(super) fn check_memory(bytes: u64) -> Result<(), Error> {
    let limit = account::limit() / SCHEMA_PART;
    if bytes > limit { Err(Error::SchemaTooLarge { bytes, limit }) } else { Ok(()) }
}
