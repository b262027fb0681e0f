//! The description of a result.

use super::selected::{JsonColumns, Leaf, Selected};
use super::source::Source;
use crate::backend::{ResultColumn, ResultColumns};
use helenus_model::schema::Table;
use helenus_model::types::write_json_string;
use std::sync::Arc;

/// Describes columns, with the id that protocol v5 knows them by: the MD5 of names and type classes
/// (`ResultSet.ResultMetadata.computeResultMetadataId`). Of the columns that `is_reversed` names by their number, the class
/// is that of the reversed order, although clients are told the plain type.
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

/// Whether an output column is a clustering column in descending order as it is; what is computed from one has a plain type
/// (`AbstractFunction`, `WithFieldSelection`).
pub(super) fn is_reversed(selected: &Selected, table: &Table) -> bool {
    match selected {
        Selected::Leaf(Leaf::Column(Source::Clustering(position))) => {
            table.clustering.get(*position).is_some_and(|column| column.reversed)
        }
        _ => false,
    }
}

/// The columns of a row of JSON: a name with capitals keeps its CQL quotes inside the JSON string (`Selection.rowToJson`).
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
