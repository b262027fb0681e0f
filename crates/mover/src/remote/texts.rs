//! The SELECTs that read a table with the timestamp and TTL of each cell.
//!
//! Cassandra 5.0 answers WRITETIME and TTL of a set, map or list with a list in the order of its elements, and of a user type with a list
//! of all its fields, null where the field is. Older versions refuse both for columns of several cells: there such a column is
//! read without times. Counters have values only. What a compact table hides from statements is not read.

use helenus_model::cell::ColumnId;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{CqlType, quote_identifier};
use std::sync::Arc;

/// Which rows a SELECT reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rows {
    /// Those of a range of tokens, with a lower and an upper bound or without; and a condition of the user's. Values: the bounds.
    Range {
        /// Whether there is a lower bound.
        from: bool,
        /// Whether there is an upper bound.
        until: bool,
        /// Further conditions.
        condition: Option<String>,
    },
    /// Those of a condition alone.
    Where(String),
    /// One row. Values: its key.
    One,
    /// The first row with this many clustering values, which has no others if there is such a row. Values: partition key, clustering values.
    Prefix(u16),
    /// The first row of a partition, which shows the static row. Values: the partition key.
    Static,
}

/// A column of the result, behind the key.
#[derive(Clone, Debug)]
pub(super) struct ReadColumn {
    pub(super) id: ColumnId,
    pub(super) name: Arc<str>,
    pub(super) ty: CqlType,
    pub(super) is_static: bool,
    /// Whether its timestamps and TTLs follow it.
    pub(super) has_times: bool,
}

/// The SELECTs of a table.
#[derive(Clone, Debug)]
pub(crate) struct ReadTexts {
    table: Arc<Table>,
    /// The clustering columns that statements there can name: those of the table, or none.
    pub(super) clustering: usize,
    pub(super) columns: Vec<ReadColumn>,
}

impl ReadTexts {
    /// For a table at a cluster of this version, such as `(5, 0)`.
    pub(crate) fn new(table: &Arc<Table>, as_there: &Table, version: (u32, u32)) -> ReadTexts {
        let column = |column: &Column, is_static: bool| ReadColumn {
            id: column.id,
            name: Arc::clone(&column.name),
            ty: column.ty.clone(),
            is_static,
            has_times: column.ty != CqlType::Counter && (version >= (5, 0) || !column.ty.is_multi_cell()),
        };
        let statics = table.statics.iter().map(|of| column(of, true));
        let columns = statics.chain(table.regulars.iter().map(|of| column(of, false)));
        let is_shown =
            |of: &ReadColumn| as_there.column(&of.name).is_none_or(|column| !as_there.is_hidden(column));
        let clustering = as_there.clustering.iter().filter(|column| !as_there.is_hidden(column)).count();
        ReadTexts { table: Arc::clone(table), clustering, columns: columns.filter(is_shown).collect() }
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether the cluster hides the rows of the table, which are columns that it does not declare: only static rows are read there.
    pub(super) fn hides_rows(&self) -> bool {
        self.clustering < self.table.clustering.len()
    }

    /// Columns whose times the cluster cannot tell.
    pub(crate) fn without_times(&self) -> Vec<&str> {
        let columns = self.columns.iter().filter(|column| !column.has_times && column.ty != CqlType::Counter);
        columns.map(|column| &*column.name).collect()
    }

    /// The text of a SELECT.
    pub(crate) fn text(&self, rows: &Rows) -> String {
        let table = &*self.table;
        let names = |columns: &[Column]| -> Vec<String> {
            columns.iter().map(|column| quote_identifier(&column.name).into_owned()).collect()
        };
        let mut clustering = names(&table.clustering);
        clustering.truncate(self.clustering);
        let partition = names(&table.partition_key);
        let mut selected: Vec<String> = partition.iter().chain(&clustering).cloned().collect();
        for column in &self.columns {
            let name = quote_identifier(&column.name);
            selected.push(name.clone().into_owned());
            if column.has_times {
                selected.push(format!("WRITETIME({name})"));
                selected.push(format!("TTL({name})"));
            }
        }
        let token = format!("token({})", partition.join(", "));
        let equal = |names: &[String]| {
            names.iter().map(|name| format!("{name} = ?")).collect::<Vec<_>>().join(" AND ")
        };
        let of_row = [&partition[..], &clustering].concat();
        let conditions = match rows {
            Rows::One => equal(&of_row),
            Rows::Prefix(values) => {
                let end = of_row.len().min(partition.len() + usize::from(*values));
                format!("{} LIMIT 1", equal(of_row.get(..end).unwrap_or_default()))
            }
            Rows::Static => format!("{} LIMIT 1", equal(&partition)),
            Rows::Where(condition) => format!("{condition} ALLOW FILTERING"),
            Rows::Range { from, until, condition } => {
                let lower = from.then(|| format!("{token} >= ?"));
                let upper = until.then(|| format!("{token} < ?"));
                let parts: Vec<String> = [lower, upper, condition.clone()].into_iter().flatten().collect();
                let filtering = if condition.is_some() { " ALLOW FILTERING" } else { "" };
                format!("{}{filtering}", parts.join(" AND "))
            }
        };
        let of = format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name));
        let before = if conditions.is_empty() { "" } else { " WHERE " };
        format!("SELECT {} FROM {of}{before}{conditions}", selected.join(", "))
    }
}
