//! The objects that DESCRIBE shows.

use super::create;
use helenus_model::schema::{Index, Keyspace, Table};
use helenus_model::types::{UserType, quote_identifier};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// An object of the schema.
#[derive(Clone, Copy)]
pub(super) enum Element<'s> {
    Keyspace(&'s Keyspace),
    Table(&'s Keyspace, &'s Table),
    Type(&'s Keyspace, &'s UserType),
    Index(&'s Table, &'s Index),
}

impl<'s> Element<'s> {
    fn name(self) -> &'s str {
        match self {
            Element::Keyspace(keyspace) => &keyspace.name,
            Element::Table(_, table) => &table.name,
            Element::Type(_, ty) => &ty.name,
            Element::Index(_, index) => &index.name,
        }
    }

    /// Keyspace, kind and name, the columns of a listing.
    pub(super) fn listed(self) -> [String; 3] {
        let (keyspace, kind) = match self {
            Element::Keyspace(keyspace) => (&keyspace.name, "keyspace"),
            Element::Table(keyspace, _) => (&keyspace.name, "table"),
            Element::Type(keyspace, _) => (&keyspace.name, "type"),
            Element::Index(table, _) => (&table.keyspace, "index"),
        };
        [quote_identifier(keyspace).into_owned(), kind.to_owned(), quote_identifier(self.name()).into_owned()]
    }

    /// The statement that creates it again. `internals`: with id and dropped columns.
    pub(super) fn statement(self, internals: bool) -> String {
        match self {
            Element::Keyspace(keyspace) => create::keyspace(keyspace),
            Element::Table(keyspace, table) => create::table(keyspace, table, internals),
            Element::Type(_, ty) => create::user_type(ty),
            Element::Index(table, index) => create::index(table, index),
        }
    }
}

/// Sorts for listings: by name, ignoring case.
pub(super) fn sorted<'s>(elements: impl Iterator<Item = Element<'s>>) -> Vec<Element<'s>> {
    let mut elements: Vec<Element<'s>> = elements.collect();
    elements.sort_by_cached_key(|element| element.name().to_lowercase());
    elements
}

/// The tables of a keyspace.
pub(super) fn tables(keyspace: &Keyspace) -> Vec<Element<'_>> {
    sorted(keyspace.tables.values().map(|table| Element::Table(keyspace, table)))
}

/// The types of a keyspace, by name.
pub(super) fn types(keyspace: &Keyspace) -> Vec<Element<'_>> {
    sorted(keyspace.types.values().map(|ty| Element::Type(keyspace, ty)))
}

/// The types of a keyspace by name, but the types that one uses come right before it, unless they are there already
/// (`Types.sortedStream`).
fn types_by_use(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let (mut seen, mut done) = (HashSet::new(), Vec::new());
    keyspace.types.values().for_each(|ty| add_with_used(keyspace, ty, &mut seen, &mut done));
    done
}

/// Calls itself for the types of fields, as deep as types nest (`TYPE_DEPTH_MAX`).
fn add_with_used<'s>(
    keyspace: &'s Keyspace,
    ty: &'s UserType,
    seen: &mut HashSet<&'s str>,
    done: &mut Vec<Element<'s>>,
) {
    // Types that use each other cannot be created; of damaged ones each is added once.
    if !seen.insert(&ty.name) {
        return;
    }
    let mut used = Vec::new();
    ty.fields.iter().for_each(|(_, field)| create::names_within(field, &mut |name| used.push(name)));
    for ty in used.into_iter().filter_map(|name| keyspace.types.get(name)) {
        add_with_used(keyspace, ty, seen, done);
    }
    done.push(Element::Type(keyspace, ty));
}

/// A keyspace and all objects in it.
pub(super) fn whole(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let mut elements = vec![Element::Keyspace(keyspace)];
    elements.extend(types_by_use(keyspace));
    elements.extend(tables(keyspace).into_iter().flat_map(with_indexes));
    elements
}

/// The statements that create a keyspace and all objects in it again, with ids and dropped columns.
pub(crate) fn statements_of_keyspace(keyspace: &Keyspace) -> Vec<String> {
    whole(keyspace).into_iter().map(|element| element.statement(true)).collect()
}

/// The statements that create a table again, with the types it uses and its indexes.
pub(crate) fn statements_of_table(keyspace: &Keyspace, table: &Table) -> Vec<String> {
    let (mut used, mut unseen) = (HashSet::new(), Vec::new());
    let columns = table.columns().map(|column| &column.ty);
    for ty in columns.chain(table.dropped.values().map(|column| &column.ty)) {
        create::names_within(ty, &mut |name| unseen.push(name));
    }
    while let Some(name) = unseen.pop() {
        if let Some(ty) = keyspace.types.get(name).filter(|_| used.insert(name)) {
            ty.fields
                .iter()
                .for_each(|(_, field)| create::names_within(field, &mut |name| unseen.push(name)));
        }
    }
    let types = types_by_use(keyspace).into_iter().filter(|element| used.contains(element.name()));
    let elements = types.chain(with_indexes(Element::Table(keyspace, table)));
    elements.map(|element| element.statement(true)).collect()
}

/// The options of a table as they stand behind WITH, each as `name = value`, and the statements that create its indexes, by name.
pub(crate) fn parts_of_table(keyspace: &Keyspace, table: &Table) -> (Vec<String>, BTreeMap<String, String>) {
    let index = |index: &Arc<Index>| (index.name.to_string(), create::index(table, index));
    (create::option_texts(keyspace, table), table.indexes.values().map(index).collect())
}

/// A table and its indexes.
pub(super) fn with_indexes(element: Element<'_>) -> Vec<Element<'_>> {
    let mut elements = vec![element];
    if let Element::Table(_, table) = element {
        elements.extend(sorted(table.indexes.values().map(|index| Element::Index(table, index))));
    }
    elements
}

/// Finds an index of a keyspace by name.
pub(super) fn find_index<'s>(keyspace: &'s Keyspace, name: &str) -> Option<Element<'s>> {
    let found = |table: &'s Table| table.indexes.get(name).map(|index| Element::Index(table, index));
    keyspace.tables.values().find_map(|table| found(table))
}
