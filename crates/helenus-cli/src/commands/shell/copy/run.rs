//! Runs a COPY: looks up its table, then exports or imports.

use super::super::catalog::Catalog;
use super::super::rc::Rc;
use super::super::session::Session;
use super::export::export;
use super::import::{Filled, import};
use super::options::{self, Direction};
use anyhow::{Context, Result};
use helenus_wire::native::Consistency;

/// The parts of the shell that a COPY uses.
pub struct CopyContext<'p> {
    pub session: &'p mut Session,
    pub catalog: &'p mut Catalog,
    pub consistency: Consistency,
}

/// Runs a COPY statement.
///
/// # Errors
/// The statement is wrong, the table does not exist, rows failed.
pub fn run(statement: &str, defaults: &Rc, place: &mut CopyContext<'_>) -> Result<()> {
    let (copy, keyspace) = options::read(statement, defaults, place.session.keyspace())?;
    let table = place.catalog.table(place.session, &keyspace, &copy.table)?;
    let columns =
        table.with_context(|| format!("Column family {keyspace}.{} not found", copy.table))?.clone();
    let filled = Filled { keyspace: &keyspace, table: &copy.table, columns: &columns };
    place.session.interrupt.take();
    match &copy.direction {
        Direction::From(names) => import(&copy, &filled, names.as_deref(), place),
        Direction::To(file) => export(&copy, &filled, file.as_deref(), place),
    }
}
