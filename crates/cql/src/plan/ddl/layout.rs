//! Reads the extensions of a CREATE TABLE that describe what CQL cannot express: column families made through Thrift.
//!
//! DESCRIBE and each `schema.cql` write such statements (`plan::describe::layout`), so that any table can be restored
//! exactly. The statements declare all columns, including those that are hidden from other statements.

use super::create_table::invalid;
use super::options::extension;
use super::properties::Properties;
use crate::analysis::Resolver;
use crate::error::{CqlError, Result};
use crate::syntax::parse_type;
use helenus_model::schema::{
    Column, ColumnKind, DROPPED_COLUMN_EXTENSION, DroppedColumn, FLAGS_EXTENSION, Table,
    UNNAMED_COLUMN_EXTENSION,
};
use helenus_model::types::CqlType;

/// The possible flags in `system_schema.tables` (`TableMetadata.Flag`).
const FLAGS: [&str; 4] = ["super", "compound", "dense", "counter"];

/// The content of the extensions.
#[derive(Default)]
pub(super) struct Layout {
    /// The table's flags.
    pub(super) flags: Option<Vec<String>>,
    /// The declared column that stands for the column without a name.
    unnamed: Option<String>,
    dropped: Vec<DroppedColumn>,
}

/// Whether an extension is read by this file.
pub(super) fn is_layout(name: &str) -> bool {
    name == FLAGS_EXTENSION || name == UNNAMED_COLUMN_EXTENSION || name.starts_with(DROPPED_COLUMN_EXTENSION)
}

impl Layout {
    /// Takes the extensions out of the properties of a CREATE TABLE.
    ///
    /// # Errors
    /// An extension is not valid.
    pub(super) fn take(properties: &mut Properties, types: &Resolver<'_>) -> Result<Layout> {
        let mut layout = Layout::default();
        for (name, value) in properties.take_from_map("extensions", is_layout) {
            let Ok(value) = String::from_utf8(extension(&value)) else {
                return Err(CqlError::Config(format!("The value of extension '{name}' is no text")));
            };
            match name.strip_prefix(DROPPED_COLUMN_EXTENSION) {
                Some(column) => layout.dropped.push(dropped_column(column, &value, types)?),
                None if name == FLAGS_EXTENSION => layout.flags = Some(flags(&value)?),
                None => layout.unnamed = Some(value),
            }
        }
        Ok(layout)
    }

    /// Applies the extensions to the table that the statement's columns made.
    ///
    /// # Errors
    /// The table cannot have these flags.
    pub(super) fn apply(self, table: &mut Table) -> Result<()> {
        if let Some(unnamed) = &self.unnamed {
            let columns =
                [&mut table.partition_key, &mut table.clustering, &mut table.statics, &mut table.regulars];
            let mut columns = columns.into_iter().flatten();
            match columns.find(|column| *column.name == **unnamed) {
                Some(column) => column.name = "".into(),
                None => {
                    return invalid(format!(
                        "Extension '{UNNAMED_COLUMN_EXTENSION}' is about column '{unnamed}', which the statement does not declare"
                    ));
                }
            }
        }
        table.dropped.extend(self.dropped.into_iter().map(|column| (column.name.clone(), column)));
        if self.flags.is_some() && table.is_compact() {
            check(table)?;
        }
        Ok(())
    }
}

fn flags(text: &str) -> Result<Vec<String>> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let mut found: Vec<String> = Vec::new();
    for word in words {
        if !FLAGS.contains(&word) || found.iter().any(|other| other == word) {
            return Err(CqlError::Config(format!(
                "Invalid value '{text}' for extension '{FLAGS_EXTENSION}': some of {} are expected, with commas between",
                FLAGS.join(", ")
            )));
        }
        found.push(word.to_owned());
    }
    Ok(found)
}

/// Parses `MICROSECONDS static|regular TYPE`.
fn dropped_column(name: &str, value: &str, types: &Resolver<'_>) -> Result<DroppedColumn> {
    let wrong = || {
        CqlError::Config(format!(
            "Invalid value '{value}' for extension '{DROPPED_COLUMN_EXTENSION}{name}': microseconds, 'static' or 'regular' and \
             a type are expected, such as '1700000000000000 static text'"
        ))
    };
    let mut parts = value.splitn(3, ' ');
    let dropped_us = parts.next().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
    let kind = match parts.next() {
        Some("static") => ColumnKind::Static,
        Some("regular") => ColumnKind::Regular,
        _ => return Err(wrong()),
    };
    let written = parse_type(parts.next().ok_or_else(wrong)?).map_err(|_| wrong())?;
    Ok(DroppedColumn { name: name.into(), ty: types.resolved(&written)?, kind, dropped_us })
}

/// Rejects a compact table to which no row could be written.
fn check(table: &Table) -> Result<()> {
    let problem = match (table.is_super(), &table.clustering[..], &table.regulars[..]) {
        (_, [], _) => Some("a compact table has clustering columns"),
        (true, [_], regulars) if regulars.iter().any(is_super_map) => None,
        (true, ..) => Some(
            "a super family has one clustering column, and a column without a name that is a map of what is in a super column",
        ),
        (false, _, [value]) if !value.ty.is_multi_cell() => None,
        (false, ..) => Some("a compact table has one regular column, which is no collection"),
    };
    problem.map_or(Ok(()), |problem| {
        let flags = table.flags.join(", ");
        invalid(format!(
            "Extension '{FLAGS_EXTENSION}' = '{flags}' does not fit the columns of the table: {problem}"
        ))
    })
}

fn is_super_map(column: &Column) -> bool {
    column.name.is_empty() && matches!(&column.ty, CqlType::Map { frozen: false, .. })
}
