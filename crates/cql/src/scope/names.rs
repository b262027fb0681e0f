//! Name resolution: keyspace, table, column.

use super::call::{Fits, Scalar};
use crate::budget::RequestBudget;
use crate::error::{CqlError, Result};
use crate::syntax::ast::{Ident, QualifiedName};
use helenus_model::schema::{Column, Keyspace, Schema, Table};
use helenus_model::types::{CqlType, quote_identifier};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The context in which names are resolved: the schema, and the keyspace of names without one.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The schema.
    pub schema: &'a Arc<Schema>,
    /// The keyspace of the request or session.
    pub keyspace: Option<&'a str>,
    /// Cached results about calls.
    pub memo: &'a Memo,
    /// Limits the time of the analysis.
    pub work: &'a RequestBudget<'a>,
}

/// Cached results about the calls of a statement during its analysis. A nested call is tested once for every type that
/// the outer call may accept; the cache answers repeated tests of a type.
#[derive(Debug, Default)]
pub struct Memo {
    functions: RefCell<HashMap<CallOfType, Option<Arc<dyn Scalar>>>>,
    suits: RefCell<HashMap<(CallId, bool), Fits>>,
}

/// A call and the type that is expected of it.
type CallOfType = (CallId, Option<CqlType>);

/// A call in a statement: its position, its kind, and for a chain the number of operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallId {
    pub(crate) offset: u32,
    pub(crate) kind: CallKind,
    pub(crate) operators: u32,
}

/// The kinds of calls that may begin at the same position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallKind {
    Function,
    Cast,
    Negation,
    Sum,
    Product,
}

impl Memo {
    /// Whether the statement calls functions.
    pub(crate) fn has_calls(&self) -> bool {
        !self.functions.borrow().is_empty() || !self.suits.borrow().is_empty()
    }

    /// The function of a call for a type; `Some(None)` if there is known to be none.
    pub(crate) fn function(&self, key: &(CallId, Option<CqlType>)) -> Option<Option<Arc<dyn Scalar>>> {
        self.functions.borrow().get(key).cloned()
    }

    pub(crate) fn keep_function(&self, key: (CallId, Option<CqlType>), found: Option<Arc<dyn Scalar>>) {
        self.functions.borrow_mut().insert(key, found);
    }

    /// How well an operation fits the types of operands; the key's flag tells whether a table is known.
    pub(crate) fn suits(&self, key: (CallId, bool)) -> Option<Fits> {
        self.suits.borrow().get(&key).copied()
    }

    pub(crate) fn keep_suits(&self, key: (CallId, bool), found: Fits) {
        self.suits.borrow_mut().insert(key, found);
    }
}

impl<'a> Scope<'a> {
    /// The keyspace of a qualified name.
    ///
    /// # Errors
    /// Neither the name nor the session has one (`ClientState.getKeyspace`).
    pub fn keyspace_of<'n>(&self, name: &'n QualifiedName<'_>) -> Result<&'n str>
    where
        'a: 'n,
    {
        match &name.keyspace {
            Some(keyspace) => Ok(keyspace.as_str()),
            None => self.session_keyspace(),
        }
    }

    /// The session's keyspace.
    ///
    /// # Errors
    /// The session has none.
    pub fn session_keyspace(&self) -> Result<&'a str> {
        self.keyspace.ok_or_else(|| {
            CqlError::Invalid(
                "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename"
                    .into(),
            )
        })
    }

    /// A keyspace by name.
    ///
    /// # Errors
    /// It does not exist (`KeyspaceNotDefinedException`, which is an invalid request to clients).
    pub fn keyspace(&self, name: &str) -> Result<&'a Arc<Keyspace>> {
        self.schema
            .keyspaces
            .get(name)
            .ok_or_else(|| CqlError::Invalid(format!("keyspace {name} does not exist")))
    }

    /// The stored table of a name (`Schema.validateTable`). Virtual tables are not searched.
    ///
    /// # Errors
    /// There is no keyspace, or the keyspace or the table does not exist.
    pub fn table(&self, name: &QualifiedName<'_>) -> Result<&'a Arc<Table>> {
        let keyspace = self.keyspace_of(name)?;
        if name.name.as_str().is_empty() {
            return Err(CqlError::Invalid("non-empty table is required".into()));
        }
        let found = self.keyspace(keyspace)?.tables.get(name.name.as_str());
        found.ok_or_else(|| CqlError::Invalid(format!("table {} does not exist", name.name.as_str())))
    }
}

/// The column of a name (`TableMetadata.getExistingColumn`).
///
/// # Errors
/// The table has no column of that name.
pub(crate) fn existing_column<'t>(table: &'t Table, name: &Ident<'_>) -> Result<&'t Column> {
    let found = table.column(name.as_str()).filter(|column| !table.is_hidden(column));
    found.ok_or_else(|| undefined_column(table, name.as_str()))
}

/// The error for a column that a table does not have. Names are quoted where necessary
/// (`TableMetadata.getExistingColumn`).
pub fn undefined_column(table: &Table, name: &str) -> CqlError {
    let [name, keyspace, table] = [name, &*table.keyspace, &*table.name].map(quote_identifier);
    CqlError::Invalid(format!("Undefined column name {name} in table {keyspace}.{table}"))
}
