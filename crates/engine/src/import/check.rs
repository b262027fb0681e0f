//! Checks a file for problems: missing components, types that differ from the table's, damage.

use helenus_host::Disk;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{CqlType, ParsedClass, parse_class_name};
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::import::{SsTableFiles, missing_components};
use helenus_sstable::names::Descriptor;
use helenus_sstable::statistics::{Header, HeaderColumn, MURMUR3_PARTITIONER, Statistics};
use helenus_sstable::table::{OpenOptions, SsTable, other_partitioner, read_statistics};
use helenus_sstable::version::Version;
use std::path::Path;
use std::sync::Arc;

/// Checks one SSTable for import into a table: components, partitioner, types and, with `whole`, every byte. Returns
/// every problem, each with its file. `progress` receives the amount done and the total.
pub(super) fn check_source(
    disk: &dyn Disk,
    (folder, descriptor): (&Path, Descriptor),
    table: &Arc<Table>,
    whole: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Vec<String> {
    let place = SsTableFiles { disk, folder, descriptor };
    let with_name = |problem: String| format!("{}: {problem}", folder.join(descriptor.to_string()).display());
    match missing_components(place) {
        Err(error) => return vec![error.to_string()],
        Ok(missing) if !missing.is_empty() => {
            return vec![with_name(format!(
                "components are missing that TOC.txt lists: {}",
                missing.join(", ")
            ))];
        }
        Ok(_) => {}
    }
    let statistics = match read_statistics(disk, folder, descriptor) {
        Ok(statistics) => statistics,
        Err(error) => return vec![error.to_string()],
    };
    let mut problems: Vec<String> =
        check_statistics(&statistics, descriptor.version, table).into_iter().map(with_name).collect();
    if problems.is_empty() {
        let options = OpenOptions { schema: table.clone(), buffers: BufferPool::offline() };
        let checked = SsTable::open(disk, folder, descriptor, options).and_then(|sstable| match whole {
            true => sstable.verify_telling(disk, folder, progress).map(|_| ()),
            false => Ok(()),
        });
        problems.extend(checked.err().map(|error| error.to_string()));
    }
    problems
}

fn check_statistics(statistics: &Statistics, version: Version, table: &Table) -> Vec<String> {
    let partitioner = &statistics.validation.partitioner;
    if partitioner != MURMUR3_PARTITIONER {
        return vec![other_partitioner(partitioner)];
    }
    check_header(&statistics.header, version, table)
}

/// Why a file with this version and header cannot belong to this table: every column that does not fit.
pub fn check_header(header: &Header, version: Version, table: &Table) -> Vec<String> {
    let mut problems = Vec::new();
    let name = format!("{}.{}", table.keyspace, table.name);
    match key_types(&header.key_type) {
        Err(problem) => problems.push(problem),
        Ok(types) => keys(&types, &table.partition_key, ("partition key", &name), &mut problems),
    }
    let clustering: Result<Vec<_>, String> =
        header.clustering_types.iter().map(|class| plain(class)).collect();
    match clustering {
        Err(problem) => problems.push(problem),
        Ok(types) => keys(&types, &table.clustering, ("clustering", &name), &mut problems),
    }
    for (columns, of_table, kind) in
        [(&header.statics, &table.statics, "static"), (&header.regulars, &table.regulars, "regular")]
    {
        for column in columns {
            problems.extend(check_column(column, version, of_table, (table, kind)));
        }
    }
    problems
}

fn check_column(
    column: &HeaderColumn,
    version: Version,
    of_table: &[Column],
    (table, kind): (&Table, &str),
) -> Option<String> {
    let name = String::from_utf8_lossy(&column.name);
    let found = match plain(&column.type_name) {
        Ok((found, _)) => found,
        Err(problem) => return Some(format!("column {name}: {problem}")),
    };
    match of_table.iter().find(|wanted| *wanted.name == *name) {
        None if table.dropped.contains_key(&*name) => None,
        None => Some(format!("{kind} column {name} ({found}) is not in {}.{}", table.keyspace, table.name)),
        Some(wanted) if fits(&found, &wanted.ty) => None,
        // Cassandra 3.0 has only frozen user types and does not record it in the file (CASSANDRA-15035). Its files have
        // the same version letters as those of 3.11, which records it. So the table's definition is trusted; rows that
        // contradict it are reported as damage.
        Some(wanted)
            if version < Version::Na && is_frozen(&wanted.ty) && fits(&found.freeze(), &wanted.ty) =>
        {
            None
        }
        Some(wanted) => Some(format!(
            "column {name} is {found} in the file and {} in {}.{}",
            wanted.ty, table.keyspace, table.name
        )),
    }
}

fn key_types(class: &str) -> Result<Vec<(CqlType, bool)>, String> {
    match parse_class_name(class) {
        Ok(ParsedClass::Composite(types)) => Ok(types),
        Ok(ParsedClass::Plain { ty, reversed }) => Ok(vec![(ty, reversed)]),
        Err(problem) => Err(format!("type {class}: {problem}")),
    }
}

fn plain(class: &str) -> Result<(CqlType, bool), String> {
    match parse_class_name(class) {
        Ok(ParsedClass::Plain { ty, reversed }) => Ok((ty, reversed)),
        Ok(ParsedClass::Composite(_)) => Ok((CqlType::Custom(class.into()), false)),
        Err(problem) => Err(format!("type {class}: {problem}")),
    }
}

fn keys(
    found: &[(CqlType, bool)],
    wanted: &[Column],
    (what, table): (&str, &str),
    problems: &mut Vec<String>,
) {
    if found.len() != wanted.len() {
        problems.push(format!(
            "its {what} has another number of columns, {}, than that of {table}, {}",
            found.len(),
            wanted.len()
        ));
        return;
    }
    for ((found, reversed), wanted) in found.iter().zip(wanted) {
        let order = |reversed| if reversed { " DESC" } else { "" };
        if !is_same(found, &wanted.ty) || *reversed != wanted.reversed {
            problems.push(format!(
                "its {what} column {} is {found}{} in the file and {}{} in {table}",
                wanted.name,
                order(*reversed),
                wanted.ty,
                order(wanted.reversed)
            ));
        }
    }
}

/// Whether values of one type can be read as another's: the same type, any type as bytes, or a user-defined type with
/// added fields.
fn fits(found: &CqlType, wanted: &CqlType) -> bool {
    let is_bytes = *wanted == CqlType::Blob && !found.is_multi_cell() && *found != CqlType::Counter;
    is_bytes || (found.is_multi_cell() == wanted.is_multi_cell() && is_same(found, wanted))
}

fn is_frozen(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Udt(udt) if udt.frozen)
}

