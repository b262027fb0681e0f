//! A secondary index: its row of `system_schema.indexes`, interpreted.

use super::column::{Column, ColumnKind};
use super::table::{Table, TableId};
use crate::types::{CqlType, quote_identifier};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Kinds of indexes, as `system_schema.indexes.kind` names them (`IndexMetadata.Kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// An index of a Thrift table, in old schemas.
    Keys,
    /// Cassandra's built-in legacy index.
    Composites,
    /// An index named by its class; here a storage-attached one.
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

/// The part of a column that is indexed (`IndexTarget.Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPart {
    /// The value of a column that is not a collection.
    Simple,
    /// The values of a collection.
    Values,
    /// The keys of a map.
    Keys,
    /// The entries of a map: keys with values.
    Entries,
    /// A frozen collection as a whole.
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

/// Index option with the indexed column and part.
pub const TARGET_OPTION: &str = "target";
/// Index option with the class name.
pub const CLASS_OPTION: &str = "class_name";
/// Class of storage-attached indexes.
pub const SAI_CLASS: &str = "org.apache.cassandra.index.sai.StorageAttachedIndex";
/// Class of SASI indexes.
pub const SASI_CLASS: &str = "org.apache.cassandra.index.sasi.SASIIndex";

/// The full name of an index class, which may be given by an alias (`IndexMetadata.indexNameAliases`).
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
    /// Identity of its stored data; an index that is dropped and created again under the same name gets another.
    pub id: TableId,
    /// Its kind.
    pub kind: IndexKind,
    /// `target`, `class_name` and the class's own options.
    pub options: BTreeMap<String, String>,
}

impl Index {
    /// The text of `target` for a part of a column.
    pub fn target_text(part: IndexPart, column: &str) -> String {
        let column = quote_identifier(column);
        if part == IndexPart::Simple { column.into_owned() } else { format!("{part}({column})") }
    }

    /// The text of its `target`.
    pub fn target(&self) -> &str {
        self.options.get(TARGET_OPTION).map_or("", String::as_str)
    }

    /// The indexed part, and the name of the indexed column.
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

    /// The indexed column.
    pub fn column<'t>(&self, table: &'t Table) -> Option<&'t Column> {
        table.column(&self.part().1)
    }

    /// Whether it is a storage-attached index.
    pub fn is_sai(&self) -> bool {
        self.kind == IndexKind::Custom
            && self.options.get(CLASS_OPTION).is_some_and(|class| index_class(class) == SAI_CLASS)
    }

    /// Whether another index differs only in its name (`equalsWithoutName`).
    pub fn is_same_but_for_name(&self, other: &Index) -> bool {
        self.kind == other.kind && self.options == other.options
    }

    /// The type of an index term; `None` for entries of maps, which are two values.
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

    /// Whether an index on this column refers to partitions and not to rows: the column is static or in the partition
    /// key.
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
