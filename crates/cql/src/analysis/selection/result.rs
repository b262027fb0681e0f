//! Makes the metadata of a SELECT's result: the columns, their id in protocol v5, and the names of a JSON row.

use super::selected::{JsonColumns, RowValue, Selected};
use super::source::Source;
use crate::answer::{ResultColumn, ResultColumns};
use crate::error::{CqlError, Result};
use helenus_model::schema::Table;
use helenus_model::types::{described_bytes, write_json_string};
use std::sync::Arc;

/// The most bytes by which the columns of a result are described.
const DESCRIPTION_BYTES_MAX: usize = 16 << 20;

/// Refuses a result whose columns cannot be described within bounds: a short text may name a column of a type with many fields again and
/// again. Who writes the description asks for its memory.
///
/// # Errors
/// The description is too long.
pub(super) fn check_description(columns: &[ResultColumn]) -> Result<()> {
    let names: usize = columns.iter().map(|column| 2 + column.name.len()).sum();
    let bytes = names.saturating_add(described_bytes(columns.iter().map(|column| &column.ty)));
    if bytes > DESCRIPTION_BYTES_MAX {
        return Err(CqlError::Invalid(format!(
            "The columns of this result, with the fields of their types, take more than {} MiB to describe: select fewer of them",
            DESCRIPTION_BYTES_MAX >> 20
        )));
    }
    Ok(())
}

/// Makes the metadata of columns with their protocol v5 id: the MD5 of names and type classes
/// (`ResultSet.ResultMetadata.computeResultMetadataId`). For a column whose index satisfies `is_reversed` the class of
/// the reversed order is hashed, although clients get the plain type.
pub(crate) fn result_columns(
    columns: Vec<ResultColumn>,
    is_reversed: impl Fn(usize) -> bool,
) -> Arc<ResultColumns> {
    let mut context = md5::Context::new();
    for (number, column) in columns.iter().enumerate() {
        context.consume(column.name.as_bytes());
        context.consume([0]);
        context.consume(column.ty.class_name_ordered(is_reversed(number)));
        context.consume([0, 0]);
    }
    Arc::new(ResultColumns { columns, id: context.finalize().0 })
}

/// Whether an output column is just a clustering column in descending order; an expression on one has a plain type
/// (`AbstractFunction`, `WithFieldSelection`).
pub(super) fn is_reversed(selected: &Selected, table: &Table) -> bool {
    match selected {
        Selected::Leaf(RowValue::Column(Source::Clustering(position))) => {
            table.clustering.get(*position).is_some_and(|column| column.reversed)
        }
        _ => false,
    }
}

/// The columns of a JSON row: a name with capitals keeps its CQL quotes inside the JSON string (`Selection.rowToJson`).
pub(super) fn json_columns(columns: &[ResultColumn]) -> JsonColumns {
    let column = |column: &ResultColumn| {
        let mut text = String::new();
        let has_capitals = *column.name.to_lowercase() != *column.name;
        let name = if has_capitals { format!("\"{}\"", column.name) } else { column.name.to_string() };
        write_json_string(&name, &mut text);
        text.push_str(": ");
        (text, column.ty.clone())
    };
    JsonColumns(columns.iter().map(column).collect())
}
