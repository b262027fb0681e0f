//! Puts changes with a condition as one conditional batch of a partition, and reads its answer.
//!
//! The cluster compares and writes in one round of Paxos (`CQL3CasRequest`). A row on which there is a condition and no change gets an
//! UPDATE whose value is unset, which writes nothing. A condition on absent columns can only name them, so "the row has no column" can be
//! put where all columns are declared, and nowhere else.

use crate::families::Layout;
use crate::rows::damaged;
use crate::texts;
use crate::writes::each_cell;
use helenus_cql::CqlError;
use helenus_engine::read::RowSink;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, Table};
use helenus_model::token::Token;
use helenus_model::types::{key_values, quote_identifier};
use helenus_rpc::Swap;
use helenus_wire::native::Rows;
use std::collections::BTreeMap;

/// A statement with the values of its markers; `None` is unset.
#[derive(Debug)]
pub(crate) struct Conditional {
    pub(crate) text: String,
    /// The partition that it reads and writes.
    pub(crate) partition: Token,
    pub(crate) values: Vec<Option<Vec<u8>>>,
}

/// Columns with values; `None` is null in a condition, and unset in a change.
type Values<'t> = Vec<(&'t Column, Option<Vec<u8>>)>;

/// Conditions and changes of a row, or of the declared columns.
#[derive(Default)]
struct Part<'t> {
    /// The values that columns must have.
    conditions: Values<'t>,
    /// New values, by TTL.
    updates: BTreeMap<i32, Values<'t>>,
}

/// The statement of a swap.
///
/// # Errors
/// CQL cannot put the condition, or the table cannot take a change.
pub(crate) fn statement(swap: &Swap<'_>) -> Result<Conditional, CqlError> {
    let table = &*swap.expected.table;
    // By the clustering of the row; that of the declared columns is empty.
    let mut parts: BTreeMap<Vec<Vec<u8>>, Part<'_>> = BTreeMap::new();
    each_cell(swap.expected, |column, row, (_, value)| {
        parts.entry(row).or_default().conditions.push((column, Some(value.to_vec())));
    })?;
    if parts.is_empty() {
        parts.insert(Vec::new(), Part { conditions: none_of(table)?, ..Part::default() });
    }
    each_cell(swap.updates, |column, row, (cell, value)| {
        let updates = &mut parts.entry(row).or_default().updates;
        updates.entry(cell.ttl_s).or_default().push((column, Some(value.to_vec())));
    })?;
    let key = key_values(table.partition_key.len(), &swap.expected.key);
    let key: Vec<Option<Vec<u8>>> = key.into_iter().map(|value| Some(value.to_vec())).collect();
    let partition = Token::of_key(&swap.expected.key);
    let mut out = Conditional { text: "BEGIN BATCH ".to_owned(), partition, values: Vec::new() };
    for (row, part) in parts {
        let row: Vec<_> = key.iter().cloned().chain(row.into_iter().map(Some)).collect();
        part.put(table, &row, &mut out);
    }
    out.text += "APPLY BATCH";
    Ok(out)
}

/// The conditions that a row has none of its columns.
fn none_of(table: &Table) -> Result<Values<'_>, CqlError> {
    if Layout::of(table) != Layout::Columns || table.statics.is_empty() {
        return Err(CqlError::Invalid(format!(
            "cas without expected columns cannot be asked of a cluster for {}: its condition is that the row has no column at all, and a \
             conditional statement can only name columns; expect columns by name",
            table.name
        )));
    }
    Ok(table.statics.iter().map(|column| (column, None)).collect())
}

impl Part<'_> {
    fn put(self, table: &Table, row: &[Option<Vec<u8>>], out: &mut Conditional) {
        let has_row = row.len() > table.partition_key.len();
        let restriction = if has_row { texts::of_row(table) } else { texts::of_key(table) };
        let Part { mut conditions, mut updates } = self;
        if let (true, Some((column, _))) = (updates.is_empty(), conditions.first()) {
            updates.insert(0, vec![(*column, None)]);
        }
        for (ttl_s, columns) in updates {
            let sets: Vec<String> =
                columns.iter().map(|(column, _)| format!("{} = ?", quote_identifier(&column.name))).collect();
            out.text += &format!(
                "UPDATE {} USING TTL ? SET {} WHERE {restriction}",
                texts::table_name(table),
                sets.join(", ")
            );
            out.values.push(Some(ttl_s.to_be_bytes().to_vec()));
            out.values.extend(columns.into_iter().map(|(_, value)| value));
            out.values.extend_from_slice(row);
            for (index, (column, value)) in std::mem::take(&mut conditions).into_iter().enumerate() {
                let word = if index == 0 { "IF" } else { "AND" };
                let name = quote_identifier(&column.name);
                match value {
                    Some(value) => {
                        out.text += &format!(" {word} {name} = ?");
                        out.values.push(Some(value));
                    }
                    None => out.text += &format!(" {word} {name} = null"),
                }
            }
            out.text += "; ";
        }
    }
}

/// Whether the changes were made. If not, what the conditions found goes to the sink.
///
/// # Errors
/// The answer is damaged; the sink's.
pub(crate) fn has_applied(
    swap: &Swap<'_>,
    rows: &Rows<'_>,
    sink: &mut dyn RowSink,
) -> Result<bool, CqlError> {
    let table = &*swap.expected.table;
    let names = rows.metadata.columns.to_vec().map_err(|_| damaged())?;
    let mut statics = None;
    let mut found = Vec::new();
    for row in rows.iter() {
        let cells: Vec<Option<&[u8]>> = row.map_err(|_| damaged())?.cells().collect();
        let cell = |name: &str| {
            let at = names.iter().position(|column| *column.name == *name)?;
            cells.get(at).copied().flatten()
        };
        match cell("[applied]") {
            Some([1]) => return Ok(true),
            Some(_) => {}
            None => return Err(damaged()),
        }
        let declared = table.statics.iter().filter_map(|column| Some((column, cell(&column.name)?)));
        let declared = row_of(declared);
        if !declared.cells.is_empty() {
            statics = Some(declared);
        }
        let clustering: Option<Vec<&[u8]>> =
            table.clustering.iter().map(|column| cell(&column.name)).collect();
        let Some(clustering) = clustering else { continue };
        let mut buffer =
            row_of(table.regulars.iter().filter_map(|column| Some((column, cell(&column.name)?))));
        for value in clustering {
            let span = buffer.push_bytes(value);
            buffer.clustering.push(span);
        }
        if !buffer.cells.is_empty() {
            found.push(buffer);
        }
    }
    sink.partition(&swap.expected.key, statics.as_ref().map(RowBuf::view))?;
    for row in &found {
        sink.row(row.view())?;
    }
    sink.partition_end(found.len() as u64)?;
    Ok(false)
}

fn row_of<'c>(columns: impl Iterator<Item = (&'c Column, &'c [u8])>) -> RowBuf {
    let mut row = RowBuf::default();
    for (column, value) in columns {
        let value = row.push_bytes(value);
        row.cells.push(Cell {
            column: column.id,
            ttl_s: 0,
            timestamp_us: 0,
            local_deletion_s: NO_EXPIRY,
            path: Span::NULL,
            value,
        });
    }
    row.cells.sort_by_key(|cell| cell.column);
    row
}
