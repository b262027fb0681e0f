//! Encodes and decodes the definition of a watched table (`cdc = true`) in the log.
//!
//! Each segment defines a watched table before its first record, so that a reader of changes needs the log alone: the
//! table may have changed since, or be gone. Types stand as Cassandra's class names, which name the fields of user types
//! too.

use super::record::{Input, put_bytes, put_len};
use helenus_model::cell::ColumnId;
use helenus_model::schema::{Column, ColumnKind, ColumnMask, Table, TableId};
use helenus_model::types::CqlType;

/// Why a definition stands in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionKind {
    /// It repeats the present definition, for the records after it.
    Repeated,
    /// The schema change after it creates the table.
    Created,
    /// The schema change after it alters the table.
    Altered,
    /// The schema change after it sets `cdc = true`.
    Watched,
    /// The schema change after it sets `cdc = false`.
    Unwatched,
    /// The schema change after it drops the table.
    Dropped,
}

const KINDS: [DefinitionKind; 6] = [
    DefinitionKind::Repeated,
    DefinitionKind::Created,
    DefinitionKind::Altered,
    DefinitionKind::Watched,
    DefinitionKind::Unwatched,
    DefinitionKind::Dropped,
];

const COLUMN_KINDS: [ColumnKind; 4] =
    [ColumnKind::PartitionKey, ColumnKind::Clustering, ColumnKind::Static, ColumnKind::Regular];

/// Bits of a column: its clustering order is reversed; its values are masked.
const REVERSED: u8 = 1;
const MASKED: u8 = 2;

/// Appends a definition, without the record's kind.
pub(super) fn put_definition(kind: DefinitionKind, table: &Table, out: &mut Vec<u8>) {
    out.push(KINDS.iter().position(|known| *known == kind).unwrap_or_default() as u8);
    out.extend_from_slice(table.id.0.as_bytes());
    put_bytes(out, table.keyspace.as_bytes());
    put_bytes(out, table.name.as_bytes());
    put_len(out, table.flags.len());
    for flag in &table.flags {
        put_bytes(out, flag.as_bytes());
    }
    put_len(out, table.columns().count());
    for column in table.columns() {
        out.extend_from_slice(&column.id.0.to_le_bytes());
        out.push(COLUMN_KINDS.iter().position(|known| *known == column.kind).unwrap_or_default() as u8);
        let masked = if table.masks.contains_key(&column.name) { MASKED } else { 0 };
        out.push(masked | if column.reversed { REVERSED } else { 0 });
        put_bytes(out, column.name.as_bytes());
        put_bytes(out, class_name(&column.ty).as_bytes());
    }
}

/// The class name of a type; of one whose name is not read back, that of a blob: a definition must always be readable.
fn class_name(ty: &CqlType) -> String {
    let name = ty.class_name();
    match CqlType::from_class_name(&name) {
        Ok(read) if read == *ty => name,
        _ => CqlType::Blob.class_name(),
    }
}

/// Reads a definition; `None` if it is invalid.
pub(super) fn read_definition(input: &mut Input<'_>) -> Option<(DefinitionKind, Table)> {
    let [kind] = input.array()?;
    let kind = *KINDS.get(usize::from(kind))?;
    let id: TableId = input.table()?;
    let (keyspace, name) = (input.text()?, input.text()?);
    let mut flags = Vec::new();
    for _ in 0..input.u32()? {
        flags.push(input.text()?.to_owned());
    }
    let (mut columns, mut masked) = (Vec::new(), Vec::new());
    for _ in 0..input.u32()? {
        let id = ColumnId(u16::from_le_bytes(input.array()?));
        let [kind, bits] = input.array()?;
        let kind = *COLUMN_KINDS.get(usize::from(kind))?;
        let name = input.text()?;
        let ty = CqlType::from_class_name(input.text()?).ok()?;
        if bits & MASKED != 0 {
            masked.push(name);
        }
        columns.push(Column { id, reversed: bits & REVERSED != 0, ..Column::new(name, kind, ty) });
    }
    let mut table = Table::new((keyspace, name), id, columns);
    table.flags = flags;
    // Which function masks them does not matter to who reads the log: the right to see them does.
    let mask =
        || ColumnMask { keyspace: "system".into(), function: "mask_default".into(), arguments: Vec::new() };
    table.masks = masked.into_iter().map(|name| (name.into(), mask())).collect();
    Some((kind, table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commitlog::record;
    use uuid::Uuid;

    #[test]
    fn a_definition_tells_which_columns_were_masked_and_which_reversed() {
        let mut columns = vec![
            Column::new("p", ColumnKind::PartitionKey, CqlType::Int),
            Column { reversed: true, ..Column::new("c", ColumnKind::Clustering, CqlType::Int) },
            Column { reversed: true, ..Column::new("d", ColumnKind::Clustering, CqlType::Int) },
        ];
        columns.extend(["v", "w"].map(|name| Column::new(name, ColumnKind::Regular, CqlType::Text)));
        let mut table = Table::new(("k", "t"), TableId(Uuid::from_u128(7)), columns);
        let mask =
            ColumnMask { keyspace: "system".into(), function: "mask_inner".into(), arguments: Vec::new() };
        table.masks = ["d", "w"].map(|name| (name.into(), mask.clone())).into();
        let bytes = record::definition(DefinitionKind::Altered, &table);
        let Some(record::Record::Definition(kind, read)) = record::parse(&bytes) else { panic!("{bytes:?}") };
        assert_eq!(kind, DefinitionKind::Altered);
        assert!(read.masks.keys().map(|name| &**name).eq(["d", "w"]));
        let reversed = read.columns().filter(|column| column.reversed).map(|column| &*column.name);
        assert!(reversed.eq(["c", "d"]));
    }
}
