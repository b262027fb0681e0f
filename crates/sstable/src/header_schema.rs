//! Makes a table's schema from an SSTable's header, for files without a known schema.
//!
//! The serialization header contains the types of all columns, and the names of the static and regular ones. Key
//! columns have no names there; they get those of Cassandra's offline tools (`tools.Util.metadataFromSSTable`).

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

/// The table that the header of a file of a version describes. The caller chooses the names of keyspace and table.
/// `file` is the component that the header comes from, for errors.
///
/// # Errors
/// `Corrupt` for a type that cannot be read.
pub fn table_of_header(
    header: &Header,
    version: Version,
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
            // Cassandra 3.0 has only frozen user types, and does not write that they are frozen (CASSANDRA-15035). From
            // `mc` on the writer may be 3.11, which writes it.
            ParsedClass::Plain { ty: ty @ CqlType::Udt(_), reversed } if version < Version::Mc => {
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
        let table = table_of_header(&header, Version::Da, ("ks", "t"), Path::new("Statistics.db")).unwrap();
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
        assert!(table_of_header(&broken, Version::Da, ("ks", "t"), Path::new("x")).is_err());
    }
}
