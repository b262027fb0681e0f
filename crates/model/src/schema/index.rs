//! A secondary index: what `system_schema.indexes` says of it, and what that means.

use super::column::{Column, ColumnKind};
use super::table::{Table, TableId};
use crate::types::{CqlType, quote_identifier};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Kinds of indexes, as `system_schema.indexes.kind` names them (`IndexMetadata.Kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// Of Thrift's tables, from old schemas.
    Keys,
    /// Cassandra's own, the legacy kind.
    Composites,
    /// By class: storage-attached ones here.
    Custom,
}

impl IndexKind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            IndexKind::Keys => "KEYS",
            IndexKind::Composites => "COMPOSITES",
            IndexKind::Custom => "CUSTOM",
        }
    }

    /// From its name.
    pub fn of_name(name: &str) -> Option<IndexKind> {
        [IndexKind::Keys, IndexKind::Composites, IndexKind::Custom]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// Which part of a column an index holds (`IndexTarget.Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPart {
    /// The value of a column that is no collection.
    Simple,
    /// The values of a collection.
    Values,
    /// The keys of a map.
    Keys,
    /// The keys of a map with their values.
    Entries,
    /// A frozen collection whole.
    Full,
}

impl fmt::Display for IndexPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IndexPart::Simple => "",
            IndexPart::Values => "values",
            IndexPart::Keys => "keys",
            IndexPart::Entries => "entries",
            IndexPart::Full => "full",
        })
    }
}

/// Option of an index that says what it holds.
pub const TARGET_OPTION: &str = "target";
/// Option of an index that names its class.
pub const CLASS_OPTION: &str = "class_name";
/// Class of storage-attached indexes.
pub const SAI_CLASS: &str = "org.apache.cassandra.index.sai.StorageAttachedIndex";
/// Class of SASI indexes.
pub const SASI_CLASS: &str = "org.apache.cassandra.index.sasi.SASIIndex";

/// The full name of an index class that may be given by an alias (`IndexMetadata.indexNameAliases`).
pub fn index_class(name: &str) -> &str {
    match name.to_lowercase().as_str() {
        "sai" | "storageattachedindex" => SAI_CLASS,
        _ => name,
    }
}

/// A secondary index of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name, unique in its keyspace.
    pub name: Arc<str>,
    /// Identity of what is stored for it; another one when an index of the name is made again.
    pub id: TableId,
    /// Its kind.
    pub kind: IndexKind,
    /// `target`, `class_name` and the class's own options.
    pub options: BTreeMap<String, String>,
}

impl Index {
    /// What `target` says for a part of a column.
    pub fn target_text(part: IndexPart, column: &str) -> String {
        let column = quote_identifier(column);
        if part == IndexPart::Simple { column.into_owned() } else { format!("{part}({column})") }
    }

    /// Its target's text.
    pub fn target(&self) -> &str {
        self.options.get(TARGET_OPTION).map_or("", String::as_str)
    }

    /// The part of a column that it holds, and the column's name.
    pub fn part(&self) -> (IndexPart, String) {
        let target = self.target();
        let parts = [IndexPart::Keys, IndexPart::Entries, IndexPart::Values, IndexPart::Full];
        let found = parts.into_iter().find_map(|part| {
            let rest = target.strip_prefix(&*part.to_string())?;
            Some((part, rest.strip_prefix('(')?.strip_suffix(')')?))
        });
        let (part, name) = found.unwrap_or((IndexPart::Simple, target));
        let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        (part, quoted.map_or_else(|| name.to_owned(), |name| name.replace("\"\"", "\"")))
    }

    /// The column that it is of.
    pub fn column<'t>(&self, table: &'t Table) -> Option<&'t Column> {
        table.column(&self.part().1)
    }

    /// Whether it is a storage-attached index.
    pub fn is_sai(&self) -> bool {
        self.kind == IndexKind::Custom
            && self.options.get(CLASS_OPTION).is_some_and(|class| index_class(class) == SAI_CLASS)
    }

    /// Whether another index differs from it in its name alone (`equalsWithoutName`).
    pub fn is_same_but_for_name(&self, other: &Index) -> bool {
        self.kind == other.kind && self.options == other.options
    }

    /// The type of what it holds for each entry; `None` for entries of maps, which are two values.
    pub fn term_type<'t>(&self, column: &'t Column) -> Option<&'t CqlType> {
        match (self.part().0, &column.ty) {
            (IndexPart::Entries, _) => None,
            (_, ty) if !ty.is_multi_cell() => Some(ty),
            (IndexPart::Keys, CqlType::Map { key, .. }) => Some(key),
            (_, CqlType::Map { value, .. }) => Some(value),
            (_, CqlType::List { element, .. } | CqlType::Set { element, .. }) => Some(element),
            (_, ty) => Some(ty),
        }
    }

    /// Whether it is kept a partition and not a row: of the static row, or of a column of the partition key.
    pub fn is_of_partitions(column: &Column) -> bool {
        matches!(column.kind, ColumnKind::Static | ColumnKind::PartitionKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn index(target: &str) -> Index {
        let options = BTreeMap::from([(TARGET_OPTION.to_owned(), target.to_owned())]);
        Index { name: "i".into(), id: TableId(Uuid::nil()), kind: IndexKind::Composites, options }
    }

    #[test]
    fn a_target_is_read_as_it_was_written() {
        for part in
            [IndexPart::Simple, IndexPart::Values, IndexPart::Keys, IndexPart::Entries, IndexPart::Full]
        {
            for name in ["v", "keys", "V", "a\"b", "values(x)"] {
                let found = index(&Index::target_text(part, name)).part();
                assert_eq!(found, (part, name.to_owned()));
            }
        }
    }
}
