//! Makes a table's schema from an SSTable's header, for files without a known schema.
//!
//! The serialization header contains the types of all columns, and the names of the static and regular ones. Key
//! columns have no names there; they get those of Cassandra's offline tools (`tools.Util.metadataFromSSTable`). A static
//! or regular column may have the same name.
//!
//! Cassandra 3.0 has only frozen user types, and does not write that they are frozen (CASSANDRA-15035); from 3.6 on
//! Cassandra writes it. Versions `mc` to `me` come from both lines, so that their headers have two readings:
//! `UserTypes`. Which one is right is known from the table's schema (`known_user_types`) or else from the rows
//! (`table::user_types`).

use crate::error::{Error, Result};
use crate::statistics::{Header, HeaderColumn};
use crate::version::Version;
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::types::{CqlType, ParsedClass, parse_class_name};
use std::path::Path;
use uuid::Uuid;

/// Name of the first partition key column. Further ones have a number after it.
const PARTITION_KEY: &str = "PartitionKey";
/// Name of the first clustering column. Further ones have a number after it.
const CLUSTERING: &str = "clustering";

/// The reading of user types that a header does not call frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserTypes {
    /// They are stored as one cell for each field, as the header says.
    MultiCell,
    /// They are frozen, and stored in one cell.
    Frozen,
}

impl UserTypes {
    /// The only possible reading of a header; `None` if there are two.
    pub fn certain(header: &Header, version: Version) -> Option<UserTypes> {
        match version {
            Version::Ma | Version::Mb => Some(UserTypes::Frozen),
            Version::Mc | Version::Md | Version::Me => match unfrozen(header).next() {
                None => Some(UserTypes::MultiCell),
                Some(_) => None,
            },
            _ => Some(UserTypes::MultiCell),
        }
    }
}

/// The reading that the table's own schema gives; `None` if it has none of the columns in question.
pub fn known_user_types(header: &Header, table: &Table) -> Option<UserTypes> {
    let known = |(column, kind): (&HeaderColumn, ColumnKind)| {
        let column = table.column_of(kind, &String::from_utf8_lossy(&column.name))?;
        Some(if column.ty.is_multi_cell() { UserTypes::MultiCell } else { UserTypes::Frozen })
    };
    unfrozen(header).find_map(known)
}

/// The static and regular columns of user types that the header does not call frozen.
fn unfrozen(header: &Header) -> impl Iterator<Item = (&HeaderColumn, ColumnKind)> {
    let statics = header.statics.iter().map(|column| (column, ColumnKind::Static));
    let regulars = header.regulars.iter().map(|column| (column, ColumnKind::Regular));
    let is_unfrozen = |(column, _): &(&HeaderColumn, ColumnKind)| {
        let ty = CqlType::from_class_name(&column.type_name);
        ty.is_ok_and(|ty| matches!(ty, CqlType::Udt(_)) && ty.is_multi_cell())
    };
    statics.chain(regulars).filter(is_unfrozen)
}

/// The table that the header of a file describes. The caller chooses the names of keyspace and table. `file` is the
/// component that the header comes from, for errors.
///
/// # Errors
/// `Corrupt` for a type that cannot be read.
pub fn table_of_header(
    header: &Header,
    user_types: UserTypes,
    (keyspace, name): (&str, &str),
    file: &Path,
) -> Result<Table> {
    let read = |class: &str| {
        parse_class_name(class).map_err(|problem| Error::Corrupt {
            file: file.to_owned(),
            offset: 0,
            problem: format!("type {class}: {problem}"),
        })
    };
    let plain = |class: &str| {
        Ok(match read(class)? {
            ParsedClass::Plain { ty: ty @ CqlType::Udt(_), reversed } if user_types == UserTypes::Frozen => {
                (ty.freeze(), reversed)
            }
            ParsedClass::Plain { ty, reversed } => (ty, reversed),
            ParsedClass::Composite(_) => (CqlType::Custom(class.into()), false),
        })
    };
    let key_types = match read(&header.key_type)? {
        ParsedClass::Composite(types) => types,
        ParsedClass::Plain { ty, reversed } => vec![(ty, reversed)],
    };
    let clustering_types: Vec<_> =
        header.clustering_types.iter().map(|class| plain(class)).collect::<Result<_>>()?;
    let others = |columns: &[HeaderColumn], kind| {
        let column = |of: &HeaderColumn| {
            let (ty, _) = plain(&of.type_name)?;
            Ok(Column::new(&String::from_utf8_lossy(&of.name), kind, ty))
        };
        columns.iter().map(column).collect::<Result<Vec<_>>>()
    };
    let mut columns = keys(key_types, PARTITION_KEY, ColumnKind::PartitionKey);
    columns.extend(keys(clustering_types, CLUSTERING, ColumnKind::Clustering));
    columns.extend(others(&header.statics, ColumnKind::Static)?);
    columns.extend(others(&header.regulars, ColumnKind::Regular)?);
    let mut table = Table::new((keyspace, name), TableId(Uuid::nil()), columns);
    let mut columns = table.statics.iter().chain(&table.regulars);
    if columns.any(|column| column.ty == CqlType::Counter) {
        table.flags.push("counter".into());
    }
    Ok(table)
}

fn keys(types: Vec<(CqlType, bool)>, name: &str, kind: ColumnKind) -> Vec<Column> {
    let numbered = |(position, (ty, reversed))| {
        let name = if position == 0 { name.to_owned() } else { format!("{name}{position}") };
        Column { reversed, ..Column::new(&name, kind, ty) }
    };
    types.into_iter().enumerate().map(numbered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::EncodingStats;

    #[test]
    fn a_header_gives_names_types_and_order() {
        const P: &str = "org.apache.cassandra.db.marshal.";
        let header = Header {
            encoding: EncodingStats::NONE,
            key_type: format!("{P}CompositeType({P}UTF8Type,{P}Int32Type)"),
            clustering_types: vec![format!("{P}ReversedType({P}LongType)"), format!("{P}UTF8Type")],
            statics: Vec::new(),
            regulars: vec![HeaderColumn { name: b"v".to_vec(), type_name: format!("{P}CounterColumnType") }],
        };
        let table =
            table_of_header(&header, UserTypes::MultiCell, ("ks", "t"), Path::new("Statistics.db")).unwrap();
        let names: Vec<_> = table.columns().map(|column| (&*column.name, column.reversed)).collect();
        let expected = [
            ("PartitionKey", false),
            ("PartitionKey1", false),
            ("clustering", true),
            ("clustering1", false),
            ("v", false),
        ];
        assert_eq!(names, expected);
        assert!(table.is_counter());
        let broken = Header { key_type: "org.apache.cassandra.db.marshal.ListType(".into(), ..header };
        assert!(table_of_header(&broken, UserTypes::MultiCell, ("ks", "t"), Path::new("x")).is_err());
    }
}
