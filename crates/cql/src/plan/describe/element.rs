//! Things that DESCRIBE shows.

use super::create;
use helenus_model::schema::{Index, Keyspace, Table};
use helenus_model::types::{UserType, quote_identifier};

/// A thing of the schema.
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

    /// Keyspace, kind and name, as a listing shows them.
    pub(super) fn listed(self) -> [String; 3] {
        let (keyspace, kind) = match self {
            Element::Keyspace(keyspace) => (&keyspace.name, "keyspace"),
            Element::Table(keyspace, _) => (&keyspace.name, "table"),
            Element::Type(keyspace, _) => (&keyspace.name, "type"),
            Element::Index(table, _) => (&table.keyspace, "index"),
        };
        [quote_identifier(keyspace).into_owned(), kind.to_owned(), quote_identifier(self.name()).into_owned()]
    }

    /// The statement that makes it again. `internals`: with id and dropped columns.
    pub(super) fn statement(self, internals: bool) -> String {
        match self {
            Element::Keyspace(keyspace) => create::keyspace(keyspace),
            Element::Table(_, table) => create::table(table, internals),
            Element::Type(_, ty) => create::user_type(ty),
            Element::Index(table, index) => create::index(table, index),
        }
    }
}

/// In the order of listings: by name, whatever its case.
pub(super) fn sorted<'s>(elements: impl Iterator<Item = Element<'s>>) -> Vec<Element<'s>> {
    let mut elements: Vec<Element<'s>> = elements.collect();
    elements.sort_by_key(|element| element.name().to_lowercase());
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

/// The types of a keyspace, each behind those it uses (`Types.sortedStream`).
fn types_by_use(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let mut done: Vec<&UserType> = Vec::new();
    let mut left: Vec<&UserType> = keyspace.types.values().map(|ty| &**ty).collect();
    while !left.is_empty() {
        let uses = |ty: &UserType, other: &UserType| {
            ty.name != other.name && ty.fields.iter().any(|(_, field)| create::mentions(field, &other.name))
        };
        let free = left.iter().position(|ty| !left.iter().any(|other| uses(ty, other)));
        // Types that use each other cannot be made; should they be there, they are shown in the order of their names.
        done.push(left.remove(free.unwrap_or(0)));
    }
    done.into_iter().map(|ty| Element::Type(keyspace, ty)).collect()
}

/// A keyspace and all it holds.
pub(super) fn whole(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let mut elements = vec![Element::Keyspace(keyspace)];
    elements.extend(types_by_use(keyspace));
    elements.extend(tables(keyspace).into_iter().flat_map(with_indexes));
    elements
}

/// The statements that make a keyspace and all it holds again, with ids and dropped columns.
pub(crate) fn statements_of_keyspace(keyspace: &Keyspace) -> Vec<String> {
    whole(keyspace).into_iter().map(|element| element.statement(true)).collect()
}

/// The statements that make a table again, with the types it uses and its indexes.
pub(crate) fn statements_of_table(keyspace: &Keyspace, table: &Table) -> Vec<String> {
    let mut used: Vec<&str> = Vec::new();
    let by_use = types_by_use(keyspace);
    // A type comes behind those it uses, so going backwards every user is seen before what it uses.
    for element in by_use.iter().rev() {
        let Element::Type(_, ty) = *element else { continue };
        let of_table = table.columns().any(|column| create::mentions(&column.ty, &ty.name))
            || table.dropped.values().any(|column| create::mentions(&column.ty, &ty.name));
        let of_types = keyspace
            .types
            .values()
            .filter(|user| used.contains(&&*user.name))
            .any(|user| user.fields.iter().any(|(_, field)| create::mentions(field, &ty.name)));
        if of_table || of_types {
            used.push(&ty.name);
        }
    }
    let types = by_use.into_iter().filter(|element| used.contains(&element.name()));
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

/// An index of a keyspace.
pub(super) fn find_index<'s>(keyspace: &'s Keyspace, name: &str) -> Option<Element<'s>> {
    let found = |table: &'s Table| table.indexes.get(name).map(|index| Element::Index(table, index));
    keyspace.tables.values().find_map(|table| found(table))
}
