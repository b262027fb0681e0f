//! An index of a wide table's columns, by name and by number.

use super::column::{Column, ColumnKind};
use crate::cell::ColumnId;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Each map is built when it is first needed and never rebuilt. As the table may be changed while it is constructed,
/// the caller must check that the column at the returned position has the right name or number. A clone of a table
/// starts with an empty index.
#[derive(Default)]
pub struct ColumnIndex {
    by_name: OnceLock<HashMap<Arc<str>, (ColumnKind, usize)>>,
    by_id: OnceLock<HashMap<ColumnId, (ColumnKind, usize)>>,
}

impl ColumnIndex {
    pub(super) fn position_by_id(
        &self,
        id: ColumnId,
        (statics, regulars): (&[Column], &[Column]),
    ) -> Option<(ColumnKind, usize)> {
        let made = self.by_id.get_or_init(|| {
            let statics =
                statics.iter().enumerate().map(|(at, column)| (column.id, (ColumnKind::Static, at)));
            let regulars =
                regulars.iter().enumerate().map(|(at, column)| (column.id, (ColumnKind::Regular, at)));
            statics.chain(regulars).collect()
        });
        made.get(&id).copied()
    }

    pub(super) fn position_by_name<'t>(
        &self,
        name: &str,
        columns: impl Iterator<Item = (ColumnKind, &'t [Column])>,
    ) -> Option<(ColumnKind, usize)> {
        let made = self.by_name.get_or_init(|| {
            let of = |(kind, columns): (ColumnKind, &'t [Column])| {
                columns.iter().enumerate().map(move |(at, column)| (column.name.clone(), (kind, at)))
            };
            columns.flat_map(of).collect()
        });
        made.get(name).copied()
    }
}

impl Clone for ColumnIndex {
    fn clone(&self) -> ColumnIndex {
        ColumnIndex::default()
    }
}

impl PartialEq for ColumnIndex {
    /// The index follows from the table's columns.
    fn eq(&self, _: &ColumnIndex) -> bool {
        true
    }
}

impl fmt::Debug for ColumnIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ColumnIndex")
    }
}
