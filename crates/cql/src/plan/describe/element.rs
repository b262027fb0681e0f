//! The objects that DESCRIBE shows.

use super::create;
use helenus_model::schema::{Index, Keyspace, Table};
use helenus_model::types::{UserType, quote_identifier};
use std::collections::{BTreeSet, HashMap, HashSet};

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

/// The types of a keyspace, each after those it uses, otherwise by name (`Types.sortedStream`).
fn types_by_use(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let types: Vec<&UserType> = keyspace.types.values().map(|ty| &**ty).collect();
    let numbers: HashMap<&str, usize> = types.iter().enumerate().map(|(at, ty)| (&*ty.name, at)).collect();
    // For each type, the number of types it waits for, and the types that wait for it.
    let mut awaited = vec![0_usize; types.len()];
    let mut waiting = vec![Vec::new(); types.len()];
    for (number, ty) in types.iter().enumerate() {
        let mut used = BTreeSet::new();
        ty.fields
            .iter()
            .for_each(|(_, field)| create::names_within(field, &mut |name| _ = used.insert(name)));
        for of in used.into_iter().filter_map(|name| numbers.get(name).copied()).filter(|of| *of != number) {
            awaited[number] += 1;
            waiting[of].push(number);
        }
    }
    let mut free: BTreeSet<usize> = (0..types.len()).filter(|number| awaited[*number] == 0).collect();
    let mut left: BTreeSet<usize> = (0..types.len()).collect();
    let mut done = Vec::with_capacity(types.len());
    // Types that use each other cannot be created. If there are any, they are shown in the order of their names.
    while let Some(number) = free.pop_first().or_else(|| left.first().copied()) {
        if !left.remove(&number) {
            continue;
        }
        done.push(number);
        for behind in &waiting[number] {
            awaited[*behind] -= 1;
            if awaited[*behind] == 0 {
                free.insert(*behind);
            }
        }
    }
    done.into_iter().filter_map(|number| types.get(number)).map(|ty| Element::Type(keyspace, ty)).collect()
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
