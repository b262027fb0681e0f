//! Serialises terms by their types, and resolves the names of families and keys.

use super::ast::{FamilyName, Term};
use crate::context::{CallContext, Rpc};
use crate::error::{Result, invalid};
use crate::family::Family;
use crate::name::Comparator;
use crate::validate::session_keyspace;
use helenus_model::schema::Table;
use helenus_model::types::{CqlType, parse_text};
use std::sync::Arc;

/// The values of a prepared statement's markers.
pub(super) type Variables<'a> = [&'a [u8]];

impl Term {
    fn marker<'v>(&self, variables: &Variables<'v>) -> Option<&'v [u8]> {
        match self {
            Term::Marker(place) => variables.get(*place).copied(),
            Term::Text(_) => None,
        }
    }

    /// The written text; empty for a marker.
    pub(super) fn text(&self) -> &str {
        match self {
            Term::Text(text) => text,
            Term::Marker(_) => "",
        }
    }

    /// Serialises the term as a value of type `ty`.
    pub(super) fn value(&self, ty: &CqlType, variables: &Variables<'_>) -> Result<Vec<u8>> {
        match self.marker(variables) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => Ok(parse_text(ty, self.text())?),
        }
    }

    /// Serialises the term as a name of a comparator; an empty name is an end of the row.
    pub(super) fn column(&self, comparator: &Comparator, variables: &Variables<'_>) -> Result<Vec<u8>> {
        match self.marker(variables) {
            Some(bytes) => Ok(bytes.to_vec()),
            None if self.text().is_empty() => Ok(Vec::new()),
            None => comparator.parse(self.text()),
        }
    }

    /// Serialises the term as a row key.
    pub(super) fn key(&self, table: &Table, variables: &Variables<'_>) -> Result<Vec<u8>> {
        let key = match &table.partition_key[..] {
            [only] => self.value(&only.ty, variables)?,
            _ => return invalid("Cannot access column family with composite key from CQL < 3.0.0"),
        };
        crate::validate::check_key(table, &key)?;
        Ok(key)
    }
}

/// The name of the row key: KEY, unless the family has another name for it.
pub(super) fn key_name(table: &Table) -> String {
    match &table.partition_key[..] {
        [only] if &*only.name == "key" => "KEY".to_owned(),
        [only, ..] => only.name.to_string(),
        [] => String::new(),
    }
}

/// Whether a term is the name of the row key.
pub(super) fn names_key(term: &Term, table: &Table) -> bool {
    term.text().eq_ignore_ascii_case(&key_name(table))
}

/// Checks that a term is the name of the row key.
pub(super) fn check_names_key(term: &Term, table: &Table) -> Result<()> {
    if names_key(term, table) {
        return Ok(());
    }
    invalid(format!(
        "Expected key '{}' to be present in WHERE clause for '{}'",
        key_name(table).to_uppercase(),
        table.name
    ))
}

impl Rpc {
    /// Looks up a column family that a statement names.
    pub(super) fn named(&self, name: &FamilyName, work: &mut CallContext<'_>) -> Result<Arc<Family>> {
        let family = match &name.keyspace {
            None => self.family(work.session, &name.name)?,
            Some(keyspace) => {
                let schema = self.storage.schema();
                if !schema.keyspaces.contains_key(keyspace.as_str()) {
                    return invalid(format!("Keyspace {keyspace} does not exist"));
                }
                match schema.table(keyspace, &name.name) {
                    Some(table) => {
                        self.check_access(work.session, table)?;
                        Arc::new(Family::new(table)?)
                    }
                    None => return invalid(format!("unconfigured table {}", name.name)),
                }
            }
        };
        if family.is_super() {
            return invalid(format!("Super column family {} is not supported in CQL", family.table.name));
        }
        Ok(family)
    }

    /// The keyspace in use.
    pub(super) fn used(&self, work: &CallContext<'_>) -> Result<Arc<str>> {
        session_keyspace(work.session)
    }
}