/// Whether two types are the same, ignoring the keyspaces of user-defined types and whether nested types are marked
/// frozen. Cassandra writes a `DateType` into files until its next start, and `timestamp` from then on: their values
/// are the same. Their order is the same too, except for times before 1970; a reader of the rows finds those out of
/// order.
fn is_same(found: &CqlType, wanted: &CqlType) -> bool {
    use CqlType::{List, Map, Set, Tuple, Udt, Vector};
    match (found, wanted) {
        (List { element: a, .. }, List { element: b, .. })
        | (Set { element: a, .. }, Set { element: b, .. }) => is_same(a, b),
        (Map { key: a, value: v, .. }, Map { key: b, value: w, .. }) => is_same(a, b) && is_same(v, w),
        (Tuple(a), Tuple(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| is_same(a, b)),
        (Udt(a), Udt(b)) => {
            let pairs = a.fields.iter().zip(&b.fields);
            a.fields.len() <= b.fields.len()
                && pairs.into_iter().all(|((name, a), (other, b))| name == other && is_same(a, b))
        }
        (Vector { element: a, dimension: d }, Vector { element: b, dimension: e }) => d == e && is_same(a, b),
        _ => found == wanted || is_time(found) && is_time(wanted),
    }
}

fn is_time(ty: &CqlType) -> bool {
    match ty {
        CqlType::Custom(class) => &**class == "org.apache.cassandra.db.marshal.DateType",
        ty => *ty == CqlType::Timestamp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::types::UserType;

    fn udt(keyspace: &str, fields: &[&str], frozen: bool) -> CqlType {
        let fields = fields.iter().map(|name| (Arc::from(*name), CqlType::Int)).collect();
        CqlType::Udt(Arc::new(UserType { keyspace: keyspace.into(), name: "u".into(), fields, frozen }))
    }

    #[test]
    fn a_type_fits_itself_grown_types_and_bytes_and_nothing_else() {
        assert!(fits(&CqlType::Int, &CqlType::Int));
        assert!(fits(&CqlType::Int, &CqlType::Blob));
        assert!(!fits(&CqlType::Int, &CqlType::Text));
        assert!(!fits(&CqlType::Blob, &CqlType::Int));
        assert!(fits(&udt("a", &["x"], true), &udt("b", &["x", "y"], true)));
        assert!(!fits(&udt("a", &["x", "y"], true), &udt("a", &["x"], true)));
        assert!(!fits(&udt("a", &["x"], true), &udt("a", &["x"], false)));
        let set = |frozen| CqlType::Set { element: Arc::new(CqlType::Text), frozen };
        assert!(!fits(&set(false), &set(true)));
        assert!(!fits(&set(false), &CqlType::Blob));
    }
}
