//! The user-defined types that the headers of SSTables have: Cassandra's `schema.cql` lacks those that a table uses only within
//! other types.

use super::sources::ImportSource;
use helenus_host::Disk;
use helenus_model::types::{CqlType, ParsedClass, UserType, parse_class_name};
use helenus_sstable::table::read_statistics;
use std::collections::BTreeMap;
use std::sync::Arc;

/// User-defined types by keyspace and name.
pub type KnownTypes = BTreeMap<(String, String), Arc<UserType>>;

/// The types in the headers of all SSTables of these sources, in the sources' keyspaces. Whatever is nested in a type is frozen:
/// a header does not say whether it was declared so.
pub fn types_in_headers(disk: &dyn Disk, sources: &[ImportSource]) -> KnownTypes {
    let mut known = KnownTypes::new();
    for source in sources {
        for descriptor in &source.sstables {
            // One that cannot be read is a problem that the check of the files tells.
            let Ok(statistics) = read_statistics(disk, &source.folder, *descriptor) else { continue };
            let header = statistics.header;
            let columns = header.statics.iter().chain(&header.regulars).map(|column| &column.type_name);
            for class in columns.chain(&header.clustering_types).chain([&header.key_type]) {
                match parse_class_name(class) {
                    Ok(ParsedClass::Plain { ty, .. }) => note_types(&ty, &source.keyspace, &mut known),
                    Ok(ParsedClass::Composite(types)) => {
                        types.iter().for_each(|(ty, _)| note_types(ty, &source.keyspace, &mut known));
                    }
                    Err(_) => {}
                }
            }
        }
    }
    known
}

/// Adds the user-defined types in a type of a column. Of two with the same name, the one with more fields is the later one: fields
/// are only added.
fn note_types(ty: &CqlType, keyspace: &str, known: &mut KnownTypes) {
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            note_types(element, keyspace, known);
        }
        CqlType::Map { key, value, .. } => {
            note_types(key, keyspace, known);
            note_types(value, keyspace, known);
        }
        CqlType::Tuple(parts) => parts.iter().for_each(|part| note_types(part, keyspace, known)),
        CqlType::Udt(udt) => {
            udt.fields.iter().for_each(|(_, field)| note_types(field, keyspace, known));
            let place = known.entry((keyspace.to_owned(), udt.name.to_string()));
            let declared = || {
                let fields =
                    udt.fields.iter().map(|(name, ty)| (name.clone(), in_keyspace(ty, keyspace).freeze()));
                Arc::new(UserType {
                    keyspace: keyspace.into(),
                    name: udt.name.clone(),
                    fields: fields.collect(),
                    frozen: false,
                })
            };
            let present = place.or_insert_with(declared);
            if present.fields.len() < udt.fields.len() {
                *present = declared();
            }
        }
        _ => {}
    }
}

/// The type with its user-defined types in this keyspace: a snapshot may be of a keyspace with another name.
fn in_keyspace(ty: &CqlType, keyspace: &str) -> CqlType {
    let inner = |ty: &Arc<CqlType>| Arc::new(in_keyspace(ty, keyspace));
    match ty {
        CqlType::List { element, frozen } => CqlType::List { element: inner(element), frozen: *frozen },
        CqlType::Set { element, frozen } => CqlType::Set { element: inner(element), frozen: *frozen },
        CqlType::Vector { element, dimension } => {
            CqlType::Vector { element: inner(element), dimension: *dimension }
        }
        CqlType::Map { key, value, frozen } => {
            CqlType::Map { key: inner(key), value: inner(value), frozen: *frozen }
        }
        CqlType::Tuple(parts) => {
            CqlType::Tuple(parts.iter().map(|part| in_keyspace(part, keyspace)).collect())
        }
        CqlType::Udt(udt) => {
            let fields = udt.fields.iter().map(|(name, ty)| (name.clone(), in_keyspace(ty, keyspace)));
            CqlType::Udt(Arc::new(UserType {
                keyspace: keyspace.into(),
                name: udt.name.clone(),
                fields: fields.collect(),
                frozen: udt.frozen,
            }))
        }
        other => other.clone(),
    }
}
